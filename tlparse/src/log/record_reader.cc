#include "log/record_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/utf8.h"
#include "log/window_cut.h"

namespace tlparse {

namespace {

constexpr std::size_t kWindowBytes = RecordReader::kWindowBytes;
// Foreign lines that follow one another share an import_log row up to this size.
constexpr std::size_t kMaxForeignBytes = 64 << 10;

std::int64_t CountLines(std::string_view text) {
  return std::count(text.begin(), text.end(), '\n') +
         (!text.empty() && text.back() != '\n' ? 1 : 0);
}

ImportFinding MakeFinding(ImportCode code, std::int64_t line, std::int64_t byte_offset,
                          std::string message) {
  ImportFinding finding;
  finding.code = code;
  finding.line = line;
  finding.byte_offset = byte_offset;
  finding.message = std::move(message);
  return finding;
}

struct DigestHasher {
  std::size_t operator()(const Md5Digest& digest) const {
    std::size_t value;
    std::memcpy(&value, digest.data(), sizeof value);
    return value;
  }
};

}  // namespace

void Window::Clear() {
  bytes.set_size(0);
  if (bytes.capacity() > 4 * kWindowBytes) bytes.Release();
  arena.Clear();
  records.clear();
  findings.clear();
  ends_file = false;
}

RecordReader::RecordReader(std::unique_ptr<InputStream> input, Shared& shared,
                           std::size_t window_bytes, std::size_t max_record_bytes)
    : input_(std::move(input)),
      shared_(shared),
      window_bytes_(window_bytes),
      max_record_bytes_(max_record_bytes),
      parser_(shared.is_record_key),
      hash_(XXH3_createState()) {
  XXH3_128bits_reset(hash_.get());
}

std::string RecordReader::ContentHash() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(hash_.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Result<bool> RecordReader::Next(Window& window) {
  window.Clear();
  if (is_done_) return false;
  const std::size_t end = Fill(window);
  const std::string_view rest = window.bytes.view().substr(end);
  carry_.set_size(0);
  carry_.Append(rest);
  if (carry_.capacity() > 4 * kWindowBytes && carry_.size() < kWindowBytes) {
    ByteBuffer small;
    small.Append(carry_.view());
    carry_ = std::move(small);
  }
  Split(window, end);
  RETURN_IF_ERROR(Verify(window));
  record_count_ += static_cast<std::int64_t>(window.records.size());
  window_offset_ += static_cast<std::int64_t>(end);
  if (is_at_end_ && carry_.size() == 0) {
    is_done_ = true;
    window.ends_file = true;
    if (!input_error_.empty()) {
      window.findings.push_back(
          MakeFinding(ImportCode::kDamagedInput, line_count_, window_offset_, input_error_));
    }
  }
  return true;
}

std::size_t RecordReader::Fill(Window& window) {
  ByteBuffer& bytes = window.bytes;
  bytes.Append(carry_.view());
  std::size_t target = std::max(window_bytes_, bytes.size() + window_bytes_ / 2);
  while (true) {
    bytes.Reserve(target);
    while (!is_at_end_ && bytes.size() < target) {
      Result<std::size_t> read = input_->Read(bytes.data() + bytes.size(), target - bytes.size());
      if (!read || *read == 0) {
        is_at_end_ = true;
        if (!read) input_error_ = read.error().message;
        break;
      }
      XXH3_128bits_update(hash_.get(), bytes.data() + bytes.size(), *read);
      bytes.set_size(bytes.size() + *read);
      bytes_read_ += static_cast<std::int64_t>(*read);
    }
    bytes.ZeroSlack();
    chunks_.clear();
    FindChunks(bytes.view(), chunks_);
    if (is_at_end_) return bytes.size();
    const std::size_t cut = FindCut(bytes.view(), chunks_);
    if (cut != 0) return cut;
    if (bytes.size() >= max_record_bytes_) {
      window.findings.push_back(MakeFinding(
          ImportCode::kLineTooLong, window_line_ + 1, window_offset_,
          fmt::format("a record of more than {} bytes was cut here", max_record_bytes_)));
      return bytes.size();
    }
    target = std::min(max_record_bytes_, bytes.size() + bytes.size() / 2 + 1);
  }
}

void RecordReader::Split(Window& window, std::size_t end) {
  const std::string_view bytes = window.bytes.view().substr(0, end);
  std::size_t index = 0;
  for (; index < chunks_.size() && chunks_[index].offset < end; ++index) {
    const std::size_t begin = chunks_[index].offset;
    const std::size_t stop =
        index + 1 < chunks_.size() ? std::min(chunks_[index + 1].offset, end) : end;
    const std::string_view chunk = bytes.substr(begin, stop - begin);
    const std::int64_t line = window_line_ + chunks_[index].line + 1;
    if (const std::optional<GlogPrefix> prefix = ParseGlogPrefix(FirstLine(chunk))) {
      AddHeader(window, chunk, *prefix, line);
    } else {
      AddForeign(window, chunk, line);
    }
  }
  for (const auto& [record, payload] : torn_)
    window.records[record].raw_payload = payload.Join(window.arena);
  torn_.clear();
  latest_of_rank_.clear();
  open_record_.reset();
  // The next window begins with the first chunk that was left, or in the middle of one.
  const bool is_at_chunk = index < chunks_.size() && chunks_[index].offset == end;
  window_line_ += is_at_chunk ? chunks_[index].line : std::count(bytes.begin(), bytes.end(), '\n');
  line_count_ = window_line_ + (!bytes.empty() && bytes.back() != '\n' ? 1 : 0);
}

void RecordReader::AddHeader(Window& window, std::string_view chunk, const GlogPrefix& prefix,
                             std::int64_t line) {
  const std::int64_t offset = window_offset_ + (chunk.data() - window.bytes.data());
  // Payload lines from here on are not those of the record before; ranks are apart only where every
  // line has its "[rankN]:".
  open_record_.reset();
  if (!prefix.rank) latest_of_rank_.clear();
  if (prefix.rank) latest_of_rank_.erase(*prefix.rank);
  const Envelope* envelope = parser_.Parse(prefix.json);
  if (envelope == nullptr) {
    ImportFinding finding = MakeFinding(
        ImportCode::kBrokenHeader, line, offset,
        "the header's JSON is damaged; the line and its payload lines are kept as text");
    finding.text = chunk.ends_with('\n') ? chunk.substr(0, chunk.size() - 1) : chunk;
    finding.line_count = CountLines(chunk);
    window.findings.push_back(std::move(finding));
    return;
  }
  open_record_ = window.records.size();
  LogRecord& record = window.records.emplace_back();
  record.line = line;
  record.byte_offset = offset;
  record.prefix = prefix;
  record.envelope_json = prefix.json;
  SetTime(window, record);
  record.envelope = *envelope;
  for (std::string_view* text :
       {&record.envelope.kind, &record.envelope.name, &record.envelope.subgraph_name,
        &record.envelope.metadata, &record.envelope.bad_member}) {
    if (text->data() != nullptr) *text = window.arena.Copy(*text);
  }
  const std::size_t line_end = chunk.find('\n');
  if (line_end != std::string_view::npos && line_end + 1 < chunk.size()) {
    record.raw_payload = chunk.substr(line_end + 1);
    if (record.raw_payload.back() == '\n') record.raw_payload.remove_suffix(1);
  } else if (prefix.rank) {
    latest_of_rank_[*prefix.rank] = *open_record_;  // its lines may have its prefix
  }
}

// Adds TAB lines that were torn off their record; false if the record is complete without them.
bool RecordReader::AddTorn(Window& window, std::size_t index, std::string_view lines) {
  const LogRecord& record = window.records[index];
  if (!record.envelope.payload_hash) return false;
  if (lines.ends_with('\n')) lines.remove_suffix(1);
  return torn_.try_emplace(index, record.raw_payload, *record.envelope.payload_hash)
      .first->second.Add(lines);
}

// A record without a possible time gets that of its neighbour.
void RecordReader::SetTime(Window& window, LogRecord& record) {
  if (!record.prefix.has_time) {
    ImportFinding finding =
        MakeFinding(ImportCode::kImpossibleTime, record.line, record.byte_offset,
                    "the prefix names a date or time of day that does not exist");
    finding.record = static_cast<std::int64_t>(window.records.size()) - 1;
    window.findings.push_back(std::move(finding));
    record.prefix.time_us = last_time_us_.value_or(0);
    return;
  }
  if (!last_time_us_) {
    for (LogRecord& earlier : window.records) earlier.prefix.time_us = record.prefix.time_us;
  }
  last_time_us_ = record.prefix.time_us;
}

void RecordReader::AddForeign(Window& window, std::string_view chunk, std::int64_t line) {
  const std::int64_t offset = window_offset_ + (chunk.data() - window.bytes.data());
  const bool is_orphan = !chunk.empty() && chunk.front() == '\t';
  // "[rank3]:<TAB>…": a payload line to which an aggregator gave the same prefix as to its header.
  if (const std::optional<RankPrefix> rank = ParseRankPrefix(chunk);
      rank && rank->length < chunk.size() && chunk[rank->length] == '\t') {
    const auto record = latest_of_rank_.find(rank->rank);
    if (record != latest_of_rank_.end() &&
        AddTorn(window, record->second, chunk.substr(rank->length)))
      return;
  }
  std::string_view text = chunk;
  const std::size_t line_end = chunk.find('\n');
  if (!is_orphan && line_end != std::string_view::npos && line_end + 1 < chunk.size() &&
      open_record_ && AddTorn(window, *open_record_, chunk.substr(line_end + 1))) {
    text = chunk.substr(0, line_end + 1);
  }
  const ImportCode code = is_orphan ? ImportCode::kPayloadWithoutRecord : ImportCode::kForeignLine;
  const std::int64_t line_count = CountLines(text);
  if (!window.findings.empty()) {
    ImportFinding& previous = window.findings.back();
    const char* previous_end = previous.text.data() + previous.text.size();
    if (previous.code == code && previous.text.data() != nullptr && previous_end == text.data() &&
        previous.text.size() + text.size() <= kMaxForeignBytes) {
      previous.text = {previous.text.data(), previous.text.size() + text.size()};
      previous.line_count += line_count;
      return;
    }
  }
  ImportFinding finding = MakeFinding(
      code, line, offset,
      is_orphan ? "payload lines without a record" : "lines that are not part of the trace");
  finding.text = text;
  finding.line_count = line_count;
  window.findings.push_back(std::move(finding));
}

void RecordReader::FindCandidates(Window& window,
                                  std::vector<std::pair<std::size_t, std::size_t>>& repeats) {
  std::unordered_map<Md5Digest, std::size_t, DigestHasher> pending;
  for (std::size_t index = 0; index < window.records.size(); ++index) {
    LogRecord& record = window.records[index];
    if (record.raw_payload.empty()) continue;
    const std::optional<Md5Digest>& claimed = record.envelope.payload_hash;
    std::uint64_t fingerprint = 0;
    bool was_known = false;
    if (claimed) {
      fingerprint = XXH3_64bits_withSeed(record.raw_payload.data(), record.raw_payload.size(),
                                         shared_.fingerprint_seed) |
                    1;
      const PayloadIndex::Entry* known = shared_.index->Find(*claimed);
      if (known != nullptr && known->fingerprint == fingerprint) {
        record.payload_state = PayloadState::kOk;
        record.payload_id = known->id;
        continue;
      }
      was_known = known != nullptr;
      const auto [entry, is_new] = pending.try_emplace(*claimed, candidates_.size());
      if (!is_new && candidates_[entry->second].fingerprint == fingerprint) {
        repeats.emplace_back(index, candidates_[entry->second].record);
        continue;
      }
      window_is_odd_ |= !is_new;
    }
    // A header that ends in CR comes from a file whose line ends were changed: try that form first.
    const char* header_end = record.envelope_json.data() + record.envelope_json.size();
    const bool remove_cr = *header_end == '\r';
    char* content = window.arena.Allocate(record.raw_payload.size() + kRemoveTabsSlack);
    const std::size_t size = RemoveTabs(record.raw_payload, remove_cr, content);
    window.arena.GiveBack(record.raw_payload.size() + kRemoveTabsSlack - size);
    candidates_.push_back({index, fingerprint, remove_cr, was_known});
    messages_.emplace_back(content, size);
  }
}

Result<void> RecordReader::Settle(Window& window, const Candidate& candidate,
                                  std::string_view content, Md5Digest md5) {
  LogRecord& record = window.records[candidate.record];
  const std::optional<Md5Digest>& claimed = record.envelope.payload_hash;
  bool removed_cr = candidate.removed_cr;
  if (claimed && md5 != *claimed && (removed_cr || EveryLineEndsInCr(record.raw_payload))) {
    // The other reading: with the CRs if they were removed, without if they were not.
    char* other = window.arena.Allocate(record.raw_payload.size() + kRemoveTabsSlack);
    const std::string_view other_content(other, RemoveTabs(record.raw_payload, !removed_cr, other));
    const Md5Digest other_md5 = Md5(other_content);
    if (other_md5 == *claimed || removed_cr) {
      content = other_content;
      md5 = other_md5;
      removed_cr = !removed_cr;
    }
  }
  const bool is_verified = claimed && md5 == *claimed;
  record.payload_state = !record.envelope.names_payload ? PayloadState::kUnhashed
                         : !is_verified                 ? PayloadState::kMismatch
                         : removed_cr                   ? PayloadState::kCrRemoved
                                                        : PayloadState::kOk;
  // A verified payload that was unknown a moment ago can only have come in with an oddity of this
  // window.
  if (!is_verified || candidate.was_known || window_is_odd_) {
    window_is_odd_ |= !is_verified;
    if (const PayloadIndex::Entry* known = shared_.index->Find(md5); known != nullptr) {
      record.payload_id = known->id;
      return {};
    }
  }
  record.payload_id = shared_.next_payload_id++;
  record.payload_is_new = true;
  record.payload_md5 = md5;
  record.payload = content;
  record.payload_is_text = IsTextSafe(content);
  // Only verified bytes may stand for their hash in later comparisons; with CRs removed the raw
  // bytes are not the content.
  const bool is_plain = record.payload_state == PayloadState::kOk;
  return shared_.index->Insert(
      {md5, is_plain ? candidate.fingerprint : 0, static_cast<std::uint32_t>(record.payload_id)});
}

Result<void> RecordReader::Verify(Window& window) {
  candidates_.clear();
  messages_.clear();
  window_is_odd_ = false;
  std::vector<std::pair<std::size_t, std::size_t>> repeats;
  FindCandidates(window, repeats);
  digests_.resize(messages_.size());
  Md5Many(messages_, digests_);
  for (std::size_t index = 0; index < candidates_.size(); ++index) {
    RETURN_IF_ERROR(Settle(window, candidates_[index], messages_[index], digests_[index]));
  }
  for (const auto& [repeat, original] : repeats) {
    window.records[repeat].payload_state = window.records[original].payload_state;
    window.records[repeat].payload_id = window.records[original].payload_id;
  }
  for (std::size_t index = 0; index < window.records.size(); ++index) {
    const LogRecord& record = window.records[index];
    const bool is_last = is_at_end_ && carry_.size() == 0 && index + 1 == window.records.size();
    ImportFinding finding =
        MakeFinding(ImportCode::kPayloadMismatch, record.line, record.byte_offset, {});
    finding.record = static_cast<std::int64_t>(index);
    if (record.payload_state == PayloadState::kMismatch && !record.envelope.payload_hash) {
      finding.code = ImportCode::kBadPayloadHash;
      finding.message = "has_payload is not 32 hex digits";
    } else if (record.payload_state == PayloadState::kMismatch) {
      if (is_last) finding.code = ImportCode::kPayloadTruncated;
      finding.message = "the payload does not have the MD5 that has_payload names";
    } else if (record.envelope.names_payload && record.raw_payload.empty()) {
      finding.code = is_last ? ImportCode::kPayloadTruncated : ImportCode::kPayloadMissing;
      finding.message = "has_payload names a payload, but there are no payload lines";
    } else if (record.payload_state == PayloadState::kUnhashed) {
      finding.code = ImportCode::kUnhashedPayload;
      finding.message = "payload lines without has_payload";
    } else {
      continue;
    }
    window.findings.push_back(std::move(finding));
  }
  return {};
}

}  // namespace tlparse
