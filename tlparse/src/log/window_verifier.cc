#include "log/window_verifier.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/json_count.h"
#include "base/md5_lanes.h"
#include "base/utf8.h"
#include "log/damaged_header.h"

namespace tlparse {

namespace {

// Foreign lines that follow one another share an import_log row up to this size.
constexpr std::size_t kMaxForeignBytes = 64 << 10;
// Stanzas of an ordinary window; the memory of a larger vector is freed.
constexpr std::size_t kMostKeptStanzas = 1 << 16;

std::int64_t CountLines(std::string_view text) {
  return std::count(text.begin(), text.end(), '\n') +
         (!text.empty() && text.back() != '\n' ? 1 : 0);
}

std::string_view MessageOf(ImportCode code) {
  return code == ImportCode::kPayloadWithoutRecord ? "payload lines without a record"
         : code == ImportCode::kBinaryNoise        ? "bytes that are no text"
                                                   : "lines that are not part of the trace";
}

// Whether the text of `next` follows that of `previous` and is of the same kind. Noise has line
// feeds too: a short piece beside it is its own.
bool IsSameStretch(const ImportProblem& previous, const ImportProblem& next) {
  constexpr std::size_t kShort = 64;
  if (previous.text.data() == nullptr ||
      previous.text.data() + previous.text.size() != next.text.data() ||
      previous.text.size() + next.text.size() > kMaxForeignBytes)
    return false;
  const auto is_short_of = [](const ImportProblem& one, const ImportProblem& noise) {
    return one.code == ImportCode::kForeignLine && one.text.size() <= kShort &&
           noise.code == ImportCode::kBinaryNoise;
  };
  return previous.code == next.code || is_short_of(previous, next) || is_short_of(next, previous);
}

struct DigestHasher {
  std::size_t operator()(const Md5Digest& digest) const {
    std::size_t value;
    std::memcpy(&value, digest.data(), sizeof value);
    return value;
  }
};

}  // namespace

WindowVerifier::WindowVerifier(ReadShared& shared)
    : shared_(shared), parser_(shared.is_record_key) {}

void WindowVerifier::Verify(Window& window) {
  Split(window);
  FindKnown(window);
  FindUnknown(window);
  digests_.resize(messages_.size());
  Md5Many(messages_, digests_);
  for (std::size_t index = 0; index < unknown_.size(); ++index)
    Judge(window, unknown_[index], messages_[index], digests_[index]);
  for (const Window::Repeat& repeat : window.repeats)
    window.records[repeat.record].payload_state = window.records[repeat.original].payload_state;
  AddPayloadProblems(window);
}

void WindowVerifier::Split(Window& window) {
  const std::string_view bytes = window.bytes.view().substr(0, window.end);
  stanzas_.clear();
  if (stanzas_.capacity() > kMostKeptStanzas) stanzas_.shrink_to_fit();
  window.line_feeds = FindStanzas(bytes, stanzas_);
  for (std::size_t index = 0; index < stanzas_.size(); ++index) {
    const std::size_t begin = stanzas_[index].offset;
    const std::size_t stop =
        index + 1 < stanzas_.size() ? stanzas_[index + 1].offset : bytes.size();
    const std::string_view stanza = bytes.substr(begin, stop - begin);
    const std::int64_t line = stanzas_[index].line + 1;
    if (const std::optional<GlogPrefix> prefix = ParseGlogPrefix(FirstLine(stanza))) {
      AddHeader(window, stanza, *prefix, line);
    } else {
      AddForeign(window, stanza, line);
    }
  }
  for (const auto& [record, payload] : torn_)
    window.records[record].raw_payload = payload.Join(window.arena);
  torn_.clear();
  latest_of_rank_.clear();
  open_record_.reset();
}

void WindowVerifier::AddHeader(Window& window, std::string_view stanza, const GlogPrefix& prefix,
                               std::int64_t line) {
  // Payload lines from here on are not those of the record before; ranks are apart only where every
  // line has its "[rankN]:".
  open_record_.reset();
  if (!prefix.rank) latest_of_rank_.clear();
  if (prefix.rank) latest_of_rank_.erase(*prefix.rank);
  const Envelope* envelope = parser_.Parse(prefix.json);
  if (envelope == nullptr) {
    return AddBroken(window, stanza, line,
                     HasTooManyJsonValues(prefix.json)
                         ? "the header's JSON is damaged or has too many members"
                         : "the header's JSON is damaged");
  }
  open_record_ = window.records.size();
  LogRecord& record = window.records.emplace_back();
  record.line = line;
  record.byte_offset = window.file_offset + (stanza.data() - window.bytes.data());
  record.prefix = prefix;
  record.envelope_json = prefix.json;
  SetTime(window, record);
  record.envelope = *envelope;
  for (std::string_view* text :
       {&record.envelope.kind, &record.envelope.name, &record.envelope.subgraph_name,
        &record.envelope.metadata, &record.envelope.bad_member}) {
    if (text->data() != nullptr) *text = window.arena.Copy(*text);
  }
  const std::size_t line_end = stanza.find('\n');
  if (line_end != std::string_view::npos && line_end + 1 < stanza.size()) {
    record.raw_payload = stanza.substr(line_end + 1);
    if (record.raw_payload.back() == '\n') record.raw_payload.remove_suffix(1);
  } else if (prefix.rank) {
    latest_of_rank_[*prefix.rank] = *open_record_;  // its lines may have its prefix
  }
}

// The record of `stanza` is lost.
void WindowVerifier::AddBroken(Window& window, std::string_view stanza, std::int64_t line,
                               std::string_view what) {
  const std::string_view text =
      stanza.ends_with('\n') ? stanza.substr(0, stanza.size() - 1) : stanza;
  window.problems.push_back(
      {.code = ImportCode::kBrokenHeader,
       .line = line,
       .byte_offset = window.file_offset + (stanza.data() - window.bytes.data()),
       .message = std::string(what) + "; the line and its payload lines are kept as text",
       .text = text,
       .line_count = CountLines(stanza)});
}

// A stanza whose first line was a header, or the rest of one: false if it is none.
bool WindowVerifier::AddDamaged(Window& window, std::string_view stanza, std::int64_t line) {
  if (IsDamagedHeader(FirstLine(stanza), shared_.is_record_key)) {
    open_record_.reset();
    AddBroken(window, stanza, line, "the header's prefix is damaged");
    return true;
  }
  const std::size_t end =
      static_cast<std::size_t>(stanza.data() - window.bytes.data()) + stanza.size();
  if (window.ends_file && end == window.end && stanza.find('\n') == std::string_view::npos &&
      IsStartOfHeader(stanza)) {
    AddBroken(window, stanza, line, "the log ends inside the header's prefix");
    return true;
  }
  // Payload lines behind the second half of a header that a line feed divides.
  if (window.problems.empty() || stanza.find("\n\t") == std::string_view::npos) return false;
  ImportProblem& previous = window.problems.back();
  if (previous.code != ImportCode::kBrokenHeader ||
      previous.text.data() + previous.text.size() + 1 != stanza.data())
    return false;
  const std::string_view text =
      stanza.ends_with('\n') ? stanza.substr(0, stanza.size() - 1) : stanza;
  previous.text = {previous.text.data(), previous.text.size() + 1 + text.size()};
  previous.line_count += CountLines(stanza);
  return true;
}

// Adds TAB lines that were torn off their record; false if the record is complete without them.
bool WindowVerifier::AddTorn(Window& window, std::size_t index, std::string_view lines) {
  const LogRecord& record = window.records[index];
  if (!record.envelope.payload_hash) return false;
  if (lines.ends_with('\n')) lines.remove_suffix(1);
  return torn_.try_emplace(index, record.raw_payload, *record.envelope.payload_hash)
      .first->second.Add(lines);
}

void WindowVerifier::AddForeign(Window& window, std::string_view stanza, std::int64_t line) {
  const std::int64_t offset = window.file_offset + (stanza.data() - window.bytes.data());
  const bool is_orphan = !stanza.empty() && stanza.front() == '\t';
  // "[rank3]:<TAB>…": a payload line to which an aggregator gave the same prefix as to its header.
  if (const std::optional<RankPrefix> rank = ParseRankPrefix(stanza);
      rank && rank->length < stanza.size() && stanza[rank->length] == '\t') {
    const auto record = latest_of_rank_.find(rank->rank);
    if (record != latest_of_rank_.end() &&
        AddTorn(window, record->second, stanza.substr(rank->length)))
      return;
  }
  if (!is_orphan && AddDamaged(window, stanza, line)) return;
  std::string_view text = stanza;
  const std::size_t line_end = stanza.find('\n');
  if (!is_orphan && line_end != std::string_view::npos && line_end + 1 < stanza.size() &&
      open_record_ && AddTorn(window, *open_record_, stanza.substr(line_end + 1))) {
    text = stanza.substr(0, line_end + 1);
  }
  ImportProblem problem{.code = is_orphan       ? ImportCode::kPayloadWithoutRecord
                                : IsNoise(text) ? ImportCode::kBinaryNoise
                                                : ImportCode::kForeignLine,
                        .line = line,
                        .byte_offset = offset,
                        .text = text,
                        .line_count = CountLines(text)};
  if (!window.problems.empty() && IsSameStretch(window.problems.back(), problem)) {
    ImportProblem& previous = window.problems.back();
    if (problem.code == ImportCode::kBinaryNoise) previous.code = problem.code;
    previous.message = MessageOf(previous.code);
    previous.text = {previous.text.data(), previous.text.size() + text.size()};
    previous.line_count += problem.line_count;
    return;
  }
  problem.message = MessageOf(problem.code);
  window.problems.push_back(std::move(problem));
}

// A record without a possible time gets that of its neighbour.
void WindowVerifier::SetTime(Window& window, LogRecord& record) {
  if (record.prefix.has_time) {
    if (!window.last_time_us) window.timeless_count = window.records.size() - 1;
    window.last_time_us = record.prefix.time_us;
    return;
  }
  window.problems.push_back(
      {.code = ImportCode::kImpossibleTime,
       .line = record.line,
       .byte_offset = record.byte_offset,
       .record = static_cast<std::int64_t>(window.records.size()) - 1,
       .message = "the prefix names a date or time of day that does not exist"});
  record.prefix.time_us = window.last_time_us.value_or(0);
  if (!window.last_time_us) window.timeless_count = window.records.size();
}

// Payloads that are known already: the bytes are those that were verified then. One lock for all
// of them.
void WindowVerifier::FindKnown(Window& window) {
  fingerprints_.assign(window.records.size(), 0);
  for (std::size_t index = 0; index < window.records.size(); ++index) {
    const LogRecord& record = window.records[index];
    if (record.raw_payload.empty() || !record.envelope.payload_hash) continue;
    fingerprints_[index] =
        XXH3_64bits_withSeed(record.raw_payload.data(), record.raw_payload.size(),
                             shared_.fingerprint_seed) |
        1;
  }
  const std::shared_lock lock(shared_.index_mutex);
  for (std::size_t index = 0; index < window.records.size(); ++index) {
    if (fingerprints_[index] == 0) continue;
    LogRecord& record = window.records[index];
    const auto known = shared_.index->Find(*record.envelope.payload_hash);
    if (!known || known->fingerprint != fingerprints_[index]) continue;
    record.payload_state = PayloadState::kOk;
    record.payload_id = known->id;
  }
}

void WindowVerifier::FindUnknown(Window& window) {
  unknown_.clear();
  messages_.clear();
  std::unordered_map<Md5Digest, std::size_t, DigestHasher> pending;
  for (std::size_t index = 0; index < window.records.size(); ++index) {
    LogRecord& record = window.records[index];
    if (record.raw_payload.empty() || record.payload_id != 0) continue;
    if (const std::optional<Md5Digest>& claimed = record.envelope.payload_hash; claimed) {
      const auto [entry, is_new] = pending.try_emplace(*claimed, unknown_.size());
      if (!is_new && unknown_[entry->second].fingerprint == fingerprints_[index]) {
        window.repeats.push_back({index, unknown_[entry->second].record});
        continue;
      }
    }
    // A header that ends in CR comes from a file whose line ends were changed: try that form first.
    const char* header_end = record.envelope_json.data() + record.envelope_json.size();
    const bool remove_cr = *header_end == '\r';
    char* content = window.arena.Allocate(record.raw_payload.size() + kRemoveTabsSlack);
    const std::size_t size = RemoveTabs(record.raw_payload, remove_cr, content);
    window.arena.GiveBack(record.raw_payload.size() + kRemoveTabsSlack - size);
    unknown_.push_back({index, fingerprints_[index], remove_cr});
    messages_.emplace_back(content, size);
  }
}

void WindowVerifier::Judge(Window& window, const Unknown& unknown, std::string_view content,
                           Md5Digest md5) {
  LogRecord& record = window.records[unknown.record];
  const std::optional<Md5Digest>& claimed = record.envelope.payload_hash;
  bool removed_cr = unknown.removed_cr;
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
  record.payload_md5 = md5;
  record.payload = content;
  record.payload_is_text = IsTextSafe(content);
  // Only verified bytes may stand for their hash in later comparisons; with CRs removed the raw
  // bytes are not the content.
  const bool is_plain = record.payload_state == PayloadState::kOk;
  window.candidates.push_back({unknown.record, is_plain ? unknown.fingerprint : 0});
}

void WindowVerifier::AddPayloadProblems(Window& window) {
  for (std::size_t index = 0; index < window.records.size(); ++index) {
    const LogRecord& record = window.records[index];
    const bool is_last = window.ends_file && index + 1 == window.records.size();
    ImportProblem problem{.code = ImportCode::kPayloadMismatch,
                          .line = record.line,
                          .byte_offset = record.byte_offset,
                          .record = static_cast<std::int64_t>(index)};
    if (record.payload_state == PayloadState::kMismatch && !record.envelope.payload_hash) {
      problem.code = ImportCode::kBadPayloadHash;
      problem.message = "has_payload is not 32 hex digits";
    } else if (record.payload_state == PayloadState::kMismatch) {
      if (is_last) problem.code = ImportCode::kPayloadTruncated;
      problem.message = "the payload does not have the MD5 that has_payload names";
    } else if (record.envelope.names_payload && record.raw_payload.empty()) {
      problem.code = is_last ? ImportCode::kPayloadTruncated : ImportCode::kPayloadMissing;
      problem.message = "has_payload names a payload, but there are no payload lines";
    } else if (record.payload_state == PayloadState::kUnhashed) {
      problem.code = ImportCode::kUnhashedPayload;
      problem.message = "payload lines without has_payload";
    } else {
      continue;
    }
    window.problems.push_back(std::move(problem));
  }
}

}  // namespace tlparse
