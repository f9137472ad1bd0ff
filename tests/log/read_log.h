// Builds logs in memory and reads them whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/md5.h"
#include "log/payload_index.h"
#include "log/record_reader.h"
#include "tests/log/whole_reader.h"

namespace tlparse {

// Bytes in memory, `piece` at a time; after them an error if `error` is not empty.
class MemoryInput final : public InputStream {
 public:
  MemoryInput(std::string bytes, std::size_t piece, std::string error)
      : bytes_(std::move(bytes)), piece_(piece), error_(std::move(error)) {}
  Result<std::size_t> Read(char* buffer, std::size_t capacity) override {
    const std::size_t size = std::min({capacity, piece_, bytes_.size() - at_});
    if (size == 0 && !error_.empty()) return Fail(ErrorCode::kDamagedInput, error_);
    std::memcpy(buffer, bytes_.data() + at_, size);
    at_ += size;
    return size;
  }
  std::int64_t compressed_bytes_read() const override { return static_cast<std::int64_t>(at_); }
  std::int64_t total_bytes() const override { return static_cast<std::int64_t>(bytes_.size()); }
  std::string_view compression() const override { return "none"; }

 private:
  std::string bytes_;
  std::size_t piece_;
  std::string error_;
  std::size_t at_ = 0;
};

inline std::string Hex(const Md5Digest& digest) {
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// A header line with `members` in its envelope, without its line end.
inline std::string Header(std::string_view members, std::string_view rank_prefix = "") {
  return std::string(rank_prefix) + "V1121 08:30:01.000000 7 torch/_x.py:28] {" +
         std::string(members) + "}";
}

// `payload` as it stands in a log: TAB lines, each ended by `line_end`.
inline std::string TabLines(std::string_view payload, std::string_view line_end = "\n",
                            std::string_view rank_prefix = "") {
  std::string text;
  while (true) {
    const std::size_t end = payload.find('\n');
    text += std::string(rank_prefix) + "\t" + std::string(payload.substr(0, end)) +
            std::string(line_end);
    if (end == std::string_view::npos) return text;
    payload.remove_prefix(end + 1);
  }
}

inline std::string HasPayload(std::string_view payload) {
  return "\"dynamo_output_graph\": {}, \"has_payload\": \"" + Hex(Md5(payload)) + "\"";
}

// A record with its payload.
inline std::string RecordText(std::string_view payload) {
  return Header(HasPayload(payload)) + "\n" + TabLines(payload);
}

// What a window held, copied.
struct ReadRecord {
  std::int64_t line;
  std::int64_t byte_offset;
  std::string kind;
  PayloadState state;
  std::int64_t payload_id;
  bool is_new;
  PrefixTimeUs time_us;
  std::string payload;  // if new
  std::string raw_payload;
};
struct ReadProblem {
  ImportCode code;
  std::int64_t line;
  std::int64_t byte_offset;
  std::int64_t record;
  std::string message;
  std::string text;
  std::int64_t line_count;
};
struct ReadLog {
  std::vector<ReadRecord> records;
  std::vector<ReadProblem> problems;
  std::int64_t window_count = 0;
  std::int64_t line_count = 0;
  std::int64_t bytes_read = 0;
};

// The payloads of one load, over several files.
struct Load {
  PayloadIndex index{std::filesystem::temp_directory_path().string()};
  ReadShared shared{&index, 1, 42};

  ReadLog Read(std::string text, std::size_t window_bytes = RecordReader::kWindowBytes,
               std::size_t piece = 1 << 20, std::string error = "",
               std::size_t max_record_bytes = RecordReader::kMaxRecordBytes) {
    WholeReader reader(std::make_unique<MemoryInput>(std::move(text), piece, std::move(error)),
                       shared, window_bytes, max_record_bytes);
    ReadLog log;
    Window window;
    while (true) {
      const Result<bool> has_window = reader.Next(window);
      if (!has_window) throw std::runtime_error(has_window.error().message);
      if (!*has_window) break;
      ++log.window_count;
      for (const LogRecord& record : window.records) {
        log.records.push_back({record.line, record.byte_offset, std::string(record.envelope.kind),
                               record.payload_state, record.payload_id, record.payload_is_new,
                               record.prefix.time_us, std::string(record.payload),
                               std::string(record.raw_payload)});
      }
      for (const ImportProblem& problem : window.problems) {
        log.problems.push_back({problem.code, problem.line, problem.byte_offset, problem.record,
                                problem.message, std::string(problem.text), problem.line_count});
      }
    }
    log.line_count = reader.line_count();
    log.bytes_read = reader.file().bytes_read();
    return log;
  }
};

}  // namespace tlparse
