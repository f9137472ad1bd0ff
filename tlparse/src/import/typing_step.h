// The third step of the pipeline: makes rows of all tables of the records of a window. One thread
// at a time, strictly in log order, so that ids and joins do not depend on the machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "artifacts/artifact.h"
#include "artifacts/common/compile_status.h"
#include "artifacts/common/graph/graph_tracker.h"
#include "artifacts/common/text/stack_pool.h"
#include "import/log_state.h"
#include "import/router.h"
#include "log/find_logs.h"
#include "log/record_reader.h"
#include "store/content_registry.h"
#include "store/database.h"
#include "store/import_log.h"
#include "store/row_batch.h"
#include "store/text_pool.h"

namespace tlparse {

// What is known once it has been read.
struct FileResult {
  std::int64_t size_bytes = 0;
  std::int64_t line_count = 0;
  std::string compression;
  std::string content_hash;
};

class TypingStep final : public IngestContext {
 public:
  // Declares every table of the load in `tables`, which outlives the step.
  explicit TypingStep(TableSet& tables);

  // For an existing database: takes over ids and contents. For a new one: the rows every database
  // starts with.
  Result<void> Load(Database& database);
  void AddInitialRows(RowBatch& rows);

  void BeginRun(std::int64_t run_id);
  std::int64_t BeginFile(const FileInfo& file);
  // Suspends the current log, so that another one can be begun or resumed; no log is current then.
  // The record ids of a log that is to be suspended must be a range of its own: see
  // ReserveRecordIds.
  std::unique_ptr<LogState> SetAside();
  void TakeUp(std::unique_ptr<LogState> log);
  // Drops the current log: it is not read further, and its end is not written.
  void Abandon();
  // The next log that is begun has a contiguous range of record ids.
  void ReserveRecordIds();
  // Rows of one window; `window` and `rows` must live until the rows are written. `prepared`: of
  // its records, or empty.
  Result<void> Type(Window& window, std::span<const PreparedRecord> prepared, RowBatch& rows);
  // Hands the full batch over to be written, and gives the next one; nullptr: writing has failed.
  using NextBatch = std::function<RowBatch*()>;
  // Rows known only at the end of a file: processes, compiles, graphs, the file itself. They are
  // many where a file has many compiles, so they go into as many batches as they fill, `rows`
  // first.
  Result<void> EndFile(const FileResult& result, RowBatch& rows, const NextBatch& next_batch);
  // For a log that may continue: the current rows of the processes and compiles that have changed,
  // and of the file. They have the keys of the rows that EndFile makes; the writer replaces rows
  // (BatchWriter::Replace). The file's content hash stays empty until EndFile.
  Result<void> PauseFile(const FileResult& progress, RowBatch& rows, const NextBatch& next_batch);
  // Withdrawn rows of the log's records: table, record_id. To be removed before the rows of the
  // next PauseFile are written.
  std::vector<std::pair<std::string_view, std::int64_t>> TakeWithdrawn() {
    return std::exchange(withdrawn_, {});
  }
  // Whether a process was added or its rank has changed since the last call.
  bool TakeProcessesChanged() { return std::exchange(processes_changed_, false); }
  void LogRemovedFile(std::int64_t bytes_read, std::string_view when, RowBatch& rows);
  void LogSkippedFile(const SkippedFile& file, RowBatch& rows);

  // Reads a payload that is in the database; for logs that are read in turn.
  KeptPayloads::Load load_payload;

  ImportLog& import_log() { return import_log_; }
  std::int64_t record_count() const { return next_record_id_ - first_record_id_; }

  // IngestContext
  Result<simdjson::dom::element> Metadata() override;
  std::string_view Payload() override;
  std::string_view PayloadToParse() override;
  Result<simdjson::dom::element> PayloadJson() override;
  std::string_view KeptPayload(std::int64_t payload_id) override;
  void KeepPayload() override;
  void ReleasePayload(std::int64_t payload_id) override;
  const PreparedRecord& prepared() const override { return *prepared_; }
  RowBatch& rows() override { return *rows_; }
  TextPool& texts() override { return texts_; }
  ContentRegistry& contents() override { return contents_; }
  GraphTracker& graphs() override { return graphs_; }
  StackPool& stacks() override { return stacks_; }
  void NoteTime(std::int64_t epoch_us, TimeBasis basis) override;
  std::optional<std::int64_t> Time() const override;
  void Withdraw(std::string_view table, std::int64_t record_id) override {
    withdrawn_.emplace_back(table, record_id);
  }
  void Log(ImportCode code, std::string message) override;
  using IngestContext::NextId;

 protected:
  const TableSet& tables() const override { return tables_; }
  std::int64_t NextId(TableId table) override {
    return table < next_ids_.size() ? next_ids_[table]++ : 0;
  }

 private:
  void TypeRecord(const LogRecord& record);
  void TypeString();
  void AddPayloadRow(const LogRecord& record);
  void AddRecordRow(const LogRecord& record, std::int64_t local_us);
  void AddBlock();  // the row of record_kind for the current record
  void ReportEnvelope(const LogRecord& record, bool rank_conflict);
  void ReportUnknown();
  void NoteUnknownName(std::string_view name, std::string_view similar);
  void ReportSimilarNames();
  void ReportStrayRecords(const Process& process);
  const Process* LikelyWriterOf(const Process& process) const;
  ImportPlace PlaceOfRecord() const;
  void Ingest(Ingestor& ingestor);
  void AddProblems(const Window& window, std::int64_t first_record_id);
  std::int64_t Stack(std::string_view member, bool in_metadata);
  Result<simdjson::dom::element> EnvelopeRoot();
  Result<simdjson::dom::element> ParseEnvelope();
  Result<void> EndProcess(Process& process, const NextBatch& next_batch);
  Result<void> PauseProcess(Process& process, const NextBatch& next_batch);
  Result<void> MakeRoom(const NextBatch& next_batch);
  void AddCompileRows(CompileState& compile, const Process& process);
  void AddProcessRow(const Process& process);
  void AddFileRow(const FileResult& result);
  std::optional<std::int64_t> RankOf(const ProcessState& process) const;

  static const PreparedRecord kUnprepared;

  TableSet& tables_;
  TextPool texts_;
  ContentRegistry contents_;
  StackPool stacks_;
  GraphTracker graphs_;
  ImportLog import_log_;
  Router router_;
  std::vector<std::int64_t> next_ids_;  // by table

  std::int64_t run_id_ = 0;
  std::int64_t first_record_id_ = 1;
  std::int64_t next_record_id_ = 1;
  std::int64_t next_range_ = 0;
  std::int64_t next_process_id_ = 1;
  std::int64_t next_compile_id_ = 1;

  std::unique_ptr<LogState> log_;  // the one being read
  std::vector<std::pair<std::string_view, std::int64_t>> withdrawn_;
  bool processes_changed_ = false;

  // The record being typed.
  RowBatch* rows_ = nullptr;
  Record record_;
  const LogRecord* log_record_ = nullptr;
  const PreparedRecord* prepared_ = &kUnprepared;
  Process* process_ = nullptr;
  std::int64_t local_us_ = 0;
  int logged_count_ = 0;  // rows of import_log
  TextId kind_id_ = 0;
  // The block after the one that got a row of record_kind last, by kind.
  std::unordered_map<TextId, std::int64_t> next_block_of_kind_;
  TextId name_id_ = 0;
  std::optional<std::string_view> payload_;
  bool has_root_ = false;
  bool is_too_large_ = false;    // the envelope, to be parsed
  simdjson::dom::element root_;  // the envelope, parsed
  simdjson::dom::parser metadata_parser_;
  simdjson::dom::parser payload_parser_;
};

// compile.status as far as the records so far show it.
CompileStatus StatusOf(const CompileState& compile);

}  // namespace tlparse
