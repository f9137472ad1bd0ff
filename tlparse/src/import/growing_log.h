// One log that may still grow: how much of it was read, and whether the file is still the same
// one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "import/log_state.h"
#include "log/find_logs.h"
#include "log/read_shared.h"
#include "log/record_reader.h"
#include "log/window_settler.h"
#include "log/window_verifier.h"

struct stat;

namespace tlparse {

// The result of comparing the file with what was read of it.
enum class LogChange : std::uint8_t {
  kNone,
  kGrown,      // there are bytes that were not read yet
  kRewritten,  // it was truncated or replaced, or its bytes differ: to be read again
  kGone,       // the file does not exist any more
};

// Not thread-safe. Between two checks it holds no file descriptor and only the bytes of the record
// that is not complete yet.
class GrowingLog {
 public:
  // `is_new`: the file did not exist when its directory was read before.
  GrowingLog(FoundLog found, bool is_new) : found_(std::move(found)), is_new_(is_new) {}

  const FoundLog& found() const { return found_; }
  bool is_begun() const { return reader_ != nullptr; }
  bool is_ended() const { return is_ended_; }
  bool is_ingested() const { return is_ingested_; }
  // When the file last grew, microseconds since the epoch: by its modification time, but not
  // earlier than growth seen here.
  std::int64_t grown_at_us() const { return std::max(mtime_us_, grown_at_us_); }

  // While it was watched. Bytes from standard input may be old.
  bool has_grown() const { return found_.file.empty() && (is_new_ || grown_at_us_ > 0); }

  // Compares the file with what was read of it. A size below what was read counts only when two
  // looks a second apart show it: a network file system may show sizes late. The same holds for a
  // file that was removed.
  LogChange Look(std::int64_t now_us);
  // Whether the file that was begun has the name `other`, and not its own any more.
  bool IsNow(const FoundLog& other) const;
  void Rename(const FoundLog& to);
  // What reading needs in addition to the file; shared by all logs.
  struct Tools {
    ReadShared& shared;
    WindowVerifier verifier{shared};
    EnvelopeParser whole{shared.is_record_key};
  };
  // Opens the file, before the first Next; `may_grow`: as long as EndGrowth was not called. False:
  // its first bytes cannot be read yet.
  Result<bool> Begin(ReadShared& shared, bool may_grow);
  // The next complete records; false: none yet.
  Result<bool> Next(Window& window, Tools& tools);
  // From now on Next treats the file as complete.
  void EndGrowth();
  // Marks all of the file as unread. Remove the rows of what was read first.
  void Restart();
  void MarkEnded() { is_ended_ = true; }
  // Whether the file is unchanged since all of it was read.
  bool IsUnchanged() const;
  // The database already has its current bytes: it is read again when it changes.
  void SetIngested();

  const RecordReader& reader() const { return *reader_; }
  std::int64_t line_count() const { return settler_->line_count(); }  // of what was read
  FileInfo Info() const;

  std::unique_ptr<LogState> state;  // of the typing step; null: not begun, or taken up
  bool has_rows = false;            // rows of it are in the database

 private:
  static constexpr std::int64_t kSettleUs = 1'000'000;
  bool IsOtherFile(const struct ::stat& status) const;
  bool HasOtherBytes() const;
  bool HasOtherContent() const;
  void NoteEnds();
  LogChange AfterDelay(LogChange change, std::int64_t now_us);

  FoundLog found_;
  bool is_new_;
  bool is_seen_ = false;
  std::unique_ptr<RecordReader> reader_;
  std::optional<WindowSettler> settler_;
  bool is_ended_ = false;
  bool is_growing_ = true;
  // Of the file that was begun.
  bool is_ingested_ = false;
  std::uint64_t device_ = 0, inode_ = 0;
  std::int64_t mtime_us_ = 0;
  std::int64_t grown_at_us_ = 0;
  std::int64_t seen_size_ = 0;  // at the latest look
  std::int64_t seen_mtime_ns_ = 0;
  std::int64_t changed_at_us_ = 0;  // when a look showed another size
  std::optional<LogChange> suspected_;
  std::int64_t suspected_at_us_ = 0;
  std::string ends_;  // the first and the last bytes of what was read of the file
};

}  // namespace tlparse
