#include "libtrace/cuda/cuda_activity.h"

#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "cuda/cupti.h"
#include "libtrace/trace.h"

namespace libtrace {

std::atomic<bool> detail::is_watching_cuda = false;

namespace {

constexpr int32_t kKinds[] = {cupti::kConcurrentKernel, cupti::kMemcpy, cupti::kMemset,
                              cupti::kExternalCorrelation};
constexpr size_t kBufferSize = size_t{1} << 20;

struct Launch {
  std::string op;
  std::optional<std::string> node;
};

std::string CopyName(uint8_t kind) {  // CUpti_ActivityMemcpyKind
  static constexpr const char* kNames[] = {"unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                           "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
  return kind < std::size(kNames) ? kNames[kind] : kNames[0];
}

}  // namespace

struct CudaActivity::Impl {
  const cupti::Library* library = nullptr;
  uint32_t max_records = 0;
  bool is_watching = false;

  mutable std::mutex mutex;
  std::unordered_map<uint64_t, Launch> launches;                 // by external id
  std::unordered_map<uint32_t, uint64_t> external_ids;           // by correlation id
  std::vector<std::pair<uint32_t, CudaActivityRecord>> records;  // with correlation id
  uint64_t next_id = 1;
  uint64_t lost_count = 0;

  Status Start();
  void Add(const cupti::Record& record);
  template <class Activity>
  void AddActivity(const Activity& activity, std::string kind, std::string name,
                   uint64_t size_bytes);
};

namespace {

// CUPTI's callbacks are plain functions: whom they belong to is found here.
std::mutex current_mutex;
std::shared_ptr<CudaActivity::Impl> current;

std::shared_ptr<CudaActivity::Impl> Current() {
  const std::lock_guard lock(current_mutex);
  return current;
}

void OnBufferRequested(uint8_t** buffer, size_t* size_bytes, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferSize));
  *size_bytes = *buffer == nullptr ? 0 : kBufferSize;
  *max_records = 0;  // as many as fit
}

void OnBufferCompleted(void* context, uint32_t stream, uint8_t* buffer, size_t,
                       size_t valid_bytes) {
  const std::shared_ptr<CudaActivity::Impl> impl = Current();
  if (impl != nullptr && buffer != nullptr) {
    try {
      const std::lock_guard lock(impl->mutex);
      cupti::Record* record = nullptr;
      while (valid_bytes > 0 && impl->library->get_next_record(buffer, valid_bytes, &record) == 0)
        impl->Add(*record);
      size_t dropped = 0;
      if (impl->library->get_dropped(context, stream, &dropped) == 0) impl->lost_count += dropped;
    } catch (...) {  // no memory: the rest of this buffer is lost
      ++impl->lost_count;
    }
  }
  std::free(buffer);
}

// Callbacks can be registered once per process.
Status RegisterOnce(const cupti::Library& library) {
  static const int result = library.register_callbacks(OnBufferRequested, OnBufferCompleted);
  if (result == 0) return {};
  return Status::Error("CUPTI is in use by something else: " + library.Text(result));
}

}  // namespace

template <class Activity>
void CudaActivity::Impl::AddActivity(const Activity& activity, std::string kind, std::string name,
                                     uint64_t size_bytes) {
  if (records.size() >= max_records) {
    ++lost_count;
    return;
  }
  CudaActivityRecord record{.kind = std::move(kind), .name = std::move(name)};
  record.device = activity.device;
  record.stream = activity.stream;
  record.start_ns = activity.start;
  record.duration_ns = activity.end > activity.start ? activity.end - activity.start : 0;
  record.size_bytes = size_bytes;
  records.emplace_back(activity.correlation_id, std::move(record));
}

void CudaActivity::Impl::Add(const cupti::Record& record) {
  switch (record.kind) {
    case cupti::kExternalCorrelation: {
      const auto& link = reinterpret_cast<const cupti::ExternalCorrelationRecord&>(record);
      if (link.external_kind == cupti::kExternalKind)
        external_ids[link.correlation_id] = link.external_id;
      break;
    }
    case cupti::kConcurrentKernel: {
      const auto& kernel = reinterpret_cast<const cupti::KernelRecord&>(record);
      AddActivity(kernel, "kernel", kernel.name == nullptr ? "" : kernel.name, 0);
      break;
    }
    case cupti::kMemcpy: {
      const auto& copy = reinterpret_cast<const cupti::MemcpyRecord&>(record);
      AddActivity(copy, "memcpy", CopyName(copy.copy_kind), copy.size_bytes);
      break;
    }
    case cupti::kMemset: {
      const auto& set = reinterpret_cast<const cupti::MemsetRecord&>(record);
      AddActivity(set, "memset", "memset", set.size_bytes);
      break;
    }
    default:
      break;
  }
}

Status CudaActivity::Impl::Start() {
  if (Status status = cupti::Open(library); !status) return status;
  if (Status status = RegisterOnce(*library); !status) return status;
  for (const int32_t kind : kKinds) {
    const int result = library->enable(kind);
    if (result == 0) continue;
    for (const int32_t other : kKinds) library->disable(other);
    return Status::Error("CUPTI sees no GPU that it can watch: " + library->Text(result));
  }
  is_watching = true;
  return {};
}

CudaActivity::CudaActivity(CudaActivityOptions options) : impl_(std::make_shared<Impl>()) {
  impl_->max_records = options.max_records;
  if (!IsEnabled()) {
    status_ = Status::Error("tracing is off");
    return;
  }
  {
    const std::lock_guard lock(current_mutex);
    if (current) {
      status_ = Status::Error("another CudaActivity is watching");
      return;
    }
    current = impl_;
  }
  status_ = impl_->Start();
  if (status_.ok()) {
    detail::is_watching_cuda.store(true);
  } else {
    const std::lock_guard lock(current_mutex);
    current.reset();
  }
}

CudaActivity::~CudaActivity() { Emit(); }

void CudaActivity::Emit(CallSite location) noexcept {
  if (!impl_->is_watching) return;
  impl_->is_watching = false;
  detail::is_watching_cuda.store(false);
  impl_->library->flush_all(1);  // also what is not complete yet
  for (const int32_t kind : kKinds) impl_->library->disable(kind);
  {
    const std::lock_guard lock(current_mutex);
    current.reset();
  }
  try {
    const std::vector<CudaActivityRecord> records = Records();
    EmitOptions options;
    options.expects_compile_id = false;
    EmitJsonArtifact(
        "libtrace_cuda_activity", JsonStyle::kOneLine,
        [&](JsonWriter& json) {
          json.BeginObject()
              .Field("cupti", impl_->library->path)
              .Field("cupti_version", impl_->library->version);
          json.Field("lost_count", lost_count()).Key("activities").BeginArray();
          for (const CudaActivityRecord& record : records) {
            json.BeginObject().Field("kind", record.kind).Field("name", record.name);
            json.OptionalField("op", record.op).OptionalField("node", record.node);
            json.Field("device", record.device).Field("stream", record.stream);
            json.Field("start_ns", record.start_ns).Field("duration_ns", record.duration_ns);
            if (record.kind != "kernel") json.Field("size_bytes", record.size_bytes);
            json.EndObject();
          }
          json.EndArray().EndObject();
        },
        options, location);
  } catch (...) {  // no memory
  }
}

std::vector<CudaActivityRecord> CudaActivity::Records() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<CudaActivityRecord> result;
  for (const auto& [correlation_id, record] : impl_->records) {
    result.push_back(record);
    const auto external = impl_->external_ids.find(correlation_id);
    if (external == impl_->external_ids.end()) continue;
    const auto launch = impl_->launches.find(external->second);
    if (launch == impl_->launches.end()) continue;
    result.back().op = launch->second.op;
    result.back().node = launch->second.node;
  }
  return result;
}

uint64_t CudaActivity::lost_count() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->lost_count;
}

bool detail::PushCudaLaunch(std::string_view op, const std::string* node) noexcept {
  try {
    const std::shared_ptr<CudaActivity::Impl> impl = Current();
    if (impl == nullptr) return false;
    const std::lock_guard lock(impl->mutex);
    if (impl->launches.size() >= impl->max_records) return false;
    const uint64_t id = impl->next_id++;
    impl->launches.emplace(
        id, Launch{std::string(op), node == nullptr ? std::nullopt : std::optional(*node)});
    return impl->library->push_id(cupti::kExternalKind, id) == 0;
  } catch (...) {  // no memory
    return false;
  }
}

void detail::PopCudaLaunch() noexcept {
  const cupti::Library* library = nullptr;
  uint64_t id = 0;
  if (cupti::Open(library)) library->pop_id(cupti::kExternalKind, &id);
}

}  // namespace libtrace
