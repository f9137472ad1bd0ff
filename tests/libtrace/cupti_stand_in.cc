// A stand-in for NVIDIA's libcupti, so that libtrace::cuda can be tried without a GPU: the activity
// functions that it uses, and "launches" that leave the records a GPU would. It proves the client's
// logic, not that real CUPTI behaves so.
#include <cstring>
#include <mutex>
#include <string>
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
uint64_t clock_ns = 1'000'000;

template <class T>
void Put(const T& record) {
  if (!is_enabled[record.kind]) return;
  pending.emplace_back(reinterpret_cast<const char*>(&record), sizeof(record));
}

uint32_t NextCorrelation() {
  ++correlation_id;
  if (!external_ids.empty()) {
    Put(ExternalCorrelationRecord{kExternalCorrelation, kExternalKind, external_ids.back(),
                                  correlation_id, 0});
  }
  return correlation_id;
}

template <class T>
void Time(T& record, uint64_t duration_ns, uint32_t stream) {
  record.start = clock_ns;
  clock_ns += duration_ns;
  record.end = clock_ns;
  record.stream = stream;
  record.correlation_id = NextCorrelation();
}

constexpr size_t kLengthSize = 8;  // each record lies behind its length, at a multiple of 8

}  // namespace

extern "C" {

int cuptiGetVersion(uint32_t* version) {
  *version = 999;
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
  *count = 0;
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
    const uint64_t length = record.size();
    std::memcpy(buffer + used, &length, kLengthSize);
    std::memcpy(buffer + used + kLengthSize, record.data(), record.size());
    used += needed;
  }
  hand_over();
  return 0;
}

void standin_launch(const char* name, uint64_t duration_ns, uint32_t stream) {
  const std::lock_guard lock(mutex);
  KernelRecord kernel{};
  kernel.kind = kConcurrentKernel;
  kernel.name = name;
  Time(kernel, duration_ns, stream);
  Put(kernel);
}
void standin_copy(uint64_t size_bytes, uint64_t duration_ns, uint32_t stream) {
  const std::lock_guard lock(mutex);
  MemcpyRecord copy{};
  copy.kind = kMemcpy;
  copy.copy_kind = 1;  // host to device
  copy.size_bytes = size_bytes;
  Time(copy, duration_ns, stream);
  Put(copy);
}
}
