#include "libtrace/trace.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

#include "core/busy.h"
#include "core/clock.h"
#include "core/errno_scope.h"
#include "core/signal_guard.h"
#include "core/thread_id.h"
#include "core/trace_state.h"

namespace libtrace {
namespace detail {
namespace {

constexpr int kOff = 0, kOn = 1, kDetail = 2, kUnknown = 3, kForked = 4;

constexpr int64_t kRankNotSet = -2, kNoRank = -1;

std::atomic<Trace*> g_trace{nullptr};
std::atomic<Trace*> g_last_trace{nullptr};  // also after Stop; in a child its parent's
std::atomic<int64_t> g_rank{kRankNotSet};   // what SetRank said
std::mutex g_mutex;                         // starting and stopping
bool g_has_exit_handler = false;            // guarded by g_mutex

// This thread starts or stops a trace and holds g_mutex: what it emits meanwhile (a sink's
// constructor, a copied callback) finds tracing off instead of waiting for itself.
constinit thread_local bool t_is_switching = false;
class SwitchScope {
 public:
  SwitchScope() : lock_(g_mutex) { t_is_switching = true; }
  ~SwitchScope() { t_is_switching = false; }

 private:
  std::lock_guard<std::mutex> lock_;
};

struct TakeSink {
  std::shared_ptr<Sink> sink;
  int level = kOff;
};
// Of a forked child: made by the fork handler, used by its first record.
constinit TakeSink* g_child_sink = nullptr;

int LevelOf(const Options& options) { return options.detail ? kDetail : kOn; }

void BeforeFork() { PrepareClockForFork(); }

// Runs in the child, alone, before fork() returns. Locks of ours may be held by threads that do not
// exist here: nothing of the parent's trace is used again but its options. Without a trace g_level
// stays as it was: a child forked while another thread resolved it resolves it again.
void AfterForkInChild() {
  RestoreClockInChild();
  new (&g_mutex) std::mutex;
  t_is_busy = false;
  t_is_switching = false;
  Trace* const parent = g_trace.exchange(nullptr);
  if (parent == nullptr) return;
  g_level.store(kOff);
  TraceSink* const sink = parent->writer.trace_sink();
  if (sink == nullptr) return;  // the sink does not support forks: no trace in the child
  try {
    g_child_sink = new TakeSink{sink->AfterFork(), LevelOf(parent->options)};
    g_level.store(kForked);
  } catch (...) {  // no memory: no trace in the child
  }
}

// When the program is loaded, not when a trace starts: a child may be the first to start one.
[[gnu::constructor]] void RegisterForkHandlers() {
  pthread_atfork(BeforeFork, nullptr, AfterForkInChild);
}

// The writing thread dies with the process; what is queued is written first, what comes later
// directly.
void AtExit() {
  if (Trace* const trace = g_trace.load()) {
    if (trace->queue != nullptr) trace->queue->Close(trace->options.max_exit_delay);
    trace->ledger.Report();
  }
}

// After the handlers of atexit and the destructors of static objects, which may wait for threads
// that have something to say.
[[gnu::destructor]] void AtVeryEnd() {
  if (Trace* const trace = g_trace.load()) trace->writer.LeaveToThisThread();
}

void Begin(Options options, std::shared_ptr<Sink> sink) {
  if (!std::exchange(g_has_exit_handler, true)) std::atexit(AtExit);
  RefreshUtcOffset();
  const int level = LevelOf(options);
  auto* const trace = new Trace(std::move(options), std::move(sink));
  trace->previous = g_last_trace.load();
  g_last_trace.store(trace);
  g_trace.store(trace, std::memory_order_release);
  g_level.store(level);
}

// Calls no callback of the host: that is left to the caller, who holds no lock then.
void Close(Trace& trace) {
  if (trace.queue != nullptr) trace.queue->Close(trace.options.max_exit_delay);
  trace.writer.Close();
}

Trace* EndLocked() {
  g_level.store(kOff);
  Trace* const trace = g_trace.exchange(nullptr);
  if (trace != nullptr) Close(*trace);
  return trace;
}

// Null if `options` name neither a sink nor a directory.
std::shared_ptr<Sink> MakeSink(const Options& options) {
  if (options.sink != nullptr || options.directory.empty()) return options.sink;
  FileSinkOptions file;
  file.directory = options.directory;
  const int64_t set = g_rank.load();
  if (set >= 0) file.rank = static_cast<uint32_t>(set);
  if (set == kRankNotSet) file.rank = options.rank;
  file.rotate_size_bytes = options.rotate_size_bytes;
  file.budget_size_bytes = options.budget_size_bytes;
  return MakeFileSink(std::move(file));
}

// Replaces the trace that runs, without a moment in which tracing is off; sets `ended` to it.
bool StartLocked(Options options, Trace*& ended) {
  if (!options.rank) options.rank = Options::FromEnvironment().rank;
  std::shared_ptr<Sink> sink = MakeSink(options);
  Trace* const running = g_trace.load();
  if (sink == nullptr || (running != nullptr && running->writer.sink() == sink.get())) {
    ended = EndLocked();  // a sink must not be called for two traces at a time
    if (sink == nullptr) return false;
  }
  const std::string complaints = options.complaints;
  Begin(std::move(options), std::move(sink));
  if (!complaints.empty()) g_trace.load()->ledger.Warn(LossKind::kBadOption, complaints);
  if (running != nullptr && ended == nullptr) {
    Close(*running);
    ended = running;
  }
  return true;
}

AsyncQueue* MakeQueue(const Options& options, RecordWriter& writer, LossLedger& ledger) {
  if (options.async == AsyncMode::kOff) return nullptr;
  return new AsyncQueue({options.queue_size_bytes, options.async, options.max_block}, writer,
                        ledger);
}

}  // namespace

constinit std::atomic<int> g_level{kUnknown};

Trace::Trace(Options options_in, std::shared_ptr<Sink> sink)
    : options(std::move(options_in)),
      pid(getpid()),
      pid_text(std::to_string(pid)),
      ledger(options.on_error),
      limits(options.limits),
      writer(std::move(sink), pid_text, ledger),
      queue(MakeQueue(options, writer, ledger)) {}

Trace* CurrentTrace() noexcept { return g_trace.load(std::memory_order_acquire); }

bool Trace::Submit(PendingRecord& record, FramedRecord& framed) noexcept {
  if (record.payload.is_set() && record.payload.view().size() > options.max_payload_size_bytes) {
    record.payload.Clear();
    ledger.Lost(
        LossKind::kPayloadTooLarge, record.name,
        "a payload is larger than max_payload_size_bytes; its record is written without it");
  }
  if (queue == nullptr) return writer.Write(record, framed);
  bool is_taken = true;
  try {
    switch (queue->Push(record)) {
      case AsyncQueue::PushResult::kQueued:
        break;
      case AsyncQueue::PushResult::kClosed:
        is_taken = writer.Write(record, framed);
        break;
      case AsyncQueue::PushResult::kFull:
        ledger.Lost(LossKind::kQueueFull, record.name,
                    "the queue of records is full; records are dropped and counted");
        break;
    }
  } catch (...) {
    ledger.Lost(LossKind::kBuilderFailed, record.name, "no memory or no thread to queue a record");
  }
  ledger.Report();
  return is_taken;
}

int ResolveLevel() noexcept {
  if (t_is_busy || t_is_switching) return kOff;
  const ErrnoScope keeps_errno;
  const NotCancelled until_end;
  try {
    // A thread that emits while another one starts the trace waits here: g_level is "not known"
    // until the trace has started.
    const SwitchScope scope;
    const int level = g_level.load();
    if (level == kForked) {
      const Trace* const parent = g_last_trace.load();
      if (g_child_sink == nullptr || g_child_sink->sink == nullptr || parent == nullptr) {
        g_level.store(kOff);
      } else {
        Options options = parent->options;
        options.sink = nullptr;
        Begin(std::move(options), g_child_sink->sink);
      }
      delete std::exchange(g_child_sink, nullptr);
    } else if (level == kUnknown) {
      Options options = Options::FromEnvironment();
      Trace* ended = nullptr;
      if (options.directory.empty() || !StartLocked(std::move(options), ended)) {
        g_level.store(kOff);
      }
    }
    return g_level.load();
  } catch (...) {
    g_level.store(kOff);
    return kOff;
  }
}

Trace* TraceForRecord() noexcept {
  if (Trace* const trace = CurrentTrace()) return trace;
  const int level = g_level.load();
  if (level == kOff || (level >= kUnknown && ResolveLevel() == kOff)) return nullptr;
  return CurrentTrace();
}

}  // namespace detail

bool Start(Options options) noexcept {
  if (detail::t_is_busy || detail::t_is_switching) return false;
  const detail::ErrnoScope keeps_errno;
  const detail::NotCancelled until_end;
  try {
    detail::Trace* ended = nullptr;
    bool is_started = false;
    {
      const detail::SwitchScope scope;
      if (options.rank) detail::g_rank.store(detail::kRankNotSet);  // the newer word counts
      is_started = detail::StartLocked(std::move(options), ended);
    }
    if (ended != nullptr) ended->ledger.Report();
    return is_started;
  } catch (...) {
    return false;
  }
}

void Stop() noexcept {
  if (detail::t_is_busy || detail::t_is_switching) return;
  const detail::ErrnoScope keeps_errno;
  const detail::NotCancelled until_end;
  detail::Trace* ended = nullptr;
  {
    const detail::SwitchScope scope;
    ended = detail::EndLocked();
  }
  if (ended != nullptr) ended->ledger.Report();
}

bool Flush(std::chrono::milliseconds timeout) noexcept {
  detail::Trace* const trace = detail::CurrentTrace();
  if (trace == nullptr || trace->queue == nullptr) return true;
  const detail::ErrnoScope keeps_errno;
  const detail::NotCancelled until_end;
  return trace->queue->Flush(timeout);
}

void SetRank(std::optional<uint32_t> rank) noexcept {
  detail::g_rank.store(rank ? int64_t{*rank} : detail::kNoRank);
  detail::Trace* const trace = detail::CurrentTrace();
  if (trace == nullptr) return;
  const detail::ErrnoScope keeps_errno;
  const detail::NotCancelled until_end;
  trace->writer.SetRank(rank);
}

std::optional<uint32_t> Rank() noexcept {
  const int64_t set = detail::g_rank.load(std::memory_order_relaxed);
  if (set >= 0) return static_cast<uint32_t>(set);
  const detail::Trace* const trace = detail::CurrentTrace();
  if (set == detail::kNoRank || trace == nullptr) return std::nullopt;
  return trace->options.rank;
}

ProvenanceLevel CurrentProvenanceLevel() noexcept {
  if (!IsEnabled()) return ProvenanceLevel::kOff;
  const detail::Trace* const trace = detail::CurrentTrace();
  return trace == nullptr ? ProvenanceLevel::kOff : trace->options.provenance;
}

Stats GetStats() noexcept {
  Stats stats;
  const detail::Trace* const trace = detail::g_last_trace.load();
  // A child that has not emitted yet has its parent's.
  if (trace == nullptr || trace->pid != static_cast<int>(detail::ProcessId())) return stats;
  const detail::WriteCounters& counters = trace->writer.counters();
  stats.record_count = counters.record_count.load();
  stats.size_bytes = counters.size_bytes.load();
  stats.repaired_payload_count = counters.repaired_payload_count.load();
  stats.file_count = counters.file_count.load();
  for (size_t i = 0; i < stats.lost_by_kind.size(); ++i) {
    const auto kind = static_cast<LossKind>(i);
    stats.lost_by_kind[i] = trace->ledger.count(kind);
    const bool is_lost = kind != LossKind::kPayloadTooLarge && kind != LossKind::kBadOption &&
                         kind != LossKind::kBadEncoding && kind != LossKind::kLimited;
    if (is_lost) stats.lost_record_count += stats.lost_by_kind[i];
  }
  return stats;
}

std::string LogPath() noexcept {
  detail::Trace* const trace = detail::CurrentTrace();
  if (trace == nullptr) return {};
  const detail::ErrnoScope keeps_errno;
  return trace->writer.path();
}

}  // namespace libtrace
