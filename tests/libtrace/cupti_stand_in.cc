// A stand-in for NVIDIA's libcupti, so that libtrace::cuda can be tried without a GPU: the activity
// functions that it uses, and "launches" that leave the records a GPU would. It proves the client's
// logic, not that real CUPTI behaves so. cuda_driver_stand_in.cc adds a driver.
//
// As CUPTI's headers say (cupti_activity.h, cupti_callbacks.h): external-correlation records are made
// only beside the record of an API call, one for each kind of external id; the callbacks are those
// that were registered last, for all buffers; kinds are enabled and disabled for the whole
// process; there is one subscriber. CUPTI_STAND_IN_13_5 adds what CUDA 13.5 has to ask for kinds, and
// to leave out calls by number: enabling the kind again takes that back.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "cuda/cupti.h"

namespace {

using namespace libtrace::cupti;

std::mutex mutex;
BufferRequested request = nullptr;
BufferCompleted complete = nullptr;
bool is_enabled[64] = {};
std::map<int32_t, std::set<uint32_t>> left_out;                  // calls, by kind
thread_local std::map<int, std::vector<uint64_t>> external_ids;  // by kind
int subscriber_count = 0;
std::map<int32_t, int> enable_errors;  // by kind
// The buffer that is being filled; whose it is, CUPTI does not know.
uint8_t* buffer = nullptr;
size_t buffer_size = 0, used_size = 0;
uint32_t correlation_id = 0;
uint64_t clock_ns = 0;                   // the device is busy until then
bool is_launch_late = false;             // the launch's record comes after the activity's
std::atomic<size_t> no_buffer_count{0};  // records dropped because there was no buffer

uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

constexpr size_t kLengthSize = 8;  // each record lies behind its length, at a multiple of 8

void HandOver() {
  uint8_t* const full = std::exchange(buffer, nullptr);
  if (full != nullptr && complete != nullptr) complete(nullptr, 0, full, buffer_size, used_size);
}

template <class T>
void Put(const T& record) {
  if (!is_enabled[record.kind]) return;
  constexpr size_t kNeeded = kLengthSize + (sizeof(T) + 7) / 8 * 8;
  if (buffer != nullptr && used_size + kNeeded > buffer_size) HandOver();
  if (buffer == nullptr && request != nullptr) {
    size_t max_records = 0;
    used_size = 0;
    request(&buffer, &buffer_size, &max_records);
  }
  if (buffer == nullptr) {
    ++no_buffer_count;
    return;
  }
  const uint64_t length = sizeof(T);
  std::memcpy(buffer + used_size, &length, kLengthSize);
  std::memcpy(buffer + used_size + kLengthSize, &record, sizeof(T));
  used_size += kNeeded;
}

void PutCall(int32_t kind, uint32_t correlation, uint32_t call = 1) {
  if (!is_enabled[kind] || left_out[kind].count(call) != 0) return;
  const uint64_t now_ns = NowNs();
  for (const auto& [external_kind, ids] : external_ids) {
    if (!ids.empty())
      Put(ExternalCorrelationRecord{kExternalCorrelation, external_kind, ids.back(), correlation,
                                    0});
  }
  Put(CallRecord{kind, call, now_ns, now_ns, 1, 1, correlation, 0});
}

void PutLaunch(uint32_t correlation) {
  PutCall(is_enabled[kRuntime] ? kRuntime : kDriver, correlation);
}

template <class T>
void Time(T& record, uint64_t duration_ns, uint32_t stream) {
  record.start = std::max(clock_ns, NowNs());
  clock_ns = record.start + duration_ns;
  record.end = clock_ns;
  record.stream = stream;
}

// One call that starts these activities.
template <class... T>
void Launch(T&... records) {
  ++correlation_id;
  if (!is_launch_late) PutLaunch(correlation_id);
  ((records.correlation_id = correlation_id, Put(records)), ...);
  if (is_launch_late) PutLaunch(correlation_id);
}

}  // namespace

extern "C" {

// As if the driver were there; cuda_driver_stand_in.cc has one of its own.
[[gnu::weak]] int cuInit(unsigned) { return 0; }
void standin_driver_call();
[[gnu::weak]] int cuDriverGetVersion(int* version) {
  standin_driver_call();
  *version = 13000;
  return 0;
}

int cuptiGetVersion(uint32_t* version) {
  const char* const chosen = std::getenv("CUPTI_STAND_IN_VERSION");
  *version = chosen == nullptr ? 999 : static_cast<uint32_t>(std::atoi(chosen));
  return 0;
}
int cuptiSubscribe(void** subscriber, CallbackFunction, void*) {
  const std::lock_guard lock(mutex);
  if (subscriber_count != 0) return kMultipleSubscribers;
  *subscriber = &subscriber_count;
  ++subscriber_count;
  return 0;
}
int cuptiUnsubscribe(void* subscriber) {
  const std::lock_guard lock(mutex);
  if (subscriber != &subscriber_count || subscriber_count == 0) return 1;
  --subscriber_count;
  return 0;
}
#ifdef CUPTI_STAND_IN_13_5
int cuptiActivityGetEnabledKinds(void*, int32_t*, uint32_t*, uint32_t* count) {
  const std::lock_guard lock(mutex);
  *count = static_cast<uint32_t>(std::count(std::begin(is_enabled), std::end(is_enabled), true));
  return 0;
}
static int EnableCall(int32_t kind, uint32_t call, uint8_t enable) {
  const std::lock_guard lock(mutex);
  enable != 0 ? static_cast<void>(left_out[kind].erase(call))
              : static_cast<void>(left_out[kind].insert(call));
  return 0;
}
int cuptiActivityEnableRuntimeApi(uint32_t call, uint8_t enable) {
  return EnableCall(kRuntime, call, enable);
}
int cuptiActivityEnableDriverApi(uint32_t call, uint8_t enable) {
  return EnableCall(kDriver, call, enable);
}
#endif
int cuptiActivityRegisterCallbacks(BufferRequested requested, BufferCompleted completed) {
  const std::lock_guard lock(mutex);
  request = requested;
  complete = completed;
  return 0;
}
int cuptiActivityEnable(int32_t kind) {
  const std::lock_guard lock(mutex);
  if (const auto error = enable_errors.find(kind); error != enable_errors.end())
    return error->second;
  is_enabled[kind] = true;
  left_out.erase(kind);
  return 0;
}
int cuptiActivityDisable(int32_t kind) {
  const std::lock_guard lock(mutex);
  is_enabled[kind] = false;
  return 0;
}
int cuptiGetResultString(int result, const char** text) {
  *text = result == 9    ? "CUPTI_ERROR_NOT_COMPATIBLE"
          : result == 39 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                         : "STAND_IN";
  return 0;
}
int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* count) {  // also of a callback
  *count = no_buffer_count.exchange(0);
  return 0;
}
int cuptiGetTimestamp(uint64_t* timestamp_ns) {
  *timestamp_ns = NowNs();
  return 0;
}
int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
  external_ids[kind].push_back(id);
  return 0;
}
int cuptiActivityPopExternalCorrelationId(int kind, uint64_t* id) {
  std::vector<uint64_t>& ids = external_ids[kind];
  if (ids.empty()) return 18;  // CUPTI_ERROR_QUEUE_EMPTY
  if (id != nullptr) *id = ids.back();
  ids.pop_back();
  return 0;
}
int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes, Record** record) {
  size_t offset = 0;
  if (*record != nullptr) {
    auto* const bytes = reinterpret_cast<uint8_t*>(*record);
    uint64_t length = 0;
    std::memcpy(&length, bytes - kLengthSize, kLengthSize);
    offset = static_cast<size_t>(bytes - buffer) + (length + 7) / 8 * 8;
  }
  if (offset + kLengthSize > valid_bytes) return 12;  // CUPTI_ERROR_MAX_LIMIT_REACHED
  *record = reinterpret_cast<Record*>(buffer + offset + kLengthSize);
  return 0;
}
int cuptiActivityFlushAll(uint32_t) {
  const std::lock_guard lock(mutex);
  if (complete == nullptr) return 1;
  HandOver();
  return 0;
}

// A kernel with the duration 0 still runs when its record is fetched.
void standin_launch(const char* name, uint64_t duration_ns, uint32_t stream) {
  const std::lock_guard lock(mutex);
  KernelRecord kernel{};
  kernel.kind = kConcurrentKernel;
  kernel.name = name;
  Time(kernel, duration_ns, stream);
  if (duration_ns == 0) kernel.end = 0;
  Launch(kernel);
}
// A graph of two kernels.
void standin_launch_graph(const char* first, const char* second, uint32_t graph_id) {
  const std::lock_guard lock(mutex);
  KernelRecord kernels[2] = {};
  for (uint64_t i = 0; i < 2; ++i) {
    kernels[i].kind = kConcurrentKernel;
    kernels[i].name = i == 0 ? first : second;
    kernels[i].graph_id = graph_id;
    kernels[i].graph_node_id = 100 + i;
    Time(kernels[i], 10, 7);
  }
  Launch(kernels[0], kernels[1]);
}
void standin_copy_kind(uint8_t kind, uint64_t size_bytes, uint64_t duration_ns, uint32_t stream) {
  const std::lock_guard lock(mutex);
  MemcpyRecord copy{};
  copy.kind = kMemcpy;
  copy.copy_kind = kind;
  copy.size_bytes = size_bytes;
  Time(copy, duration_ns, stream);
  Launch(copy);
}
void standin_copy(uint64_t size_bytes, uint64_t duration_ns, uint32_t stream) {
  standin_copy_kind(1, size_bytes, duration_ns, stream);  // host to device
}
void standin_copy_peer(uint64_t size_bytes, uint32_t source_device, uint32_t target_device) {
  const std::lock_guard lock(mutex);
  PeerMemcpyRecord copy{};
  copy.kind = kPeerMemcpy;
  copy.copy_kind = 10;
  copy.size_bytes = size_bytes;
  copy.source_device = source_device;
  copy.target_device = target_device;
  Time(copy, 20, 7);
  Launch(copy);
}
void standin_set(uint64_t size_bytes, uint32_t stream) {
  const std::lock_guard lock(mutex);
  MemsetRecord set{};
  set.kind = kMemset;
  set.size_bytes = size_bytes;
  Time(set, 20, stream);
  Launch(set);
}
// A call that starts nothing on the device.
void standin_call() {
  const std::lock_guard lock(mutex);
  Launch();
}
// The same, of a number in cupti_runtime_cbid.h or cupti_driver_cbid.h. Whether it left a record.
int standin_numbered_call(int32_t kind, uint32_t call) {
  const std::lock_guard lock(mutex);
  PutCall(kind, ++correlation_id, call);
  return is_enabled[kind] && left_out[kind].count(call) == 0 ? 1 : 0;
}
void standin_driver_call() {
  const std::lock_guard lock(mutex);
  PutCall(kDriver, ++correlation_id);
}
// From now on enabling this kind fails; 0: no more.
void standin_fail_enable(int32_t kind, int result) {
  const std::lock_guard lock(mutex);
  if (result == 0) {
    enable_errors.erase(kind);
  } else {
    enable_errors[kind] = result;
  }
}
int standin_is_enabled(int32_t kind) {
  const std::lock_guard lock(mutex);
  return is_enabled[kind] ? 1 : 0;
}
// Until the device is idle.
void standin_wait() {
  uint64_t until_ns = 0;
  {
    const std::lock_guard lock(mutex);
    until_ns = clock_ns;
  }
  while (NowNs() < until_ns) std::this_thread::yield();
}
void standin_launches_come_late(int is_late) {
  const std::lock_guard lock(mutex);
  is_launch_late = is_late != 0;
}
}
