// The part of CUPTI's activity interface that libtrace uses, opened at run time. Declared here from
// its documented binary interface (stable for these members from CUDA 11 on), so that no header of
// CUDA's is needed; cupti_layout.cc compares it with the real headers where they are installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "libtrace/status.h"

namespace libtrace::cupti {

enum Kind : int32_t {
  kMemcpy = 1,
  kMemset = 2,
  kDriver = 4,
  kRuntime = 5,
  kConcurrentKernel = 10,
  kPeerMemcpy = 22,  // CUPTI_ACTIVITY_KIND_MEMCPY2
  kExternalCorrelation = 39
};
// CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2: Kineto pushes its ids as CUSTOM0 and CUSTOM1
// (libkineto/src/CuptiActivityApi.cpp).
constexpr int kExternalKind = 5;
constexpr uint32_t kFlushForced = 1;      // also buffers with records that are not complete
constexpr uint64_t kUnknownTime = 0;      // CUPTI_TIMESTAMP_UNKNOWN
constexpr int kMaxLimitReached = 12;      // no further record in the buffer
constexpr int kMultipleSubscribers = 39;  // CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
// CUDA 11.6: the first version whose records all have the graph ids.
constexpr uint32_t kFirstVersionWithGraphIds = 17;
// CUDA 13.5: the newest version whose headers these declarations were compared with
// (tests/tools/cupti_versions.py). Records of a newer one are read by what all versions since
// kFirstVersionWithGraphIds have at the same place.
constexpr uint32_t kNewestComparedVersion = 130500;

struct Record {
  int32_t kind;
};
struct CallRecord {  // of the runtime or the driver
  int32_t kind;
  uint32_t call;
  uint64_t start, end;
  uint32_t process, thread, correlation_id, result;
};
struct KernelRecord {  // the members that Kernel5 … Kernel13 have at the same place
  int32_t kind;
  uint8_t unused[12];
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t shared_memory[2];
  uint32_t local_memory[2];
  uint32_t correlation_id;
  int64_t grid_id;
  const char* name;
  uint8_t unused_2[32];
  uint64_t graph_node_id;  // from kFirstVersionWithGraphIds on, as `graph_id`
  uint32_t unused_3;
  uint32_t graph_id;
};
struct MemcpyRecord {
  int32_t kind;
  uint8_t copy_kind, source_kind, target_kind, flags;
  uint64_t size_bytes, start, end;
  uint32_t device, context, stream, correlation_id;
  uint32_t unused[4];
  uint64_t graph_node_id;
  uint32_t graph_id;
};
struct PeerMemcpyRecord {
  int32_t kind;
  uint8_t copy_kind, source_kind, target_kind, flags;
  uint64_t size_bytes, start, end;
  uint32_t device, context, stream;
  uint32_t source_device, source_context, target_device, target_context;
  uint32_t correlation_id;
  void* unused;
  uint64_t graph_node_id;
  uint32_t graph_id;
};
struct MemsetRecord {
  int32_t kind;
  uint32_t value;
  uint64_t size_bytes, start, end;
  uint32_t device, context, stream, correlation_id;
  uint32_t unused[4];
  uint64_t graph_node_id;
  uint32_t graph_id;
};
struct ExternalCorrelationRecord {
  int32_t kind;
  int32_t external_kind;
  uint64_t external_id;
  uint32_t correlation_id;
  uint32_t unused;
};
static_assert(offsetof(CallRecord, end) == 16 && sizeof(CallRecord) == 40);
static_assert(offsetof(KernelRecord, start) == 16 && offsetof(KernelRecord, device) == 40);
static_assert(offsetof(KernelRecord, correlation_id) == 92 && offsetof(KernelRecord, name) == 104);
static_assert(offsetof(MemcpyRecord, start) == 16 && offsetof(MemcpyRecord, correlation_id) == 44);
static_assert(offsetof(KernelRecord, graph_node_id) == 144 &&
              offsetof(KernelRecord, graph_id) == 156);
static_assert(offsetof(MemcpyRecord, graph_node_id) == 64 &&
              offsetof(MemcpyRecord, graph_id) == 72);
static_assert(offsetof(MemsetRecord, start) == 16 && offsetof(MemsetRecord, correlation_id) == 44);
static_assert(offsetof(MemsetRecord, graph_node_id) == 64 &&
              offsetof(MemsetRecord, graph_id) == 72);
static_assert(offsetof(PeerMemcpyRecord, target_device) == 52 &&
              offsetof(PeerMemcpyRecord, correlation_id) == 60);
static_assert(offsetof(PeerMemcpyRecord, graph_node_id) == 72 &&
              offsetof(PeerMemcpyRecord, graph_id) == 80);
static_assert(sizeof(ExternalCorrelationRecord) == 24);

using BufferRequested = void (*)(uint8_t** buffer, size_t* size_bytes, size_t* max_records);
using BufferCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size_bytes,
                                 size_t valid_bytes);
using CallbackFunction = void (*)(void* user_data, int domain, uint32_t call, const void* data);

// Functions return 0 for success.
struct Library {
  std::string path{};
  uint32_t version = 0;
  int (*get_version)(uint32_t*) = nullptr;
  int (*register_callbacks)(BufferRequested, BufferCompleted) = nullptr;
  int (*enable)(int32_t kind) = nullptr;
  int (*disable)(int32_t kind) = nullptr;
  int (*flush_all)(uint32_t flags) = nullptr;
  int (*get_next_record)(uint8_t* buffer, size_t valid_bytes, Record** record) = nullptr;
  int (*get_dropped)(void* context, uint32_t stream, size_t* count) = nullptr;
  int (*push_id)(int kind, uint64_t id) = nullptr;
  int (*pop_id)(int kind, uint64_t* id) = nullptr;
  int (*get_result_string)(int result, const char** text) = nullptr;
  // Null in a library that does not have it:
  int (*get_timestamp)(uint64_t* timestamp_ns) = nullptr;  // the clock of the records' times
  int (*subscribe)(void** subscriber, CallbackFunction callback, void* user_data) = nullptr;
  int (*unsubscribe)(void* subscriber) = nullptr;
  // Whether calls of this number (cupti_runtime_cbid.h, cupti_driver_cbid.h) leave records; enabling
  // the kind resets it.
  int (*enable_runtime_call)(uint32_t call, uint8_t enable) = nullptr;
  int (*enable_driver_call)(uint32_t call, uint8_t enable) = nullptr;
  // From CUDA 13.5 on. With nulls but for the last: the number of kinds that anyone has enabled.
  int (*get_enabled_kinds)(void* subscriber, int32_t* kinds, uint32_t* size,
                           uint32_t* count) = nullptr;
  // A call of the driver that does nothing on a device: cuDriverGetVersion.
  int (*call_driver)(int* version) = nullptr;

  bool has_graph_ids() const { return version >= kFirstVersionWithGraphIds; }
  std::string Text(int result) const;
};

// Opened once per process and kept: the CUPTI that the process has loaded already, under whatever
// name and also as a part of another library or of the program, if its functions are exported there;
// if there is none, the file that LIBTRACE_CUPTI names, else one of the usual names. Not ok: there
// is none, the process has several and LIBTRACE_CUPTI names none of them, LIBTRACE_CUPTI names
// another than the loaded one, there is no driver, or it lacks a function.
Status Open(const Library*& library);

}  // namespace libtrace::cupti
