#include "import/importer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <thread>

#include "base/worker_threads.h"
#include "import/pipeline.h"
#include "import/replace.h"
#include "import/router.h"
#include "import/run_state.h"
#include "inputs/input_step.h"
#include "inputs/join/join.h"
#include "inputs/join/join_inputs.h"
#include "log/payload_index.h"
#include "model/job_model.h"
#include "queries/import/importer.h"
#include "rows/core.h"
#include "store/schema.h"
#include "store/unfinished_database.h"
#include "store/write_behind.h"

namespace tlparse {

namespace {

namespace fs = std::filesystem;

FileInfo InfoOf(const FoundLog& log) {
  FileInfo info;
  info.path = log.path;
  if (log.rank) info.name_rank = *log.rank;
  struct stat status {};
  const bool is_file =
      log.path != "-" && stat(log.path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  if (is_file) {
    info.has_mtime = true;
    info.mtime_us = static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000 +
                    status.st_mtim.tv_nsec / 1000;
  } else {
    info.mtime_us = std::chrono::duration_cast<std::chrono::microseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  }
  return info;
}

// One load into an open, empty or existing database.
class Load {
 public:
  // `threads`: for the logs, as in ImportOptions.
  Load(Database& database, const ImportOptions& options, bool is_new, int threads)
      : database_(database),
        options_(options),
        is_new_(is_new),
        threads_(threads),
        runtime_(tables_),
        typing_(std::make_unique<TypingStep>(tables_)),
        index_(std::make_unique<PayloadIndex>(DirectoryOf(options.database_path))),
        shared_{index_.get(), 1, RandomSeed(), &IsKnownRecordKey} {
    tables_.Use<PayloadHashRow>();
  }
  ~Load() {
    if (release_.joinable()) release_.join();
  }

  Result<ImportSummary> Run(const std::vector<FoundLog>& logs,
                            const std::vector<SkippedFile>& skipped) {
    ASSIGN_OR_RETURN(const bool run_exists, FindRun());
    // Rows of earlier states of these logs go before anything is taken over from the database.
    std::vector<PipelineFile> files;
    std::int64_t bytes_total = 0;
    for (const FoundLog& log : logs) {
      if (run_exists && log.path == "-")
        RETURN_IF_ERROR(RemoveLog(database_, summary_.run_id, log.path));
      if (run_exists && log.path != "-") {
        // A watch has the rows of each log that is there, as an ingest of all of them.
        ASSIGN_OR_RETURN(
            const bool is_unchanged,
            ReplaceChangedLog(database_, summary_.run_id, log.path, !options_.ends_watch));
        if (is_unchanged) {
          ++summary_.unchanged_count;
          continue;
        }
      }
      bytes_total = log.path == "-" || bytes_total < 0 ? -1 : bytes_total + log.size_bytes;
      files.push_back({InfoOf(log), nullptr});
    }
    ASSIGN_OR_RETURN(const std::vector<RuntimeInput> inputs, ChangedInputs(run_exists));
    for (const RuntimeInput& input : inputs) {
      if (bytes_total >= 0) bytes_total += input.size_bytes;
    }
    if (options_.ends_watch && run_exists) RETURN_IF_ERROR(RemoveSkippedRows());
    const bool has_rows = !files.empty() || !inputs.empty() || !skipped.empty();
    if (options_.ends_watch && run_exists && !has_rows) {
      RETURN_IF_ERROR(JoinRun(database_, summary_.run_id));
      RETURN_IF_ERROR(JoinInputs(database_, summary_.run_id));
      return Finish();
    }
    ASSIGN_OR_RETURN(writer_, BatchWriter::Make(database_, tables_));
    RETURN_IF_ERROR(Prepare(run_exists));
    summary_.log_count = static_cast<std::int64_t>(files.size());
    Pipeline::Hooks hooks;
    hooks.on_progress = [&](const Pipeline::Progress& progress) {
      bytes_done_ = progress.bytes_done;
      if (options_.on_progress)
        options_.on_progress({progress.bytes_done, bytes_total, progress.records, progress.path});
    };
    hooks.after_reading = [&](const auto& write) { return WriteHashes(write); };
    RETURN_IF_ERROR(Pipeline(*typing_, *writer_, tables_, shared_, {threads_, options_.times})
                        .Run(std::move(files), hooks));
    const StepTimer timer(options_.times, LoadStep::kFinishing);
    const bool has_new = summary_.log_count > 0 || !inputs.empty() || options_.ends_watch;
    if (summary_.unchanged_count == 0 || has_new) RETURN_IF_ERROR(LogSkipped(skipped));
    // The joins look up the rows of each profile, and texts. Rows of profiles are added in the order
    // of their indexes; an index that is made afterwards sorts millions of them in memory.
    if (is_new_ && !inputs.empty()) RETURN_IF_ERROR(CreateIndexes(database_));
    RETURN_IF_ERROR(ReadRuntimeInputs(inputs, bytes_total));
    if (run_exists) RETURN_IF_ERROR(RemoveRepeatedSkippedRows());
    if (has_new) RETURN_IF_ERROR(JoinRun(database_, summary_.run_id));
    if (has_new) RETURN_IF_ERROR(JoinInputs(database_, summary_.run_id));
    return Finish();
  }

 private:
  Result<bool> FindRun() {
    ASSIGN_OR_RETURN(const std::optional<std::int64_t> run_id,
                     FindRunId(database_, options_.run_name));
    summary_.run_id = run_id.value_or(0);
    return run_id.has_value();
  }

  Result<void> Prepare(bool run_exists) {
    RowBatch rows(tables_);
    if (is_new_) {
      typing_->AddInitialRows(rows);
    } else {
      RETURN_IF_ERROR(typing_->Load(database_));
      ASSIGN_OR_RETURN(shared_.next_payload_id, LoadPayloads(database_, *index_));
    }
    if (!run_exists) {
      summary_.run_id = typing_->NextId<RunRow>();
      AddRunRow(summary_.run_id, options_.run_name, rows);
    }
    typing_->BeginRun(summary_.run_id);
    return writer_->Insert(rows);
  }

  // In ascending order, so that the table is filled from left to right.
  Result<void> WriteHashes(
      const std::function<bool(const std::function<void(RowBatch&)>&)>& write) {
    constexpr std::size_t kRows = 20'000;
    std::vector<PayloadIndex::Entry> entries;
    bool accepts_rows = true;
    const auto flush = [&] {
      accepts_rows = accepts_rows && write([&](RowBatch& rows) {
                       for (const PayloadIndex::Entry& entry : entries)
                         rows.Add(PayloadHashRow{.hash = ToHex(entry.md5), .id = entry.id});
                     });
      entries.clear();
    };
    RETURN_IF_ERROR(index_->ForEachSorted([&](const PayloadIndex::Entry& entry) {
      entries.push_back(entry);
      if (entries.size() == kRows) flush();
    }));
    flush();
    return {};
  }

  // Those that the run does not hold yet; rows of their earlier states go.
  Result<std::vector<RuntimeInput>> ChangedInputs(bool run_exists) {
    std::vector<RuntimeInput> changed;
    for (const RuntimeInput& input : options_.runtime_inputs) {
      bool is_unchanged = false;
      if (run_exists) {
        ASSIGN_OR_RETURN(is_unchanged,
                         ReplaceChangedProfile(database_, summary_.run_id, input.path));
      }
      if (is_unchanged) {
        ++summary_.unchanged_count;
      } else {
        changed.push_back(input);
      }
    }
    return changed;
  }

  Result<void> ReadRuntimeInputs(const std::vector<RuntimeInput>& inputs,
                                 std::int64_t bytes_total) {
    RuntimeStep::Load load{database_,        *writer_,
                           typing_->texts(), typing_->import_log(),
                           summary_.run_id,  options_.runtime};
    std::int64_t bytes_before = bytes_done_;
    for (const RuntimeInput& input : inputs) {
      const auto on_progress = [&](std::int64_t bytes) {
        if (options_.on_progress)
          options_.on_progress(
              {bytes_before + bytes, bytes_total, typing_->record_count(), input.path});
      };
      ASSIGN_OR_RETURN(const bool is_kept, runtime_.Read(input, load, on_progress));
      if (is_kept) ++summary_.profile_count;
      bytes_before += input.size_bytes;
    }
    return {};
  }

  // A condition: rows of files that were left out.
  std::string SkippedRows() const {
    return fmt::format(
        "run_id = {} AND log_file_id IS NULL AND profile_id IS NULL AND path IS NOT NULL",
        summary_.run_id);
  }
  Result<void> RemoveSkippedRows() {
    return database_.Execute("DELETE FROM import_log_row WHERE " + SkippedRows());
  }
  // A file may have been left out of an earlier load of this run too.
  Result<void> RemoveRepeatedSkippedRows() {
    return database_.Execute(
        fmt::format("DELETE FROM import_log_row WHERE {0} AND id NOT IN (SELECT min(id) "
                    "FROM import_log_row WHERE {0} GROUP BY path, message)",
                    SkippedRows()));
  }

  Result<void> LogSkipped(const std::vector<SkippedFile>& skipped) {
    RowBatch rows(tables_);
    for (const SkippedFile& file : skipped) typing_->LogSkippedFile(file, rows);
    return writer_->Insert(rows);
  }

  Result<ImportSummary> Finish() {
    // Giving back a hundred thousand small pieces of memory takes a while: meanwhile the indexes
    // are made.
    try {
      release_ = std::thread([typing = std::move(typing_), index = std::move(index_)]() mutable {
        typing.reset();
        index.reset();
      });
    } catch (const std::exception&) {
      // No thread can be started: the memory was freed here.
    }
    if (is_new_) RETURN_IF_ERROR(CreateIndexes(database_));
    RETURN_IF_ERROR(WriteJobModel(database_, summary_.run_id));
    {
      ASSIGN_OR_RETURN(const FirstRow<TotalsOfRun> totals,
                       First(Query<TotalsOfRun>(database_, {.run_id = summary_.run_id})));
      if (totals) {
        summary_.record_count = totals->record_count;
        summary_.size_bytes = totals->size_bytes;
      }
    }
    FOR_EACH_ROW(const ProblemsOfRun& row,
                 Query<ProblemsOfRun>(database_, {.run_id = summary_.run_id})) {
      (row.severity == "error"     ? summary_.error_count
       : row.severity == "warning" ? summary_.warning_count
                                   : summary_.info_count) = row.count;
    }
    ASSIGN_OR_RETURN(const std::int64_t profiles,
                     database_.QueryInt(fmt::format(
                         "SELECT count(*) FROM profile WHERE run_id = {}", summary_.run_id)));
    if (summary_.record_count == 0 && profiles == 0 && summary_.error_count == 0) {
      return Fail(ErrorCode::kNotATrace,
                  "no record of a structured trace and no profile was found in the input; "
                  "TORCH_TRACE=<directory> makes PyTorch write a trace");
    }
    if (options_.derive) RETURN_IF_ERROR(options_.derive(database_, summary_.run_id));
    return summary_;
  }

  Database& database_;
  const ImportOptions& options_;
  bool is_new_;
  int threads_;
  TableSet tables_;
  RuntimeStep runtime_;  // declares its tables first: TypingStep counts them
  std::unique_ptr<TypingStep> typing_;
  std::unique_ptr<PayloadIndex> index_;
  ReadShared shared_;
  std::unique_ptr<BatchWriter> writer_;
  ImportSummary summary_;
  std::int64_t bytes_done_ = 0;  // of the logs
  std::thread release_;
};

Result<ImportSummary> ImportIntoNew(const std::vector<FoundLog>& logs,
                                    const std::vector<SkippedFile>& skipped,
                                    const ImportOptions& options) {
  // Under another name until it is complete; a process that is killed (SIGKILL) leaves at most this
  // file.
  ASSIGN_OR_RETURN(const std::unique_ptr<UnfinishedDatabase> temporary,
                   UnfinishedDatabase::Make(options.database_path));
  std::optional<Database> database;
  const auto import = [&]() -> Result<ImportSummary> {
    ASSIGN_OR_RETURN(database, CreateDatabase(temporary->name()));
    RETURN_IF_ERROR(database->Execute("BEGIN"));
    int threads = options.threads > 0 ? options.threads : AvailableCores();
    if (threads > 2) {
      RETURN_IF_ERROR(WriteBehind(*database, options.times));
      --threads;
    }
    Load load(*database, options, true, threads);
    ASSIGN_OR_RETURN(ImportSummary summary, load.Run(logs, skipped));
    RETURN_IF_ERROR(database->Execute("COMMIT"));
    return summary;
  };
  Result<ImportSummary> summary = import();
  if (!summary || options.reader == nullptr || !database->IsSmall().value_or(false))
    database.reset();
  if (summary) {
    if (Result<void> renamed = temporary->Rename(options.database_path); !renamed)
      return tl::unexpected<Error>(std::move(renamed).error());
  }
  if (database) *options.reader = std::move(database);
  return summary;
}

Result<ImportSummary> ImportIntoExisting(const std::vector<FoundLog>& logs,
                                         const std::vector<SkippedFile>& skipped,
                                         const ImportOptions& options) {
  ASSIGN_OR_RETURN(Database database,
                   Database::Open(options.database_path, Database::Mode::kAppend));
  if (options.wait_for_locks) database.WaitForLocks(options.wait_for_locks);
  RETURN_IF_ERROR(database.Execute("BEGIN IMMEDIATE"));
  Result<ImportSummary> summary = [&]() -> Result<ImportSummary> {
    // What was followed has the tables of this program.
    RETURN_IF_ERROR(options.ends_watch ? CreateIndexes(database) : MigrateSchema(database));
    Load load(database, options, false, options.threads);
    return load.Run(logs, skipped);
  }();
  if (!summary) {
    (void)database.Execute("ROLLBACK").has_value();
    return summary;
  }
  RETURN_IF_ERROR(database.Execute("COMMIT"));
  return summary;
}

}  // namespace

Result<ImportSummary> ImportLogs(const std::vector<FoundLog>& logs,
                                 const std::vector<SkippedFile>& skipped,
                                 const ImportOptions& options) {
  // Open every file before anything is written: a wrong name should not cost an hour.
  for (const RuntimeInput& input : options.runtime_inputs) {
    if (access(input.path.c_str(), R_OK) != 0)
      return Fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                  fmt::format("cannot read '{}': {}", input.path, std::strerror(errno)));
  }
  for (const FoundLog& log : logs) {
    if (log.path != "-" && access(log.path.c_str(), R_OK) != 0) {
      return Fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                  fmt::format("cannot read '{}': {}", log.path, std::strerror(errno)));
    }
  }
  RemoveAbandonedDatabases(options.database_path);
  if (options.append && access(options.database_path.c_str(), F_OK) == 0)
    return ImportIntoExisting(logs, skipped, options);
  return ImportIntoNew(logs, skipped, options);
}

}  // namespace tlparse
