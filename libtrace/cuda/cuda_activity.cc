#include "libtrace/cuda/cuda_activity.h"

#include <time.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <mutex>

#include "core/errno_scope.h"
#include "core/per_process.h"
#include "cuda/activity_store.h"
#include "cuda/cupti.h"
#include "libtrace/trace.h"

namespace libtrace {

std::atomic<bool> detail::is_watching_cuda = false;

namespace {

// CUPTI makes external-correlation records only with a record of a runtime or driver call.
constexpr int32_t kKinds[] = {cupti::kDriver,          cupti::kRuntime, cupti::kMemcpy,
                              cupti::kPeerMemcpy,      cupti::kMemset,  cupti::kExternalCorrelation,
                              cupti::kConcurrentKernel};
constexpr size_t kBufferSize = size_t{1} << 20;
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

}  // namespace

struct CudaActivity::Impl {
  explicit Impl(const CudaActivityOptions& chosen) : options(chosen) {}

  const CudaActivityOptions options;
  CallSite location;
  const cupti::Library* library = nullptr;
  std::unique_ptr<ActivityStore> store;  // made before anything is watched, then stays
  std::atomic<bool> is_watching = false;
  std::vector<CudaClock> clocks;
  const uint32_t process_id = detail::ProcessId();

  // In a forked child of the process that made it: what is watched is not the child's.
  bool IsInherited() const { return process_id != detail::ProcessId(); }

  Status Start();
  void ReadClock();
  void EmitAll(CallSite place) const;
};

namespace {

// CUPTI's callbacks are plain functions: whom they belong to is found here.
struct Watching {
  std::mutex mutex;
  std::shared_ptr<CudaActivity::Impl> current;
};
// Never destroyed: CUPTI may call while the process ends.
constinit std::atomic<detail::PerProcess<Watching>*> g_watching{nullptr};
Watching& TheWatching() { return detail::MadeOnce(g_watching).get(); }
std::atomic<uint32_t> buffer_count = 0;  // that CUPTI holds

std::shared_ptr<CudaActivity::Impl> Current() {
  Watching& watching = TheWatching();
  const std::lock_guard lock(watching.mutex);
  return watching.current;
}

// Without a buffer CUPTI drops the records and counts them.
void OnBufferRequested(uint8_t** buffer, size_t* size_bytes, size_t* max_records) {
  *buffer = nullptr;
  *size_bytes = 0;
  *max_records = 0;  // as many as fit
  const std::shared_ptr<CudaActivity::Impl> impl = Current();
  if (impl == nullptr) return;
  if (buffer_count.fetch_add(1) < impl->options.max_buffers)
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferSize));
  if (*buffer != nullptr) {
    *size_bytes = kBufferSize;
  } else {
    buffer_count.fetch_sub(1);
  }
}

void OnBufferCompleted(void* context, uint32_t stream, uint8_t* buffer, size_t,
                       size_t valid_bytes) {
  if (buffer == nullptr) return;
  if (const std::shared_ptr<CudaActivity::Impl> impl = Current()) {
    try {
      cupti::Record* record = nullptr;
      while (valid_bytes > 0 && impl->library->get_next_record(buffer, valid_bytes, &record) == 0)
        impl->store->Add(*record);
    } catch (...) {  // no memory: the rest of this buffer is lost
      impl->store->AddLost(1);
    }
    size_t dropped = 0;
    if (impl->library->get_dropped(context, stream, &dropped) == 0) impl->store->AddLost(dropped);
  }
  std::free(buffer);
  buffer_count.fetch_sub(1);
}

// Callbacks can be registered once per process. Called by the one object that is about to watch.
Status RegisterOnce(const cupti::Library& library) {
  constexpr int kUnknown = INT_MIN;
  static constinit std::atomic<int> known{kUnknown};
  int result = known;
  if (result == kUnknown)
    known = result = library.register_callbacks(OnBufferRequested, OnBufferCompleted);
  if (result == 0) return {};
  return Status::Error("CUPTI is in use by something else: " + library.Text(result));
}

}  // namespace

Status CudaActivity::Impl::Start() {
  if (Status status = cupti::Open(library); !status) return status;
  store = std::make_unique<ActivityStore>(options, library->has_graph_ids());
  if (Status status = RegisterOnce(*library); !status) return status;
  for (const int32_t kind : kKinds) {
    const int result = library->enable(kind);
    if (result == 0) continue;
    for (const int32_t other : kKinds) library->disable(other);
    return Status::Error("CUPTI sees no GPU that it can watch: " + library->Text(result));
  }
  ReadClock();
  is_watching = true;
  return {};
}

void CudaActivity::Impl::ReadClock() {
  if (const auto clock = libtrace::ReadClock(*library)) clocks.push_back(*clock);
}

CudaActivity::CudaActivity(CudaActivityOptions options, CallSite location) {
  const detail::ErrnoScope keeps_errno;
  impl_ = std::make_shared<Impl>(options);
  impl_->location = location;
  if (!IsEnabled()) {
    status_ = Status::Error("tracing is off");
    return;
  }
  Watching& watching = TheWatching();
  {
    const std::lock_guard lock(watching.mutex);
    if (watching.current) {
      status_ = Status::Error("another CudaActivity is watching");
      return;
    }
    watching.current = impl_;
  }
  status_ = impl_->Start();
  if (status_.ok()) {
    detail::is_watching_cuda.store(true);
  } else {
    const std::lock_guard lock(watching.mutex);
    watching.current.reset();
  }
}

CudaActivity::~CudaActivity() { Emit(impl_->location); }

void CudaActivity::Emit(CallSite location) noexcept {
  if (impl_->IsInherited() || !impl_->is_watching.exchange(false)) return;
  const detail::ErrnoScope keeps_errno;
  detail::is_watching_cuda.store(false);
  for (const int32_t kind : kKinds) impl_->library->disable(kind);
  impl_->library->flush_all(cupti::kFlushForced);
  size_t dropped = 0;  // also those that never got a buffer
  if (impl_->library->get_dropped(nullptr, 0, &dropped) == 0) impl_->store->AddLost(dropped);
  {
    Watching& watching = TheWatching();
    const std::lock_guard lock(watching.mutex);
    watching.current.reset();
  }
  try {
    impl_->ReadClock();
    impl_->EmitAll(location);
  } catch (...) {  // no memory
  }
}

void CudaActivity::Impl::EmitAll(CallSite place) const {
  const std::vector<CudaActivityRecord> records = store->Records();
  const CudaActivityCounts counts = store->counts();
  EmitOptions emit;
  emit.expects_compile_id = false;
  size_t next = 0;
  do {
    const size_t end = std::min(next + kActivitiesPerRecord, records.size());
    const bool is_last = end == records.size();
    EmitJsonArtifact(
        "libtrace_cuda_activity", JsonStyle::kOneLine,
        [&](JsonWriter& json) {
          json.BeginObject().Field("cupti", library->path);
          json.Field("cupti_version", library->version);
          if (library->version > cupti::kNewestComparedVersion)
            json.Field("newest_compared_version", cupti::kNewestComparedVersion);
          json.Field("lost_count", is_last ? counts.lost_count : 0);
          json.Field("unlabelled_count", is_last ? counts.unlabelled_count : 0);
          json.Key("clock").BeginArray();
          for (const CudaClock& clock : clocks) {
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
  if (impl_->store == nullptr || impl_->IsInherited()) return {};
  return impl_->store->Records();
}

CudaActivityCounts CudaActivity::counts() const {
  const detail::ErrnoScope keeps_errno;
  if (impl_->store == nullptr || impl_->IsInherited()) return {};
  return impl_->store->counts();
}

std::vector<CudaClock> CudaActivity::clocks() const {
  const detail::ErrnoScope keeps_errno;
  return impl_->clocks;
}

bool detail::PushCudaLaunch(std::string_view op, const std::string* node) noexcept {
  const detail::ErrnoScope keeps_errno;
  try {
    const std::shared_ptr<CudaActivity::Impl> impl = Current();
    if (impl == nullptr || !impl->is_watching) return false;
    const uint64_t label = impl->store->LabelOf(op, node);
    return impl->library->push_id(cupti::kExternalKind, label) == 0;
  } catch (...) {  // no memory
    return false;
  }
}

void detail::PopCudaLaunch() noexcept {
  const detail::ErrnoScope keeps_errno;
  const cupti::Library* library = nullptr;
  uint64_t id = 0;
  if (cupti::Open(library)) library->pop_id(cupti::kExternalKind, &id);
}

}  // namespace libtrace
