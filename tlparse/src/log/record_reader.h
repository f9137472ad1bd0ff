// Cuts a log into records, window by window: prefix, envelope, payload without tabs, verified by
// its MD5. What is damaged or foreign becomes an ImportFinding; nothing is dropped silently, and no input
// stops the reader.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/input.h"
#include "base/result.h"
#include "enums/core.h"
#include "log/byte_buffer.h"
#include "log/envelope.h"
#include "log/glog_prefix.h"
#include "log/import_code.h"
#include "log/line_index.h"
#include "log/payload_index.h"
#include "log/payload_text.h"

namespace tlparse {

// One record of the log. Views live as long as the Window.
struct LogRecord {
  std::int64_t line = 0;         // 1-based
  std::int64_t byte_offset = 0;  // in the decompressed file
  GlogPrefix prefix;
  std::string_view envelope_json;
  Envelope envelope;  // its views are valid
  PayloadState payload_state = PayloadState::kAbsent;
  std::int64_t payload_id = 0;   // 0: no payload
  bool payload_is_new = false;   // first time in this database: `payload` is set and must be stored
  bool payload_is_text = false;  // valid UTF-8 without NUL (set if new)
  Md5Digest payload_md5{};       // true MD5 of the content (set if new)
  std::string_view payload;      // without tabs; set if new
  std::string_view raw_payload;  // the TAB lines as in the log, first TAB included, last LF not
};

struct ImportFinding {
  ImportCode code = ImportCode::kForeignLine;
  std::int64_t line = 0;  // 1-based; 0: none
  std::int64_t byte_offset = -1;
  std::int64_t record = -1;  // index in Window::records, -1: none
  std::string message;
  std::string_view text;  // lives as long as the Window
  std::int64_t line_count = 1;
};

// What one stretch of a file (about 2 MiB, or one record if that is larger) holds.
struct Window {
  ByteBuffer bytes;  // the stretch
  Arena arena;       // payloads without tabs, joined pieces, envelope strings
  std::vector<LogRecord> records;
  std::vector<ImportFinding> findings;
  bool ends_file = false;
  void Clear();
};

// Reads one file. Used by one thread at a time.
class RecordReader {
 public:
  struct Shared {
    PayloadIndex* index;                                  // payloads of the database
    std::int64_t next_payload_id;                         // ascends by one per new payload
    std::uint64_t fingerprint_seed;                       // random per process
    EnvelopeParser::IsRecordKey is_record_key = nullptr;  // which keys name a kind of record
  };
  static constexpr std::size_t kWindowBytes = 2 << 20;
  // A record that is longer is cut; SQLite takes no value above 1,000,000,000 bytes.
  static constexpr std::size_t kMaxRecordBytes = 768 << 20;
  // `shared` outlives the reader and goes from one file to the next. What is read does not depend
  // on `window_bytes`; tests make windows and limits small.
  RecordReader(std::unique_ptr<InputStream> input, Shared& shared,
               std::size_t window_bytes = kWindowBytes,
               std::size_t max_record_bytes = kMaxRecordBytes);

  // Fills `window` (cleared first). False: the file had ended before; window is empty. After the
  // last window ends_file is true. kIo only if the index cannot be extended (disk full); input
  // errors are findings.
  Result<bool> Next(Window& window);

  // Of the file so far.
  std::int64_t bytes_read() const { return bytes_read_; }
  std::int64_t line_count() const { return line_count_; }
  std::int64_t record_count() const { return record_count_; }
  std::string ContentHash() const;  // XXH3-128 of all bytes read, hex
  const InputStream& input() const { return *input_; }

 private:
  // Payloads of a window that may be new.
  struct Candidate {
    std::size_t record;
    std::uint64_t fingerprint;
    bool removed_cr;
    bool was_known;  // its claimed hash stood in the index already
  };
  // Reads until the window holds a whole record; returns where the unfinished one begins.
  std::size_t Fill(Window& window);
  void Split(Window& window, std::size_t end);
  void AddHeader(Window& window, std::string_view chunk, const GlogPrefix& prefix,
                 std::int64_t line);
  void AddForeign(Window& window, std::string_view chunk, std::int64_t line);
  bool AddTorn(Window& window, std::size_t record, std::string_view lines);
  void SetTime(Window& window, LogRecord& record);
  Result<void> Verify(Window& window);
  void FindCandidates(Window& window, std::vector<std::pair<std::size_t, std::size_t>>& repeats);
  Result<void> Settle(Window& window, const Candidate& candidate, std::string_view content,
                      Md5Digest md5);

  std::unique_ptr<InputStream> input_;
  Shared& shared_;
  const std::size_t window_bytes_;
  const std::size_t max_record_bytes_;
  EnvelopeParser parser_;
  struct HashFree {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, HashFree> hash_;

  ByteBuffer carry_;  // the unfinished record of the window before
  std::vector<ChunkStart> chunks_;
  std::unordered_map<std::size_t, TornPayload> torn_;  // of the window, by record
  std::optional<std::size_t> open_record_;  // of the window: whose payload torn lines belong to
  // the same among those with "[rankN]:"
  std::unordered_map<std::int64_t, std::size_t> latest_of_rank_;
  std::optional<PrefixTimeUs> last_time_us_;
  std::int64_t window_offset_ = 0;  // of the window's first byte in the file
  std::int64_t window_line_ = 0;    // 0-based line of the window's first byte
  std::int64_t bytes_read_ = 0;
  std::int64_t line_count_ = 0;
  std::int64_t record_count_ = 0;
  bool is_at_end_ = false;
  std::string input_error_;  // empty: none
  bool is_done_ = false;

  // Scratch of Verify.
  std::vector<Candidate> candidates_;
  std::vector<std::string_view> messages_;
  std::vector<Md5Digest> digests_;
  // Something in this window was stored under a hash that nobody claims
  bool window_is_odd_ = false;
};

}  // namespace tlparse
