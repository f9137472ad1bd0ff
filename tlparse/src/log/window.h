// A piece of a log: its bytes, and the records and problems in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/md5.h"
#include "enums/core.h"
#include "log/byte_buffer.h"
#include "log/envelope.h"
#include "log/glog_prefix.h"
#include "log/import_code.h"

namespace tlparse {

// One record of the log. Views live as long as the Window.
struct LogRecord {
  std::int64_t line = 0;         // 1-based
  std::int64_t byte_offset = 0;  // in the decompressed file
  GlogPrefix prefix;
  std::string_view envelope_json;
  Envelope envelope;  // its views are valid
  PayloadState payload_state = PayloadState::kAbsent;
  std::int64_t payload_id = 0;  // 0: no payload
  bool payload_is_new = false;  // not in the database yet: must be stored
  // The next three are set if the payload is new.
  bool payload_is_text = false;  // valid UTF-8 without NUL
  Md5Digest payload_md5{};       // true MD5 of the content
  std::string_view payload;      // without tabs
  std::string_view raw_payload;  // the TAB lines as in the log, first TAB included, last LF not
};

struct ImportProblem {
  ImportCode code = ImportCode::kForeignLine;
  std::int64_t line = 0;  // 1-based; 0: none
  std::int64_t byte_offset = -1;
  std::int64_t record = -1;  // index in Window::records, -1: none
  std::string message{};
  std::string_view text{};  // lives as long as the Window
  std::int64_t line_count = 1;
};

// One stretch of a file (about 2 MiB, or one record if that is larger). It is read in three steps:
// RecordReader::Fill, WindowVerifier, WindowSettler.
struct Window {
  ByteBuffer bytes;  // the stretch
  Arena arena;       // payloads without tabs, joined pieces, envelope strings
  std::vector<LogRecord> records;
  std::vector<ImportProblem> problems;
  bool ends_file = false;
  // Of an ordinary window: memory for more is freed by Clear.
  static constexpr std::size_t kMostKeptRecords = 8192;
  void Clear();

  // The members below pass data from one step of reading to the next.
  std::size_t end = 0;           // of the stretch; the next window begins here
  std::int64_t file_offset = 0;  // of the first byte, in the file
  std::int64_t line_feeds = 0;   // in the stretch. Until the line number of its start is known,
                                 // lines of records and problems count from its first line
  std::optional<ImportProblem> input_error;  // with the last window
  std::size_t timeless_count = 0;            // records before the first one with a valid time
  std::optional<PrefixTimeUs> last_time_us;  // of the last record that has one
  // Payloads that were unknown when the window was verified.
  struct Candidate {
    std::size_t record;
    std::uint64_t fingerprint;  // 0: must not be used for later comparisons
  };
  std::vector<Candidate> candidates;
  struct Repeat {
    std::size_t record;
    std::size_t original;  // the record of this window that has the same payload
  };
  std::vector<Repeat> repeats;
};

}  // namespace tlparse
