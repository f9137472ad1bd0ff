// RecordReader on any bytes, read twice in one load: once in windows of the usual size, once in
// windows of 64 bytes. Both find the same records; every line is in a record or in a problem; ids
// ascend; a payload that counts as verified has the MD5 that its header claims, and so has the row
// it is stored under.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/md5.h"
#include "log/payload_index.h"
#include "tests/log/whole_reader.h"

namespace {

using tlparse::LogRecord;
using tlparse::Md5Digest;
using tlparse::PayloadState;

void Require(bool is_true, const char* what) {
  if (is_true) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

// Hands out at most 7 bytes a call: the reader must not take a short read for the end.
class BytesInput final : public tlparse::InputStream {
 public:
  BytesInput(std::string_view bytes, std::size_t piece) : bytes_(bytes), piece_(piece) {}
  tlparse::Result<std::size_t> Read(char* buffer, std::size_t capacity) override {
    const std::string_view part = bytes_.substr(0, std::min(capacity, piece_));
    if (!part.empty()) std::memcpy(buffer, part.data(), part.size());
    bytes_.remove_prefix(part.size());
    return part.size();
  }
  std::int64_t compressed_bytes_read() const override { return 0; }
  std::int64_t total_bytes() const override { return -1; }
  std::string_view compression() const override { return "none"; }

 private:
  std::string_view bytes_;
  std::size_t piece_;
};

// The line as a payload line if it is one with the prefix of an aggregator.
std::string_view WithoutRank(std::string_view line) {
  const auto rank = tlparse::ParseRankPrefix(line);
  return rank && rank->length < line.size() && line[rank->length] == '\t'
             ? line.substr(rank->length)
             : line;
}

// Adds `step` to the count of every line of `text` that is not empty.
void Count(std::map<std::string, int, std::less<>>& lines, std::string_view text, int step) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = WithoutRank(text.substr(0, end));
    if (!line.empty()) lines[std::string(line)] += step;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

std::string WithoutTabs(std::string_view raw) {
  std::string content;
  bool is_at_start = true;
  for (const char c : raw) {
    if (!(is_at_start && c == '\t')) content += c;
    is_at_start = c == '\n';
  }
  return content;
}

struct Seen {
  std::int64_t line;
  std::int64_t byte_offset;
  std::string kind;
  PayloadState payload_state;
  Md5Digest payload;  // of its row; zeros without one
  bool operator==(const Seen&) const = default;
};

void CheckPayload(const LogRecord& record, std::vector<Md5Digest>& stored) {
  if (record.payload_is_new) {
    Require(record.payload_id == static_cast<std::int64_t>(stored.size()), "payload ids ascend");
    Require(tlparse::Md5(record.payload) == record.payload_md5, "MD5 of a new payload");
    for (const Md5Digest& other : stored) {
      Require(other != record.payload_md5, "a payload is stored once");
    }
    stored.push_back(record.payload_md5);
  }
  if (record.raw_payload.empty()) {
    Require(record.payload_state == PayloadState::kAbsent, "no lines, no payload");
    Require(record.payload_id == 0, "no lines, no row");
    return;
  }
  Require(record.payload_id > 0 && record.payload_id < static_cast<std::int64_t>(stored.size()),
          "payload lines have a row");
  const Md5Digest& row = stored[static_cast<std::size_t>(record.payload_id)];
  const auto& claimed = record.envelope.payload_hash;
  const bool is_verified =
      record.payload_state == PayloadState::kOk || record.payload_state == PayloadState::kCrRemoved;
  if (is_verified) Require(claimed && row == *claimed, "a verified payload is stored as claimed");
  if (record.payload_state == PayloadState::kMismatch) {
    Require(!claimed || row != *claimed, "a damaged payload is not stored as what it claims to be");
  }
  const Md5Digest plain = tlparse::Md5(WithoutTabs(record.raw_payload));
  if (record.payload_state == PayloadState::kOk) Require(plain == row, "kOk: as in the log");
  if (claimed && plain == *claimed) Require(is_verified, "a good payload is verified");
}

std::vector<Seen> ReadAll(std::string_view text, std::size_t piece, std::size_t window_bytes,
                          tlparse::ReadShared& shared, std::vector<Md5Digest>& stored) {
  tlparse::WholeReader reader(std::make_unique<BytesInput>(text, piece), shared, window_bytes);
  std::map<std::string, int, std::less<>> lines;
  Count(lines, text, 1);
  std::vector<Seen> seen;
  tlparse::Window window;
  bool ended = false;
  while (true) {
    const auto has_window = reader.Next(window);
    Require(has_window.has_value(), "the index can be extended");
    if (!*has_window) break;
    Require(!ended, "nothing after the last window");
    ended = window.ends_file;
    for (const LogRecord& record : window.records) {
      Require(record.line > (seen.empty() ? 0 : seen.back().line), "records ascend by line");
      Require(record.byte_offset > (seen.empty() ? -1 : seen.back().byte_offset), "and by offset");
      const std::string_view rest = text.substr(static_cast<std::size_t>(record.byte_offset));
      Count(lines, rest.substr(0, rest.find('\n')), -1);
      Count(lines, record.raw_payload, -1);
      CheckPayload(record, stored);
      seen.push_back({record.line, record.byte_offset, std::string(record.envelope.kind),
                      record.payload_state, stored[static_cast<std::size_t>(record.payload_id)]});
    }
    for (const tlparse::ImportProblem& problem : window.problems) {
      Require(problem.record < static_cast<std::int64_t>(window.records.size()), "record exists");
      Require(problem.line >= 0 && problem.line_count >= 1, "a problem has a place");
      Require(problem.byte_offset <= static_cast<std::int64_t>(text.size()), "inside the file");
      Require(!problem.message.empty(), "a problem has a message");
      Count(lines, problem.text, -1);
    }
  }
  Require(ended || text.empty(), "the last window says so");
  for (const auto& [line, count] : lines) Require(count == 0, "every line is kept once");
  Require(reader.file().bytes_read() == static_cast<std::int64_t>(text.size()),
          "every byte is read");
  Require(reader.record_count() == static_cast<std::int64_t>(seen.size()), "records are counted");
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  tlparse::PayloadIndex index(std::filesystem::temp_directory_path().string());
  tlparse::ReadShared shared{&index, 1, 42};
  std::vector<Md5Digest> stored(1);  // by payload id
  const std::vector<Seen> seen = ReadAll(text, 1 << 20, std::size_t{2} << 20, shared, stored);
  const std::vector<Seen> again = ReadAll(text, 7, 64, shared, stored);
  Require(seen == again, "the same records whatever the size of the window");
  return 0;
}
