// A stand-in for NVIDIA's libcupti, so that libtrace::cuda can be tried without a GPU: the activity
// functions that it uses, and "launches" that leave the records a GPU would. As CUPTI's header says,
// external-correlation records are made only beside the record of an API call. It proves the
// client's logic, not that real CUPTI behaves so. cuda_driver_stand_in.cc adds a driver.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
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
std::vector<std::string> pending;  // bytes of records
thread_local std::vector<uint64_t> external_ids;
uint32_t correlation_id = 0;
uint64_t clock_ns = 0;        // the device is busy until then
bool is_launch_late = false;  // the launch's record comes after the activity's
size_t no_buffer_count = 0;   // records dropped because there was no buffer

uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

template <class T>
void Put(const T& record) {
  if (!is_enabled[record.kind]) return;
  pending.emplace_back(reinterpret_cast<const char*>(&record), sizeof(record));
}

struct ApiRecord {
  int32_t kind;
  uint32_t call;
  uint64_t start, end;
  uint32_t process, thread, correlation_id, result;
};

void PutLaunch(uint32_t correlation) {
  if (!is_enabled[kRuntime] && !is_enabled[kDriver]) return;
  const uint64_t now_ns = NowNs();
  Put(ApiRecord{is_enabled[kRuntime] ? kRuntime : kDriver, 1, now_ns, now_ns, 1, 1, correlation,
                0});
  if (external_ids.empty()) return;
  Put(ExternalCorrelationRecord{kExternalCorrelation, kExternalKind, external_ids.back(),
                                correlation, 0});
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

constexpr size_t kLengthSize = 8;  // each record lies behind its length, at a multiple of 8

}  // namespace

extern "C" {

// As if the driver were there; cuda_driver_stand_in.cc has one of its own.
[[gnu::weak]] int cuInit(unsigned) { return 0; }

int cuptiGetVersion(uint32_t* version) {
  const char* const chosen = std::getenv("CUPTI_STAND_IN_VERSION");
  *version = chosen == nullptr ? 999 : static_cast<uint32_t>(std::atoi(chosen));
  return 0;
}
int cuptiActivityRegisterCallbacks(BufferRequested requested, BufferCompleted completed) {
  request = requested;
  complete = completed;
  return 0;
}
int cuptiActivityEnable(int32_t kind) {
  const std::lock_guard lock(mutex);
  is_enabled[kind] = true;
  return 0;
}
int cuptiActivityDisable(int32_t kind) {
  const std::lock_guard lock(mutex);
  is_enabled[kind] = false;
  return 0;
}
int cuptiGetResultString(int, const char** text) {
  *text = "STAND_IN";
  return 0;
}
int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* count) {
  *count = std::exchange(no_buffer_count, 0);
  return 0;
}
int cuptiGetTimestamp(uint64_t* timestamp_ns) {
  *timestamp_ns = NowNs();
  return 0;
}
int cuptiActivityPushExternalCorrelationId(int, uint64_t id) {
  external_ids.push_back(id);
  return 0;
}
int cuptiActivityPopExternalCorrelationId(int, uint64_t* id) {
  if (external_ids.empty()) return 1;
  *id = external_ids.back();
  external_ids.pop_back();
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
  std::vector<std::string> records;
  {
    const std::lock_guard lock(mutex);
    records.swap(pending);
  }
  uint8_t* buffer = nullptr;
  size_t size_bytes = 0, max_records = 0, used = 0;
  const auto hand_over = [&] {
    if (buffer != nullptr) complete(nullptr, 0, buffer, size_bytes, used);
    buffer = nullptr;
  };
  for (const std::string& record : records) {
    const size_t needed = kLengthSize + (record.size() + 7) / 8 * 8;
    if (buffer != nullptr && used + needed > size_bytes) hand_over();
    if (buffer == nullptr) {
      request(&buffer, &size_bytes, &max_records);
      used = 0;
    }
    if (buffer == nullptr) {
      ++no_buffer_count;
      continue;
    }
    const uint64_t length = record.size();
    std::memcpy(buffer + used, &length, kLengthSize);
    std::memcpy(buffer + used + kLengthSize, record.data(), record.size());
    used += needed;
  }
  hand_over();
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
