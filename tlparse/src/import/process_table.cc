#include "import/process_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "import/router.h"
#include "log/rank.h"

namespace tlparse {

namespace {

// Above this, the prefix holds a thread id (logs of early 2024); Linux pids end here.
constexpr std::int64_t kMaxPid = 4'194'304;
constexpr std::int64_t kQuarterHourUs = 900'000'000;
// Records of one process may be out of order by less: a thread waits for another to write.
constexpr std::int64_t kMostDisorderUs = 2'000'000;

// Whether the record is the first one of a compile that reuses the label of `compile` (after
// torch._dynamo.reset()).
bool IsFirstAgain(const CompileState& compile, const LogRecord& record) {
  if (!compile.has_start && !compile.has_metrics) return false;
  const Envelope& envelope = record.envelope;
  if (envelope.attempt.value_or(0) != 0) return false;
  if (envelope.kind != "chromium_event") return TraitsOf(envelope.kind, envelope.name).begins_again;
  // B of "dynamo". The name is the first member, a token a line or all in one; this is asked of
  // every event.
  const std::string_view payload = record.raw_payload;
  return (payload.starts_with("\t{\n\t\"name\": \"dynamo\"") ||
          payload.starts_with("\t{\"name\": \"dynamo\"")) &&
         payload.find("\"ph\": \"B\"") != std::string_view::npos;
}

}  // namespace

ProcessClock::ProcessClock(PrefixTimeUs first, std::int64_t file_mtime_us, bool has_mtime)
    : provisional_(CalibrateByModificationTime(first, file_mtime_us)), has_mtime_(has_mtime) {}

std::int64_t ProcessClock::LocalUs(PrefixTimeUs time) {
  const std::int64_t us = ToEpochUs(provisional_, time) + zone_change_us_;
  contradiction_ = {};
  if (raw_us_ > last_us_before_ + kMostDisorderUs && raw_us_ > us + kMostDisorderUs &&
      us >= last_us_before_) {
    contradiction_ = "the time is later than that of the next record of the process";
    if (last_us_before_ == INT64_MIN) first_us_ = us;
    last_us_ = last_us_before_;
  } else if (raw_us_ + kMostDisorderUs < raw_us_before_ && us >= raw_us_before_) {
    contradiction_ = "the time is earlier than those of the records before and after it";
  }
  raw_us_before_ = raw_us_;
  raw_us_ = us;
  last_us_before_ = last_us_;
  last_us_ = std::max(last_us_, us);
  if (first_us_ == INT64_MIN) first_us_ = last_us_;
  return last_us_;
}

void ProcessClock::Note(PrefixTimeUs time, std::int64_t epoch_us, IngestContext::TimeBasis basis) {
  const std::int64_t local_us = ToEpochUs(provisional_, time);
  if (basis != IngestContext::TimeBasis::kChromiumEvent) {
    if (coarse_ || !(coarse_ = Calibrate(time, epoch_us))) return;
    coarse_shift_us_ = ToEpochUs(*coarse_, time) - local_us;
    coarse_basis_ = basis == IngestContext::TimeBasis::kCacheEventTime    ? "cache_event_time"
                    : basis == IngestContext::TimeBasis::kLibtraceVersion ? "libtrace_version"
                                                                          : "compilation_metrics";
    return;
  }
  if (!event_) {
    if ((event_ = Calibrate(time, epoch_us))) event_shift_us_ = ToEpochUs(*event_, time) - local_us;
    return;
  }
  const std::int64_t drift_us = epoch_us - (local_us + zone_change_us_ + event_shift_us_);
  // The local clock jumped by whole quarters of an hour: summer time began or ended while the job
  // ran. One event alone may have a damaged time.
  const std::int64_t quarters =
      std::abs(drift_us) < kQuarterHourUs
          ? 0
          : (drift_us + (drift_us > 0 ? kQuarterHourUs / 2 : -kQuarterHourUs / 2)) / kQuarterHourUs;
  if (quarters != 0 && quarters == pending_quarters_ && std::abs(quarters) <= 8)
    zone_change_us_ += quarters * kQuarterHourUs;
  pending_quarters_ = quarters == pending_quarters_ ? 0 : quarters;
}

std::optional<std::int64_t> ProcessClock::shift_us() const {
  if (event_) return event_shift_us_;
  if (coarse_) return coarse_shift_us_;
  if (has_mtime_) return 0;
  return std::nullopt;
}

std::optional<std::int64_t> ProcessClock::utc_offset_s() const {
  if (event_) return event_->utc_offset_s;
  if (coarse_) return coarse_->utc_offset_s;
  return std::nullopt;
}

std::string_view ProcessClock::basis() const {
  return event_ ? "chromium_event" : coarse_ ? coarse_basis_ : has_mtime_ ? "file_mtime" : "none";
}

Process& ProcessTable::Make(const LogRecord& record, std::int64_t pid) {
  auto process = std::make_unique<Process>(
      Process{{}, ProcessClock(record.prefix.time_us, mtime_us_, has_mtime_)});
  process->state.id = next_process_id_++;
  process->state.pid = record.prefix.pid;
  process->state.is_thread_id = record.prefix.pid > kMaxPid;
  // Whether it is a child of that process or a stranger in a merged file is not known; a stranger
  // defines its own strings.
  if (current_ != nullptr) process->state.parent = &current_->state;
  processes_.push_back(std::move(process));
  latest_[pid] = processes_.back().get();
  return *processes_.back();
}

Process& ProcessTable::For(const LogRecord& record, std::int64_t record_id, bool* rank_conflict) {
  current_ = &Find(record, rank_conflict);
  if (current_->first_record_id == 0) current_->first_record_id = record_id;
  current_->last_record_id = record_id;
  current_->previous_place = current_->latest_place;
  current_->latest_place = {record_id, record.line, record.byte_offset, {}};
  return *current_;
}

Process& ProcessTable::Find(const LogRecord& record, bool* rank_conflict) {
  *rank_conflict = false;
  const std::int64_t pid = record.prefix.pid > kMaxPid ? -1 : record.prefix.pid;
  const bool has_prefix_rank = record.prefix.rank && IsRank(*record.prefix.rank);
  const std::optional<std::int64_t> rank = record.envelope.rank ? record.envelope.rank
                                           : has_prefix_rank    ? record.prefix.rank
                                                                : std::nullopt;
  const std::string_view source = record.envelope.rank ? "record" : "prefix";
  const auto latest = latest_.find(pid);
  if (latest == latest_.end()) {
    Process& made = Make(record, pid);
    made.state.rank = rank;
    if (rank) made.state.rank_source = source;
    return made;
  }
  Process& current = *latest->second;
  if (!rank || current.state.rank == rank) return current;
  if (!current.state.rank) {
    current.state.rank = rank;
    current.state.rank_source = source;
    return current;
  }
  by_rank_.try_emplace({pid, *current.state.rank}, &current);
  if (const auto known = by_rank_.find({pid, *rank}); known != by_rank_.end())
    return *(latest_[pid] = known->second);
  Process& made = Make(record, pid);
  by_rank_.emplace(std::pair(pid, *rank), &made);
  made.state.rank = rank;
  made.state.rank_source = source;
  *rank_conflict = !made.state.is_thread_id && !record.prefix.rank;
  return made;
}

CompileState& ProcessTable::MakeCompile(Process& process, const CompileIds& ids, std::string label,
                                        std::int64_t record_id) {
  auto compile = std::make_unique<CompileState>();
  compile->id = next_compile_id_++;
  compile->process = &process.state;
  compile->ids = ids;
  compile->label = std::move(label);
  compile->first_record_id = compile->last_record_id = record_id;
  compile->first_place = process.latest_place;
  CompileState*& latest = process.state.compile_by_label[compile->label];
  if (latest != nullptr) compile->generation = latest->generation + 1;
  latest = compile.get();
  process.state.compiles.push_back(std::move(compile));
  return *latest;
}

CompileState* ProcessTable::CompileFor(Process& process, const LogRecord& record,
                                       std::int64_t record_id) {
  const Envelope& envelope = record.envelope;
  const CompileIds ids{envelope.compiled_autograd_id, envelope.frame_id, envelope.frame_compile_id};
  CompileState* compile = nullptr;
  // Both or none, but where a byte of the header was changed.
  if (ids.frame_id.has_value() != ids.frame_compile_id.has_value()) return nullptr;
  if (ids.empty()) {
    // What a compile ahead of time says of its backend, after its metrics.
    if (envelope.kind == "compilation_metrics_runtime" && process.synthetic == nullptr &&
        process.ended != nullptr && process.ended->captured != nullptr) {
      process.ended->last_record_id = record_id;
      return process.ended;
    }
    const KeyTraits traits = TraitsOf(envelope.kind, envelope.name);
    const bool opens = (envelope.has_stack && !traits.stands_alone) || traits.opens_stretch;
    if (opens && process.synthetic == nullptr) {
      process.synthetic =
          &MakeCompile(process, ids, fmt::format("unknown_{}", record.line), record_id);
      process.synthetic->is_synthetic = true;
      const std::int64_t capture = process.state.capture_record_id;
      if (capture != 0 && process.latest != nullptr && process.latest->first_record_id > capture)
        process.synthetic->captured = process.latest;
    }
    // Events and context-free records inside the stretch belong to it as well.
    if (!traits.stands_alone || envelope.kind == "chromium_event") compile = process.synthetic;
  } else {
    const bool is_latest = process.latest != nullptr && process.latest->ids == ids;
    compile = is_latest ? process.latest : process.state.FindCompile(ids.Label());
    if (compile == nullptr || IsFirstAgain(*compile, record))
      compile = &MakeCompile(process, ids, ids.Label(), record_id);
    process.latest = compile;
  }
  if (compile == nullptr) return nullptr;
  compile->last_record_id = record_id;
  if (envelope.attempt) {
    compile->max_attempt = std::max(compile->max_attempt, *envelope.attempt);
    compile->restart_reasons.try_emplace(*envelope.attempt);
  }
  if (envelope.kind == "dynamo_start") compile->has_start = true;
  if (envelope.kind.ends_with("_graph") || envelope.kind == "inductor_output_code")
    compile->has_output_graph = true;
  return compile;
}

}  // namespace tlparse
