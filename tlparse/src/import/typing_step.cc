#include "import/typing_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "log/rank.h"
#include "rows/core.h"
#include "store/schema.h"

namespace tlparse {

namespace {
// Logs that are read in turn: more records than a log can have, and ids of very many logs are exact
// as numbers of JavaScript.
constexpr std::int64_t kRecordIdsOfLog = std::int64_t{1} << 32;
}  // namespace

const PreparedRecord TypingStep::kUnprepared{};

TypingStep::TypingStep(TableSet& tables)
    : tables_(tables),
      texts_(tables),
      contents_(tables),
      stacks_(tables),
      graphs_(tables),
      import_log_(tables),
      router_(tables) {
  tables.Use<RecordRow>();
  tables.Use<RunRow>();
  tables.Use<LogFileRow>();
  tables.Use<ProcessRow>();
  tables.Use<PayloadRow>();
  tables.Use<CompileRow>();
  tables.Use<AttemptRow>();
  tables.Use<CompileRecordRow>();
  tables.Use<RecordKindRow>();
  next_ids_.resize(tables.tables().size(), 1);
  graphs_.on_close = [this](CompileState& compile, GraphState& graph) {
    for (const std::unique_ptr<Ingestor>& ingestor : router_.ingestors()) {
      if (Result<void> closed = ingestor->GraphClosed(compile, graph, *this); !closed) {
        Log(ImportCode::kBadPayload, closed.error().message);
      }
    }
  };
}

Result<void> TypingStep::Load(Database& database) {
  RETURN_IF_ERROR(texts_.Load(database));
  RETURN_IF_ERROR(contents_.Load(database));
  RETURN_IF_ERROR(stacks_.Load(database));
  for (const std::unique_ptr<Ingestor>& ingestor : router_.ingestors())
    RETURN_IF_ERROR(ingestor->Load(database));
  // Tables may have been declared since this was made
  next_ids_.resize(tables_.tables().size(), 1);
  for (std::size_t table = 0; table < tables_.tables().size(); ++table) {
    const std::string_view name = tables_.tables()[table].name;
    ASSIGN_OR_RETURN(const std::int64_t has_id,
                     database.QueryInt(fmt::format(
                         "SELECT count(*) FROM pragma_table_info('{}') WHERE name = 'id'", name)));
    if (has_id == 0) continue;
    ASSIGN_OR_RETURN(const std::int64_t last,
                     database.QueryInt(fmt::format("SELECT max(id) FROM \"{}\"", name)));
    next_ids_[table] = last + 1;
  }
  next_record_id_ = first_record_id_ = NextId<RecordRow>();
  next_process_id_ = NextId<ProcessRow>();
  next_compile_id_ = NextId<CompileRow>();
  return {};
}

void TypingStep::AddInitialRows(RowBatch& rows) { texts_.AddFixedRows(rows); }

void TypingStep::BeginRun(std::int64_t run_id) {
  run_id_ = run_id;
  import_log_.Begin(run_id, NextId<ImportLogRow>());
}

std::int64_t TypingStep::BeginFile(const FileInfo& file) {
  log_ = std::make_unique<LogState>(file, next_process_id_, next_compile_id_);
  log_->id = NextId<LogFileRow>();
  log_->first_record_id = next_record_id_;
  log_->first_content_id = contents_.next_id();
  graphs_.BeginLog(log_->graphs);
  return log_->id;
}

std::unique_ptr<LogState> TypingStep::SetAside() {
  log_->next_record_id = next_record_id_;
  log_->is_in_turn = true;
  log_->kept.SetAside();
  process_ = nullptr;
  log_record_ = nullptr;
  return std::move(log_);
}

void TypingStep::TakeUp(std::unique_ptr<LogState> log) {
  log_ = std::move(log);
  next_record_id_ = log_->next_record_id;
  graphs_.TakeUp(log_->graphs);
}

void TypingStep::Abandon() {
  graphs_.EndLog(log_->graphs);
  log_.reset();
  process_ = nullptr;
}

void TypingStep::ReserveRecordIds() {
  next_range_ = std::max(next_range_, next_record_id_ / kRecordIdsOfLog) + 1;
  next_record_id_ = next_range_ * kRecordIdsOfLog;
}

Result<void> TypingStep::Type(Window& window, std::span<const PreparedRecord> prepared,
                              RowBatch& rows) {
  rows_ = &rows;
  const std::int64_t first_record_id = next_record_id_;
  for (std::size_t index = 0; index < window.records.size(); ++index) {
    prepared_ = index < prepared.size() ? &prepared[index] : &kUnprepared;
    TypeRecord(window.records[index]);
  }
  prepared_ = &kUnprepared;
  AddProblems(window, first_record_id);
  return {};
}

void TypingStep::AddProblems(const Window& window, std::int64_t first_record_id) {
  for (const ImportProblem& problem : window.problems) {
    ImportPlace place;
    if (problem.line > 0) place.line = problem.line;
    if (problem.byte_offset >= 0) place.byte_offset = problem.byte_offset;
    if (problem.record >= 0) place.record_id = first_record_id + problem.record;
    import_log_.Add(*rows_, log_->id, place, problem.code, problem.message, problem.text,
                    problem.line_count);
  }
}

void TypingStep::LogRemovedFile(std::int64_t bytes_read, std::string_view when, RowBatch& rows) {
  import_log_.Add(rows, log_->id, {}, ImportCode::kRemovedFile,
                  fmt::format("{}: removed by {}, after {} bytes of it were read", log_->file.path,
                              when, bytes_read));
}

void TypingStep::LogSkippedFile(const SkippedFile& file, RowBatch& rows) {
  import_log_.Add(rows, std::nullopt, {.path = file.path}, file.code, file.reason);
}

void TypingStep::TypeRecord(const LogRecord& record) {
  log_record_ = &record;
  payload_.reset();
  has_root_ = false;
  is_too_large_ = false;
  logged_count_ = 0;
  bool rank_conflict = false;
  process_ = &log_->processes.For(record, next_record_id_, &rank_conflict);
  local_us_ = process_->clock.LocalUs(record.prefix.time_us);
  if (const std::string_view what = process_->clock.contradiction(); !what.empty())
    import_log_.Add(*rows_, log_->id, process_->previous_place, ImportCode::kImpossibleTime, what);

  record_ = Record{};
  record_.id = next_record_id_++;
  record_.line = record.line;
  record_.byte_offset = record.byte_offset;
  record_.kind = record.envelope.kind;
  record_.name = record.envelope.name;
  record_.envelope = record.envelope_json;
  record_.process = &process_->state;
  record_.compile = log_->processes.CompileFor(*process_, record, record_.id);
  if (record_.compile != nullptr) process_->state.Touch(*record_.compile);
  record_.attempt = record.envelope.attempt;
  record_.subgraph_name = record.envelope.subgraph_name;
  record_.payload_state = record.payload_state;
  record_.payload_id = record.payload_id;
  kind_id_ = record_.kind.empty() ? 0 : Text(record_.kind);
  name_id_ = record_.name.data() == nullptr ? 0 : Text(record_.name);

  if (record_.kind == "dynamo_start" && record_.compile != nullptr &&
      !record_.compile->start_local_us)
    record_.compile->start_local_us = local_us_;

  if (record.payload_is_new) AddPayloadRow(record);
  if (record_.kind == "str") TypeString();
  AddRecordRow(record, local_us_);
  ReportEnvelope(record, rank_conflict);

  if (Ingestor* ingestor = router_.Find(record_.kind, record_.name, name_id_);
      ingestor != nullptr) {
    Ingest(*ingestor);
    // Programs name the caches that they keep with libtrace.
    if (record_.kind == "artifact" && !process_->state.is_of_libtrace &&
        HasUnknownLayer(record_.name))
      ReportUnknown();
  } else if (record_.kind != "str") {
    ReportUnknown();
  }
  if (record_.compile != nullptr && record_.compile->is_synthetic &&
      record_.kind.ends_with("compilation_metrics")) {
    ProcessTable::EndSynthetic(*process_);
  }
}

// An interned string: [text, id].
void TypingStep::TypeString() {
  // PyTorch interns names of files: a few thousand.
  constexpr std::size_t kMostStrings = 300'000;
  constexpr std::size_t kMostBytes = std::size_t{32} << 20;
  const Result<simdjson::dom::element> metadata = Metadata();
  if (!metadata) return;
  std::string_view text;
  std::int64_t id = 0;
  if (metadata->at(0).get(text) != simdjson::SUCCESS ||
      metadata->at(1).get(id) != simdjson::SUCCESS)
    return Log(ImportCode::kBadMetadata, "str is not [text, id]");
  ProcessState& process = process_->state;
  if (!process.first_string_number) process.first_string_number = id;
  if (process.strings.size() >= kMostStrings || process.string_bytes + text.size() > kMostBytes) {
    if (!std::exchange(process.has_left_out_strings, true)) {
      Log(ImportCode::kMemoryLimit,
          fmt::format("the process has more than {} strings, or they have more than {} bytes: this "
                      "one and later ones do not appear in stacks",
                      kMostStrings, kMostBytes));
    }
    return;
  }
  const auto [entry, is_new] = process.strings.try_emplace(id, text);
  if (is_new) {
    process.string_bytes += text.size();
  } else if (entry->second != text) {
    Log(ImportCode::kRedefinedString, fmt::format("string {} was '{}'", id, entry->second));
    process.string_bytes += text.size();
    entry->second = text;
  }
}

void TypingStep::Ingest(Ingestor& ingestor) {
  Result<void> ingested = ingestor.Ingest(record_, *this);
  if (ingested) return;
  const bool is_payload = record_.payload_id != 0 && ingested.error().code != ErrorCode::kUsage;
  Log(is_payload ? ImportCode::kBadPayload : ImportCode::kBadMetadata, ingested.error().message);
}

void TypingStep::AddPayloadRow(const LogRecord& record) {
  rows_->Add(PayloadRow{.id = record.payload_id,
                        .hash = ToHex(record.payload_md5),
                        .size_bytes = record.payload.size(),
                        .content = StaticAny{record.payload, record.payload_is_text}});
}

void TypingStep::AddRecordRow(const LogRecord& record, std::int64_t local_us) {
  const Envelope& envelope = record.envelope;
  std::optional<std::int64_t> stack_id;
  std::optional<std::int64_t> user_stack_id;
  if (envelope.has_stack) {
    if (const std::int64_t id = Stack("stack", false); id != 0) stack_id = id;
  }
  if (envelope.has_metadata_stack) {
    if (!envelope.has_stack) {
      if (const std::int64_t id = Stack("stack", true); id != 0) stack_id = id;
    }
    if (const std::int64_t id = Stack("user_stack", true); id != 0) user_stack_id = id;
  }
  const std::optional<StaticText> metadata =
      envelope.metadata.empty() ? std::nullopt : std::optional(StaticText{envelope.metadata});
  // Bytes that are not text cannot be in a TEXT column; the problem kRepairedJson says that the
  // envelope is not as in the log.
  std::string_view envelope_text = record.envelope_json;
  if (envelope.was_repaired && !IsTextSafe(envelope_text))
    envelope_text = rows_->arena().Copy(SanitizeUtf8(envelope_text));
  if (record_.compile != nullptr && kind_id_ > kTextCreateUnbackedSymbol) {
    rows_->Add(CompileRecordRow{.compile_id = record_.compile->id, .record_id = record_.id});
  }
  AddBlock();
  const auto id_or_null = [](std::int64_t id) {
    return id == 0 ? std::nullopt : std::optional(id);
  };
  rows_->Add(RecordRow{.id = record_.id,
                       .process_id = process_->state.id,
                       .line = record.line,
                       .byte_offset = record.byte_offset,
                       .local_us = local_us,
                       .source_file_id = Text(record.prefix.path),
                       .source_line = record.prefix.source_line,
                       .kind_id = id_or_null(kind_id_),
                       .name_id = id_or_null(name_id_),
                       .compile_id = record_.compile_row_id(),
                       .attempt = record_.attempt,
                       .subgraph_id = OptionalText(record_.subgraph_name),
                       .payload_id = id_or_null(record.payload_id),
                       .payload_state = record.payload_state,
                       .stack_id = stack_id,
                       .user_stack_id = user_stack_id,
                       .envelope = StaticText{envelope_text},
                       .metadata = metadata});
}

void TypingStep::AddBlock() {
  if (kind_id_ == 0) return;
  const std::int64_t block = record_.id >> kRecordBlockBits;
  // A row that is there already is ignored; most of those are not made.
  if (std::exchange(next_block_of_kind_[kind_id_], block + 1) != block + 1)
    rows_->Add(RecordKindRow{.kind = texts_.Stored(record_.kind), .block = block});
}

void TypingStep::NoteTime(std::int64_t epoch_us, TimeBasis basis) {
  process_->clock.Note(log_record_->prefix.time_us, epoch_us, basis);
}

std::optional<std::int64_t> TypingStep::Time() const {
  const std::optional<std::int64_t> shift = process_->clock.shift_us();
  if (!shift) return std::nullopt;
  return local_us_ + *shift;
}

}  // namespace tlparse
