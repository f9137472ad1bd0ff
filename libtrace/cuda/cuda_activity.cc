#include "libtrace/cuda/cuda_activity.h"

#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/errno_scope.h"
#include "core/signal_guard.h"
#include "core/thread_id.h"
#include "cuda/cupti.h"
#include "cuda/session.h"
#include "libtrace/trace.h"

namespace libtrace {

std::atomic<bool> detail::is_watching_cuda = false;

namespace {

constexpr size_t kActivitiesPerRecord = 20'000;

int64_t EpochNs() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// The narrowest of several readings: CUPTI's time lies between two of ours.
std::optional<CudaClock> ReadClock(const cupti::Library& library) {
  std::optional<CudaClock> best;
  if (library.get_timestamp == nullptr) return best;
  for (int i = 0; i < 16; ++i) {
    CudaClock clock;
    const int64_t before_ns = EpochNs();
    if (library.get_timestamp(&clock.cupti_ns) != 0) return best;
    const int64_t width_ns = EpochNs() - before_ns;
    if (width_ns < 0) continue;  // the system's clock was set back
    clock.epoch_ns = before_ns + width_ns / 2;
    clock.error_ns = static_cast<uint64_t>(width_ns / 2 + 1);
    if (!best || clock.error_ns < best->error_ns) best = clock;
  }
  return best;
}

void WriteActivity(JsonWriter& json, const CudaActivityRecord& record) {
  json.BeginObject().Field("kind", record.kind).Field("name", record.name);
  json.OptionalField("op", record.op).OptionalField("node", record.node);
  json.Field("device", record.device).Field("stream", record.stream);
  if (record.start_ns != cupti::kUnknownTime) json.Field("start_ns", record.start_ns);
  if (record.has_ended) json.Field("duration_ns", record.duration_ns);
  if (record.kind != "kernel") json.Field("size_bytes", record.size_bytes);
  json.OptionalField("source_device", record.source_device);
  json.OptionalField("target_device", record.target_device);
  if (record.graph_id != 0)
    json.Field("graph_id", record.graph_id).Field("graph_node_id", record.graph_node_id);
  json.EndObject();
}

// Only what is not as it should be.
void WriteClients(JsonWriter& json, const CudaActivityCounts& counts,
                  const CudaActivityClients& clients) {
  if (counts.unsampled_count != 0) json.Field("unsampled_count", counts.unsampled_count);
  if (counts.foreign_id_count != 0) json.Field("foreign_id_count", counts.foreign_id_count);
  if (clients.foreign_buffer_count != 0)
    json.Field("foreign_buffer_count", clients.foreign_buffer_count);
  if (!clients.end) return;
  json.Field("left_enabled_count", clients.left_enabled_count);
  json.Key("ended_early").BeginObject().Field("reason", clients.end->reason);
  if (clients.end->last_call_ns != cupti::kUnknownTime)
    json.Field("last_call_ns", clients.end->last_call_ns);
  if (clients.end->noticed_ns != cupti::kUnknownTime)
    json.Field("noticed_ns", clients.end->noticed_ns);
  json.EndObject();
}

}  // namespace

struct CudaActivity::Impl {
  CallSite location;
  std::shared_ptr<cupti::Session> session;  // null: nothing was watched
  std::atomic<bool> is_watching = false;
  std::vector<CudaClock> clocks;
  const uint32_t process_id = detail::ProcessId();
  // The thread that writes, and what tells it to end.
  struct Writer {
    std::thread thread;
    std::mutex mutex;
    std::condition_variable end_wanted;
    bool is_ending = false;
  };
  std::unique_ptr<Writer> writer;
  CudaActivityCounts written;  // of what is written already

  // In a child the writer's thread is not there, and destroying what it waits for would wait for it.
  ~Impl() {
    if (IsInherited()) static_cast<void>(writer.release());
  }

  // In a forked child of the process that made it: what is watched is not the child's.
  bool IsInherited() const { return process_id != detail::ProcessId(); }

  std::vector<CudaClock> Clocks();
  void StartWriter(std::chrono::milliseconds interval);
  void EndWriter();
  void Write(std::chrono::milliseconds interval);
  void EmitAll(const std::vector<CudaActivityRecord>& records, bool is_end, CallSite place);
};

// Of the start and now.
std::vector<CudaClock> CudaActivity::Impl::Clocks() {
  std::vector<CudaClock> both = clocks;
  if (const auto clock = ReadClock(session->library())) both.push_back(*clock);
  return both;
}

void CudaActivity::Impl::Write(std::chrono::milliseconds interval) {
  std::unique_lock lock(writer->mutex);
  while (!writer->end_wanted.wait_for(lock, interval, [this] { return writer->is_ending; })) {
    lock.unlock();
    bool may_go_on = true;
    try {
      may_go_on = session->Fetch();
      if (!may_go_on) detail::is_watching_cuda.store(false);
      const std::vector<CudaActivityRecord> records = session->store().Take();
      if (!records.empty()) EmitAll(records, false, location);
    } catch (...) {  // no memory: they are lost
      session->store().AddLost(1);
    }
    lock.lock();
    if (!may_go_on) return;
  }
}

void CudaActivity::Impl::StartWriter(std::chrono::milliseconds interval) {
  const detail::AllSignalsBlocked blocked;
  writer = std::make_unique<Writer>();
  try {
    writer->thread = std::thread([this, interval] { Write(interval); });
  } catch (const std::system_error&) {  // the process may not have another thread: all at Emit
    writer.reset();
  }
}

void CudaActivity::Impl::EndWriter() {
  if (writer == nullptr) return;
  {
    const std::lock_guard lock(writer->mutex);
    writer->is_ending = true;
  }
  writer->end_wanted.notify_one();
  writer->thread.join();
  writer.reset();
}

CudaActivity::CudaActivity(CudaActivityOptions options, CallSite location) {
  const detail::ErrnoScope keeps_errno;
  impl_ = std::make_shared<Impl>();
  impl_->location = location;
  if (!IsEnabled()) {
    status_ = Status::Error("tracing is off");
    return;
  }
  status_ = cupti::Session::Start(options, impl_->session);
  if (!status_.ok()) return;
  if (const auto clock = ReadClock(impl_->session->library())) impl_->clocks.push_back(*clock);
  impl_->is_watching = true;
  detail::is_watching_cuda.store(true);
  if (options.write_interval.count() > 0) impl_->StartWriter(options.write_interval);
}

CudaActivity::~CudaActivity() { Emit(impl_->location); }

void CudaActivity::Emit(CallSite location) noexcept {
  if (impl_->IsInherited() || !impl_->is_watching.exchange(false)) return;
  const detail::ErrnoScope keeps_errno;
  impl_->EndWriter();
  detail::is_watching_cuda.store(false);
  impl_->session->Stop();
  try {
    impl_->clocks = impl_->Clocks();
    impl_->EmitAll(impl_->session->store().Records(), true, location);
  } catch (...) {  // no memory
  }
}

// Counts are those since the last time.
void CudaActivity::Impl::EmitAll(const std::vector<CudaActivityRecord>& records, bool is_end,
                                 CallSite place) {
  const CudaActivityCounts all = session->store().counts();
  const CudaActivityCounts counts{all.lost_count - written.lost_count,
                                  all.unlabelled_count - written.unlabelled_count,
                                  all.foreign_id_count - written.foreign_id_count,
                                  all.unsampled_count - written.unsampled_count};
  written = all;
  const std::vector<CudaClock> readings = is_end ? clocks : Clocks();
  const CudaActivityClients& clients = session->clients();
  const cupti::Library& library = session->library();
  EmitOptions emit;
  emit.expects_compile_id = false;
  size_t next = 0;
  do {
    const size_t end = std::min(next + kActivitiesPerRecord, records.size());
    const bool is_last = end == records.size();
    EmitJsonArtifact(
        "libtrace_cuda_activity", JsonStyle::kOneLine,
        [&](JsonWriter& json) {
          json.BeginObject().Field("cupti", library.path);
          json.Field("cupti_version", library.version);
          if (library.version > cupti::kNewestComparedVersion)
            json.Field("newest_compared_version", cupti::kNewestComparedVersion);
          json.Field("lost_count", is_last ? counts.lost_count : 0);
          json.Field("unlabelled_count", is_last ? counts.unlabelled_count : 0);
          if (is_last) WriteClients(json, counts, is_end ? clients : CudaActivityClients());
          json.Key("clock").BeginArray();
          for (const CudaClock& clock : readings) {
            json.BeginObject().Field("cupti_ns", clock.cupti_ns).Field("epoch_ns", clock.epoch_ns);
            json.Field("error_ns", clock.error_ns).EndObject();
          }
          json.EndArray().Key("activities").BeginArray();
          for (size_t i = next; i < end; ++i) WriteActivity(json, records[i]);
          json.EndArray().EndObject();
        },
        emit, place);
    next = end;
  } while (next < records.size());
}

std::vector<CudaActivityRecord> CudaActivity::Records() const {
  const detail::ErrnoScope keeps_errno;
  if (impl_->session == nullptr || impl_->IsInherited()) return {};
  return impl_->session->store().Records();
}

CudaActivityCounts CudaActivity::counts() const {
  const detail::ErrnoScope keeps_errno;
  if (impl_->session == nullptr || impl_->IsInherited()) return {};
  return impl_->session->store().counts();
}

CudaActivityClients CudaActivity::clients() const {
  const detail::ErrnoScope keeps_errno;
  if (impl_->session == nullptr || impl_->IsInherited() || impl_->is_watching) return {};
  return impl_->session->clients();
}

std::vector<CudaClock> CudaActivity::clocks() const {
  const detail::ErrnoScope keeps_errno;
  return impl_->clocks;
}

bool detail::PushCudaLaunch(std::string_view op, const std::string* node) noexcept {
  const detail::ErrnoScope keeps_errno;
  try {
    return cupti::Session::Push(op, node);
  } catch (...) {  // no memory
    return false;
  }
}

void detail::PopCudaLaunch() noexcept {
  const detail::ErrnoScope keeps_errno;
  cupti::Session::Pop();
}

}  // namespace libtrace
