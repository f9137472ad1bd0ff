// The end of a file: its processes and compiles become rows.
#include <fmt/format.h>

#include <algorithm>

#include "base/plural.h"
#include "import/typing_step.h"
#include "rows/core.h"

namespace tlparse {

CompileStatus StatusOf(const CompileState& compile) {
  if (compile.is_failed) {
    // Without fullgraph=True, which logs no break, an unsupported construct makes the frame run
    // eagerly, as the recompile limit does. Code that raises an exception raises it there too.
    const bool runs_eagerly =
        compile.is_refused ||
        (compile.is_unsupported && compile.has_graph_break && !compile.has_raised);
    return runs_eagerly ? CompileStatus::kSkipped : CompileStatus::kFailed;
  }
  if (!compile.has_metrics) {
    if (compile.is_loaded)
      return compile.has_output_graph ? CompileStatus::kLoaded : CompileStatus::kEmpty;
    // Contexts of compiled autograd (!N), stretches of records without ids and frames of an export
    // never have metrics. The log ends inside such a compile if an event of it is open.
    if (!compile.end_place && (compile.ends_inside_event || compile.has_start))
      return CompileStatus::kUnfinished;
    return compile.has_output_graph ? CompileStatus::kOk : CompileStatus::kEmpty;
  }
  if (!compile.has_output_graph)
    return compile.has_start && compile.has_guarded_code ? CompileStatus::kEmpty
                                                         : CompileStatus::kSkipped;
  // A graph but no code, and the metrics name no exception: KeyboardInterrupt or SystemExit, which
  // are no Exception of Python and which PyTorch does not log, ended the compile. Not so after a
  // restart: the graph may be that of an earlier attempt, and the frame was then skipped.
  if (!compile.has_guarded_code && compile.max_attempt == 0) return CompileStatus::kFailed;
  return compile.max_attempt > 0 ? CompileStatus::kRestarted : CompileStatus::kOk;
}

std::optional<std::int64_t> TypingStep::RankOf(const ProcessState& process) const {
  return process.rank ? process.rank : log_->file.name_rank;
}

namespace {

// Compiles that PyTorch refused (recompile limit) have no name in the log; their frame's earlier
// compiles have.
void NoteName(const CompileState& compile, ProcessState& process) {
  if (compile.function.empty() || !compile.ids.frame_id) return;
  const CompileState*& known = process.named_frames[*compile.ids.frame_id];
  if (known == nullptr || known->id < compile.id) known = &compile;
}

const CompileState& NamedCompile(const CompileState& compile, const ProcessState& process) {
  if (compile.function.empty() && compile.captured != nullptr) return *compile.captured;
  if (!compile.function.empty() || !compile.ids.frame_id) return compile;
  const auto known = process.named_frames.find(*compile.ids.frame_id);
  const bool is_earlier = known != process.named_frames.end() && known->second->id < compile.id &&
                          known->second->generation == compile.generation;
  return is_earlier ? *known->second : compile;
}

}  // namespace

void TypingStep::AddCompileRows(CompileState& compile, const Process& process) {
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
  };
  // A compile whose metrics are not in the log began when its first record was written.
  std::optional<std::int64_t> start_us = compile.start_time_us;
  const std::optional<std::int64_t> shift_us = process.clock.shift_us();
  if (!start_us && compile.start_local_us && shift_us)
    start_us = *compile.start_local_us + *shift_us;
  const CompileState& named = NamedCompile(compile, process.state);
  rows_->Add(
      CompileRow{.id = compile.id,
                 .process_id = process.state.id,
                 .rank = RankOf(process.state),
                 .compiled_autograd_id = compile.ids.compiled_autograd_id,
                 .frame_id = compile.ids.frame_id,
                 .frame_compile_id = compile.ids.frame_compile_id,
                 .label = compile.label,
                 .is_synthetic = compile.is_synthetic,
                 .status = StaticText{Name(StatusOf(compile))},
                 .start_time_us = start_us,
                 .duration_us = compile.duration_us,
                 .backward_duration_us = compile.backward_duration_us,
                 .function = text_or_null(named.function),
                 .file = text_or_null(named.file),
                 .line = named.line,
                 .generation = compile.generation,
                 .stack_id = compile.stack_id == 0 ? std::nullopt : std::optional(compile.stack_id),
                 .first_record_id = compile.first_record_id,
                 .last_record_id = compile.last_record_id});
  for (const auto& [attempt, reason] : compile.restart_reasons) {
    rows_->Add(AttemptRow{
        .compile_id = compile.id, .attempt = attempt, .restart_reason = text_or_null(reason)});
  }
}

Result<void> TypingStep::MakeRoom(const NextBatch& next_batch) {
  if (!rows_->IsFull()) return {};
  RowBatch* const next = next_batch();
  if (next == nullptr) return Fail(ErrorCode::kDatabase, "writing has failed");
  rows_ = next;
  return {};
}

Result<void> TypingStep::EndProcess(Process& process, const NextBatch& next_batch) {
  process_ = &process;
  ProcessState& state = process.state;
  record_ = Record{};
  record_.process = &state;
  log_record_ = nullptr;
  if (!state.rank && log_->file.name_rank) {
    state.rank = log_->file.name_rank;
    state.rank_source = "file_name";
  }
  state.named_frames.clear();  // an earlier one than the latest may be asked for
  for (const std::unique_ptr<CompileState>& compile : state.compiles)
    graphs_.CloseAll(*compile, *this);
  for (const std::unique_ptr<Ingestor>& ingestor : router_.ingestors()) {
    if (Result<void> ended = ingestor->ProcessEnded(state, *this); !ended) {
      Log(ImportCode::kBadPayload, ended.error().message);
    }
  }
  for (const std::unique_ptr<CompileState>& compile : state.compiles) {
    RETURN_IF_ERROR(MakeRoom(next_batch));
    graphs_.WriteRows(*compile, 0, *this);
    NoteName(*compile, state);
    AddCompileRows(*compile, process);
  }
  ReportStrayRecords(process);
  const std::string_view basis = process.clock.basis();
  if (basis == "file_mtime") {
    Log(ImportCode::kTimeFromFile,
        fmt::format("process {}: year from the file's modification time, zone taken as UTC",
                    state.pid));
  } else if (basis == "none") {
    Log(ImportCode::kUncalibratedTime, fmt::format("process {}: no event or file time", state.pid));
  }
  AddProcessRow(process);
  return MakeRoom(next_batch);
}

void TypingStep::AddProcessRow(const Process& process) {
  const ProcessState& state = process.state;
  const std::optional<std::int64_t> shift_us = process.clock.shift_us();
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
  };
  const auto epoch_us = [&](std::int64_t local_us) {
    return shift_us ? std::optional(local_us + *shift_us) : std::nullopt;
  };
  rows_->Add(ProcessRow{.id = state.id,
                        .log_file_id = log_->id,
                        .pid = state.pid,
                        .rank = RankOf(state),
                        .rank_source = text_or_null(
                            state.rank || !log_->file.name_rank ? state.rank_source : "file_name"),
                        .is_thread_id = state.is_thread_id,
                        .torch_version = text_or_null(state.torch_version),
                        .python_version = text_or_null(state.python_version),
                        .utc_offset_s = process.clock.utc_offset_s(),
                        .time_basis = StaticText{process.clock.basis()},
                        .time_shift_us = shift_us,
                        .first_record_id = process.first_record_id,
                        .last_record_id = process.last_record_id,
                        .first_record_us = epoch_us(process.clock.first_local_us()),
                        .last_record_us = epoch_us(process.clock.last_local_us()),
                        .first_string_number = state.first_string_number});
}

// Graphs that a later record may still change: an event of inductor_compile, a late artifact.
constexpr std::size_t kLatestGraphs = 64;

Result<void> TypingStep::PauseProcess(Process& process, const NextBatch& next_batch) {
  ProcessState& state = process.state;
  process_ = &process;
  record_ = Record{};
  record_.process = &state;
  log_record_ = nullptr;
  for (const std::unique_ptr<Ingestor>& ingestor : router_.ingestors())
    RETURN_IF_ERROR(ingestor->ProcessPaused(state, *this));
  for (const CompileState* const compile : state.touched) NoteName(*compile, state);
  for (CompileState* const compile : state.touched) {
    compile->is_touched = false;
    RETURN_IF_ERROR(MakeRoom(next_batch));
    graphs_.WriteRows(*compile, compile->written_graphs, *this);
    compile->written_graphs =
        compile->graphs.size() - std::min(compile->graphs.size(), kLatestGraphs);
    AddCompileRows(*compile, process);
  }
  state.touched.clear();
  AddProcessRow(process);
  return MakeRoom(next_batch);
}

Result<void> TypingStep::PauseFile(const FileResult& progress, RowBatch& rows,
                                   const NextBatch& next_batch) {
  rows_ = &rows;
  for (const std::unique_ptr<Process>& process : log_->processes.processes()) {
    if (process->last_record_id == process->paused_record_id) continue;
    processes_changed_ |=
        process->paused_record_id == 0 || process->paused_rank != RankOf(process->state);
    process->paused_record_id = process->last_record_id;
    process->paused_rank = RankOf(process->state);
    RETURN_IF_ERROR(PauseProcess(*process, next_batch));
  }
  AddFileRow(progress);
  process_ = nullptr;
  return {};
}

Result<void> TypingStep::EndFile(const FileResult& result, RowBatch& rows,
                                 const NextBatch& next_batch) {
  rows_ = &rows;
  for (const std::unique_ptr<Process>& process : log_->processes.processes())
    RETURN_IF_ERROR(EndProcess(*process, next_batch));
  ReportSimilarNames();
  if (next_record_id_ == log_->first_record_id) {
    const std::string message =
        result.line_count > 0 ? fmt::format("no record begins in its {} line{}", result.line_count,
                                            PluralS(result.line_count))
        : result.compression == "none" ? std::string("the log is empty")
                                       : std::string("no line could be decoded from it");
    import_log_.Add(*rows_, log_->id, {}, ImportCode::kLogWithoutRecords, message);
  }
  AddFileRow(result);
  graphs_.EndLog(log_->graphs);
  log_.reset();
  process_ = nullptr;
  log_record_ = nullptr;
  return {};
}

void TypingStep::AddFileRow(const FileResult& result) {
  const std::int64_t record_count = next_record_id_ - log_->first_record_id;
  const bool has_records = record_count > 0;
  // Logs that are read in turn share the ids of contents.
  const bool has_contents = !log_->is_in_turn && contents_.next_id() > log_->first_content_id;
  const auto when = [](bool condition, std::int64_t value) {
    return condition ? std::optional(value) : std::nullopt;
  };
  rows_->Add(LogFileRow{.id = log_->id,
                        .run_id = run_id_,
                        .path = log_->file.path,
                        .size_bytes = result.size_bytes,
                        .record_count = record_count,
                        .line_count = result.line_count,
                        .compression = result.compression,
                        .content_hash = result.content_hash,
                        .name_rank = log_->file.name_rank,
                        .first_record_id = when(has_records, log_->first_record_id),
                        .last_record_id = when(has_records, next_record_id_ - 1),
                        .first_content_id = when(has_contents, log_->first_content_id),
                        .last_content_id = when(has_contents, contents_.next_id() - 1)});
}

}  // namespace tlparse
