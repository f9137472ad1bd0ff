// Ingests logs that grow: each step reads what was added and writes it to the database, which
// others may read at any time. At the end the database has the rows of one ingest of the finished
// logs, except for ids and the times of the ingest.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "import/growing_log.h"
#include "import/typing_step.h"
#include "log/find_logs.h"
#include "log/payload_index.h"
#include "store/batch_table.h"
#include "store/database.h"

namespace tlparse {

struct FollowOptions {
  // Created if it does not exist. If it has the run already, logs that have changed are read
  // again.
  std::string database_path;
  std::string run_name;
  // The database is on a network file system: it gets a rollback journal, not a write-ahead log.
  bool is_on_network = false;
};

struct FollowStep {
  std::int64_t bytes = 0;  // read, decompressed
  std::int64_t records = 0;
  bool has_changed = false;  // the database
};

struct LogGrowth {
  std::string path;
  std::int64_t grown_at_us = 0;  // when it last grew, since the epoch
  bool has_grown = false;        // since it was added
  bool has_rows = false;
  bool is_removed = false;
};

// Not thread-safe. The database is consistent whenever the process is killed: it has what the
// latest commit wrote, and the next load of the run reads unfinished logs again.
class Follower {
 public:
  static Result<std::unique_ptr<Follower>> Open(const FollowOptions& options);
  ~Follower();
  Follower(const Follower&) = delete;  // its parts refer to one another
  Follower& operator=(const Follower&) = delete;

  // Follows a log; does nothing if it is followed already, also under an earlier name, or if the run
  // has the same bytes of it.
  Result<void> Add(const FoundLog& log);
  // Reads what was added to the logs since the last step, and commits, at the latest every two
  // seconds. A log that was truncated or replaced is read again; the rows of one that was removed
  // stay, unless a log whose name begins with its name has its bytes, compressed or not.
  Result<FollowStep> Step();
  // Treats all logs as complete. No step may follow. Unused payloads and contents of rewritten logs
  // are removed; ImportLogs with `append` makes the rows that are still missing.
  Result<void> Finish();

  // After Finish: whether the run holds the log as it is now.
  bool Holds(const FoundLog& log) const;

  std::int64_t run_id() const { return run_id_; }
  // For answers between two steps. Statements are kept.
  Database& database() { return database_; }
  std::vector<LogGrowth> Growth() const;

 private:
  Follower(Database database, FollowOptions options);
  Result<void> Prepare(bool is_new);
  Result<void> RemoveUnfinished();
  Result<bool> IsIngested(const FoundLog& log);
  Result<bool> TakeOverRenamed(const FoundLog& log);
  Result<bool> IsKeptElsewhere(const GrowingLog& log);
  Result<void> RemoveEarlierNames(const FoundLog& log);
  Result<void> Visit(GrowingLog& log, LogChange change, FollowStep& step);
  Result<void> Read(GrowingLog& log, FollowStep& step);
  Result<bool> Begin(GrowingLog& log, bool may_grow);
  Result<void> RemoveRows(GrowingLog& log);
  Result<void> Restart(GrowingLog& log);
  Result<void> MarkRemoved(GrowingLog& log);
  Result<void> End(GrowingLog& log, const std::string& removed_at);
  Result<void> Pause(GrowingLog& log);
  Result<Window*> FreeWindow();
  Result<void> TypeWindow(Window& window, FollowStep& step);
  Result<void> WriteRows();
  Result<void> BeginTransaction();
  Result<void> Commit();
  FileResult ResultOf(const GrowingLog& log, bool is_whole) const;

  Database database_;
  FollowOptions options_;
  TableSet tables_;
  std::unique_ptr<TypingStep> typing_;
  std::unique_ptr<PayloadIndex> index_;
  ReadShared shared_;
  GrowingLog::Tools tools_;
  std::unique_ptr<BatchWriter> writer_;
  // Rows that are not in the database yet, and the windows that they refer to: of as many logs as
  // fill a batch.
  std::unique_ptr<RowBatch> rows_;
  std::vector<std::unique_ptr<Window>> windows_;
  std::size_t used_windows_ = 0;
  std::size_t pending_bytes_ = 0;
  std::vector<std::pair<std::string, std::int64_t>> new_payloads_;  // hash, id
  std::vector<std::unique_ptr<GrowingLog>> logs_;
  std::unordered_map<std::string, GrowingLog*> by_path_;
  std::int64_t run_id_ = 0;
  bool is_in_transaction_ = false;
  std::int64_t transaction_began_us_ = 0;
  std::size_t transaction_bytes_ = 0;
  bool has_orphans_ = false;
  bool has_stepped_ = false;
};

}  // namespace tlparse
