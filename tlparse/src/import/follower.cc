#include "import/follower.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "import/replace.h"
#include "import/router.h"
#include "import/run_state.h"
#include "model/job_model.h"
#include "queries/import/follower.h"
#include "rows/core.h"
#include "store/schema.h"
#include "store/unfinished_database.h"

namespace tlparse {

namespace {

constexpr std::int64_t kMostTransactionUs = 1'500'000;
// Of log. The pages that they change have room in SQLite's cache: none is written twice.
constexpr std::size_t kMostTransactionBytes = 8 << 20;
// Rows of the logs of a step are written together, until this much of them is read.
constexpr std::size_t kMostPendingBytes = 1 << 20;
constexpr std::size_t kMostWindows = 64;
constexpr std::size_t kMostKeptBytes = 256 << 10;  // of a window that is used again
// Rows that TypingStep::PauseFile writes again.
constexpr std::array<ReplacedTable, 6> kReplaced = {{{"log_file", {"run_id", "path"}},
                                                     {"process"},
                                                     {"compile", {"process_id", "label"}},
                                                     {"attempt"},
                                                     {"graph", {"compile_id"}},
                                                     {"cache_event_row"}}};

std::int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Follower::Follower(Database database, FollowOptions options)
    : database_(std::move(database)),
      options_(std::move(options)),
      typing_(std::make_unique<TypingStep>(tables_)),
      index_(std::make_unique<PayloadIndex>(DirectoryOf(options_.database_path))),
      shared_{index_.get(), 1, RandomSeed(), &IsKnownRecordKey},
      tools_{shared_} {
  tables_.Use<PayloadHashRow>();
  typing_->load_payload = [this](std::int64_t id) {
    Result<std::string> text =
        database_.QueryText(std::string("SELECT content FROM payload_row WHERE id = ?"), id);
    return text ? std::move(*text) : std::string();
  };
}

Follower::~Follower() {
  if (is_in_transaction_) (void)database_.Execute("ROLLBACK").has_value();
}

namespace {

// An empty database, which is there as a whole or not at all.
Result<void> CreateWatched(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<UnfinishedDatabase> temporary,
                   UnfinishedDatabase::Make(path));
  RETURN_IF_ERROR(CreateDatabase(temporary->name()));
  return temporary->Rename(path);
}

}  // namespace

Result<std::unique_ptr<Follower>> Follower::Open(const FollowOptions& options) {
  RemoveAbandonedDatabases(options.database_path);
  if (access(options.database_path.c_str(), F_OK) != 0)
    RETURN_IF_ERROR(CreateWatched(options.database_path));
  ASSIGN_OR_RETURN(Database database,
                   Database::Open(options.database_path, Database::Mode::kAppend));
  if (!options.is_on_network) {
    RETURN_IF_ERROR(database.Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"));
  }
  ASSIGN_OR_RETURN(const std::int64_t runs, database.QueryInt("SELECT count(*) FROM run"));
  std::unique_ptr<Follower> follower(new Follower(std::move(database), options));
  RETURN_IF_ERROR(follower->Prepare(runs == 0));
  follower->database_.KeepStatements();
  return follower;
}

Result<void> Follower::Prepare(bool is_new) {
  RETURN_IF_ERROR(BeginTransaction());
  if (!is_new) RETURN_IF_ERROR(MigrateSchema(database_));
  ASSIGN_OR_RETURN(writer_, BatchWriter::MakeReplacing(database_, tables_, kReplaced));
  rows_ = std::make_unique<RowBatch>(tables_);
  ASSIGN_OR_RETURN(const std::optional<std::int64_t> run_id,
                   FindRunId(database_, options_.run_name));
  run_id_ = run_id.value_or(0);
  if (run_id) RETURN_IF_ERROR(RemoveUnfinished());
  if (is_new) {
    typing_->AddInitialRows(*rows_);
  } else {
    RETURN_IF_ERROR(typing_->Load(database_));
    ASSIGN_OR_RETURN(shared_.next_payload_id, LoadPayloads(database_, *index_));
  }
  if (!run_id) {
    run_id_ = typing_->NextId<RunRow>();
    AddRunRow(run_id_, options_.run_name, *rows_);
  }
  typing_->BeginRun(run_id_);
  RETURN_IF_ERROR(WriteRows());
  // What the answers about a job that runs look up.
  RETURN_IF_ERROR(database_.Execute(
      "CREATE INDEX IF NOT EXISTS compile_by_label ON compile(process_id, label);"
      "CREATE INDEX IF NOT EXISTS metric_by_compile ON compilation_metric_row(compile_id);"
      "CREATE INDEX IF NOT EXISTS chromium_event_open ON chromium_event_row(compile_id) "
      "WHERE phase = 66;"));
  return Commit();
}

// Logs of the run that an earlier watch did not finish are read again. So are those of an ingest,
// if they have changed (Add).
Result<void> Follower::RemoveUnfinished() {
  std::vector<std::string> paths;
  {
    FOR_EACH_ROW(const UnfinishedLog& log, Query<UnfinishedLog>(database_, {.run_id = run_id_})) {
      paths.emplace_back(log.path);
    }
  }
  for (const std::string& path : paths) RETURN_IF_ERROR(RemoveLogRows(database_, run_id_, path));
  return paths.empty() ? Result<void>() : RemoveOrphans(database_);
}

Result<FollowStep> Follower::Step() {
  FollowStep step;
  has_stepped_ = true;
  for (const std::unique_ptr<GrowingLog>& log : logs_) {
    if (log->is_ended()) continue;
    RETURN_IF_ERROR(Visit(*log, log->Look(NowUs()), step));
  }
  step.has_changed = is_in_transaction_;
  RETURN_IF_ERROR(Commit());
  return step;
}

Result<void> Follower::Visit(GrowingLog& log, LogChange change, FollowStep& step) {
  if (change == LogChange::kGone) return MarkRemoved(log);
  if (change == LogChange::kRewritten) {
    RETURN_IF_ERROR(Restart(log));
    RETURN_IF_ERROR(RemoveRows(log));  // the file may stay empty for a while
    change = log.Look(NowUs());
  }
  if (change != LogChange::kGrown) return {};
  if (!log.is_begun()) {
    ASSIGN_OR_RETURN(const bool is_begun, Begin(log, true));
    if (!is_begun) return {};
  }
  return Read(log, step);
}

Result<void> Follower::RemoveRows(GrowingLog& log) {
  if (!log.has_rows) return {};
  RETURN_IF_ERROR(BeginTransaction());
  has_orphans_ = true;
  RETURN_IF_ERROR(WriteRows());  // of logs that may share its contents
  return RemoveLogRows(database_, run_id_, log.found().path);
}

// False: its first bytes cannot be read yet.
Result<bool> Follower::Begin(GrowingLog& log, bool may_grow) {
  ASSIGN_OR_RETURN(const bool is_begun, log.Begin(shared_, may_grow));
  if (!is_begun) return false;
  RETURN_IF_ERROR(BeginTransaction());
  RETURN_IF_ERROR(RemoveRows(log));
  typing_->ReserveRecordIds();
  typing_->BeginFile(log.Info());
  log.state = typing_->SetAside();
  log.has_rows = true;
  return true;
}

Result<void> Follower::Read(GrowingLog& log, FollowStep& step) {
  bool is_taken_up = false;
  while (true) {
    ASSIGN_OR_RETURN(Window* const window, FreeWindow());
    ASSIGN_OR_RETURN(const bool has_records, log.Next(*window, tools_));
    if (!has_records) break;
    RETURN_IF_ERROR(BeginTransaction());
    if (!is_taken_up) typing_->TakeUp(std::move(log.state));
    is_taken_up = true;
    RETURN_IF_ERROR(TypeWindow(*window, step));
    if (NowUs() - transaction_began_us_ > kMostTransactionUs ||
        transaction_bytes_ >= kMostTransactionBytes) {
      RETURN_IF_ERROR(Pause(log));
      RETURN_IF_ERROR(Commit());
    }
  }
  if (!is_taken_up) return {};
  RETURN_IF_ERROR(BeginTransaction());
  RETURN_IF_ERROR(Pause(log));
  log.state = typing_->SetAside();
  return log.reader().is_odd() ? Restart(log) : Result<void>();
}

Result<Window*> Follower::FreeWindow() {
  if (used_windows_ == kMostWindows || pending_bytes_ >= kMostPendingBytes || rows_->IsFull())
    RETURN_IF_ERROR(WriteRows());
  if (used_windows_ == windows_.size()) windows_.push_back(std::make_unique<Window>());
  return windows_[used_windows_].get();
}

Result<void> Follower::TypeWindow(Window& window, FollowStep& step) {
  ++used_windows_;
  pending_bytes_ += window.bytes.size();
  transaction_bytes_ += window.bytes.size();
  RETURN_IF_ERROR(typing_->Type(window, {}, *rows_));
  for (const LogRecord& record : window.records) {
    if (record.payload_is_new)
      new_payloads_.emplace_back(ToHex(record.payload_md5), record.payload_id);
  }
  step.records += static_cast<std::int64_t>(window.records.size());
  step.bytes += static_cast<std::int64_t>(window.bytes.size());
  return {};
}

FileResult Follower::ResultOf(const GrowingLog& log, bool is_whole) const {
  const RecordReader& reader = log.reader();
  return {reader.bytes_read(), log.line_count(), std::string(reader.input().compression()),
          is_whole ? reader.ContentHash() : std::string()};
}

Result<void> Follower::Pause(GrowingLog& log) {
  const FileResult progress = ResultOf(log, false);
  std::optional<Error> error;
  RETURN_IF_ERROR(typing_->PauseFile(progress, *rows_, [&]() -> RowBatch* {
    if (const Result<void> written = WriteRows(); !written) error = written.error();
    return error ? nullptr : rows_.get();
  }));
  return {};
}

// The log is complete: its final rows are written. `removed_at`: when its removal was noticed.
Result<void> Follower::End(GrowingLog& log, const std::string& removed_at) {
  FollowStep step;
  RETURN_IF_ERROR(BeginTransaction());
  typing_->TakeUp(std::move(log.state));
  log.EndGrowth();
  while (true) {
    ASSIGN_OR_RETURN(Window* const window, FreeWindow());
    ASSIGN_OR_RETURN(const bool has_records, log.Next(*window, tools_));
    if (!has_records) break;
    RETURN_IF_ERROR(TypeWindow(*window, step));
  }
  // Without a hash the log counts as changed, and the next load of the run reads it again.
  const FileResult result = ResultOf(log, !log.reader().is_odd());
  if (!removed_at.empty()) typing_->LogRemovedFile(result.size_bytes, removed_at, *rows_);
  RETURN_IF_ERROR(typing_->EndFile(
      result, *rows_, [&]() -> RowBatch* { return WriteRows() ? rows_.get() : nullptr; }));
  log.MarkEnded();
  return {};
}

Result<void> Follower::MarkRemoved(GrowingLog& log) {
  if (!log.is_begun()) {
    log.MarkEnded();
    return {};
  }
  ASSIGN_OR_RETURN(const bool is_kept, IsKeptElsewhere(log));
  if (is_kept) {
    RETURN_IF_ERROR(Restart(log));
    RETURN_IF_ERROR(RemoveRows(log));
    log.has_rows = false;
    log.MarkEnded();
    return {};
  }
  const std::time_t now = std::time(nullptr);
  return End(log, fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now)));
}

Result<void> Follower::Restart(GrowingLog& log) {
  if (log.state != nullptr) {
    // Its end is not to be written; only the states of its graphs are forgotten.
    typing_->TakeUp(std::move(log.state));
    typing_->Abandon();
  }
  log.Restart();
  return {};
}

Result<void> Follower::Finish() {
  for (const std::unique_ptr<GrowingLog>& log : logs_) {
    if (log->is_ended() || log->is_ingested()) continue;
    if (!log->is_begun()) {
      if (access(log->found().bytes_path().c_str(), R_OK) != 0) continue;
      RETURN_IF_ERROR(Begin(*log, false));
    }
    RETURN_IF_ERROR(End(*log, {}));
    if (NowUs() - transaction_began_us_ > kMostTransactionUs) RETURN_IF_ERROR(Commit());
  }
  RETURN_IF_ERROR(BeginTransaction());
  if (has_orphans_) RETURN_IF_ERROR(RemoveOrphans(database_));
  RETURN_IF_ERROR(WriteJobModel(database_, run_id_));
  return Commit();
}

bool Follower::Holds(const FoundLog& log) const {
  const auto known = by_path_.find(log.path);
  return known != by_path_.end() && known->second->IsUnchanged();
}

std::vector<LogGrowth> Follower::Growth() const {
  std::vector<LogGrowth> growth;
  for (const std::unique_ptr<GrowingLog>& log : logs_) {
    growth.push_back(
        {log->found().path, log->grown_at_us(), log->has_grown(), log->has_rows, log->is_ended()});
  }
  return growth;
}

Result<void> Follower::WriteRows() {
  // Written by an earlier pause of their log.
  for (const auto& [table, record_id] : typing_->TakeWithdrawn()) {
    ASSIGN_OR_RETURN(
        Statement* const remove,
        database_.PrepareKept(fmt::format("DELETE FROM \"{}\" WHERE record_id = ?", table)));
    remove->Bind(1, record_id);
    RETURN_IF_ERROR(remove->Run());
  }
  std::sort(new_payloads_.begin(), new_payloads_.end());
  for (const auto& [hash, id] : new_payloads_) rows_->Add(PayloadHashRow{.hash = hash, .id = id});
  new_payloads_.clear();
  const Result<void> written = writer_->Insert(*rows_);
  rows_->Clear();
  for (; used_windows_ > 0; --used_windows_) {
    Window& window = *windows_[used_windows_ - 1];
    if (window.bytes.size() > kMostKeptBytes) window = Window();
  }
  pending_bytes_ = 0;
  return written;
}

Result<void> Follower::BeginTransaction() {
  if (is_in_transaction_) return {};
  RETURN_IF_ERROR(database_.Execute("BEGIN IMMEDIATE"));
  is_in_transaction_ = true;
  transaction_began_us_ = NowUs();
  transaction_bytes_ = 0;
  return {};
}

Result<void> Follower::Commit() {
  if (!is_in_transaction_) return {};
  RETURN_IF_ERROR(WriteRows());
  if (typing_->TakeProcessesChanged()) RETURN_IF_ERROR(WriteJobModel(database_, run_id_));
  RETURN_IF_ERROR(database_.Execute("COMMIT"));
  is_in_transaction_ = false;
  return {};
}

}  // namespace tlparse
