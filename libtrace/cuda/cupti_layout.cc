// Compiled where the real headers of CUPTI are installed (CMakeLists.txt looks for them): what
// cupti.h declares is what they declare. Holds no code.
#include <cupti.h>

#include "cuda/cupti.h"
#include "cuda/quiet_calls.h"

namespace libtrace::cupti {
namespace {

#define LIBTRACE_SAME(ours, member, theirs, their_member)                  \
  static_assert(offsetof(ours, member) == offsetof(theirs, their_member)); \
  static_assert(sizeof(ours::member) == sizeof(theirs::their_member))

template <class Kernel>
constexpr bool IsSameKernel() {
  LIBTRACE_SAME(KernelRecord, kind, Kernel, kind);
  LIBTRACE_SAME(KernelRecord, start, Kernel, start);
  LIBTRACE_SAME(KernelRecord, end, Kernel, end);
  LIBTRACE_SAME(KernelRecord, completed, Kernel, completed);
  LIBTRACE_SAME(KernelRecord, device, Kernel, deviceId);
  LIBTRACE_SAME(KernelRecord, context, Kernel, contextId);
  LIBTRACE_SAME(KernelRecord, stream, Kernel, streamId);
  LIBTRACE_SAME(KernelRecord, correlation_id, Kernel, correlationId);
  LIBTRACE_SAME(KernelRecord, grid_id, Kernel, gridId);
  LIBTRACE_SAME(KernelRecord, name, Kernel, name);
  return true;
}
template <class Activity, class Record>
constexpr bool HasSameGraphIds() {
  LIBTRACE_SAME(Record, graph_node_id, Activity, graphNodeId);
  LIBTRACE_SAME(Record, graph_id, Activity, graphId);
  return true;
}
template <class Copy, class Record>
constexpr bool IsSameCopy() {
  LIBTRACE_SAME(Record, size_bytes, Copy, bytes);
  LIBTRACE_SAME(Record, start, Copy, start);
  LIBTRACE_SAME(Record, end, Copy, end);
  LIBTRACE_SAME(Record, device, Copy, deviceId);
  LIBTRACE_SAME(Record, context, Copy, contextId);
  LIBTRACE_SAME(Record, stream, Copy, streamId);
  LIBTRACE_SAME(Record, correlation_id, Copy, correlationId);
  return true;
}

LIBTRACE_SAME(CallRecord, kind, CUpti_ActivityAPI, kind);
LIBTRACE_SAME(CallRecord, end, CUpti_ActivityAPI, end);
LIBTRACE_SAME(CallRecord, correlation_id, CUpti_ActivityAPI, correlationId);

// Headers keep the records of earlier versions; which one is current depends on the version.
static_assert(IsSameKernel<CUpti_ActivityKernel4>() && IsSameKernel<CUpti_ActivityKernel5>());
static_assert(IsSameCopy<CUpti_ActivityMemcpy, MemcpyRecord>());
static_assert(IsSameCopy<CUpti_ActivityMemset, MemsetRecord>());
LIBTRACE_SAME(MemcpyRecord, copy_kind, CUpti_ActivityMemcpy, copyKind);
#if CUPTI_API_VERSION >= 17
static_assert(IsSameKernel<CUpti_ActivityKernel6>() &&
              HasSameGraphIds<CUpti_ActivityKernel6, KernelRecord>());
static_assert(IsSameCopy<CUpti_ActivityMemcpy5, MemcpyRecord>() &&
              HasSameGraphIds<CUpti_ActivityMemcpy5, MemcpyRecord>());
static_assert(IsSameCopy<CUpti_ActivityMemset4, MemsetRecord>() &&
              HasSameGraphIds<CUpti_ActivityMemset4, MemsetRecord>());
static_assert(IsSameCopy<CUpti_ActivityMemcpyPtoP4, PeerMemcpyRecord>() &&
              HasSameGraphIds<CUpti_ActivityMemcpyPtoP4, PeerMemcpyRecord>());
#endif
#if CUPTI_API_VERSION >= 18
static_assert(IsSameKernel<CUpti_ActivityKernel8>() &&
              HasSameGraphIds<CUpti_ActivityKernel8, KernelRecord>());
#endif
#if CUPTI_API_VERSION >= 20
static_assert(IsSameKernel<CUpti_ActivityKernel9>() &&
              HasSameGraphIds<CUpti_ActivityKernel9, KernelRecord>());
#endif
#if CUPTI_API_VERSION >= 26
static_assert(IsSameCopy<CUpti_ActivityMemcpy6, MemcpyRecord>() &&
              HasSameGraphIds<CUpti_ActivityMemcpy6, MemcpyRecord>());
#endif
#if CUPTI_API_VERSION >= 130000
static_assert(IsSameKernel<CUpti_ActivityKernel10>() &&
              HasSameGraphIds<CUpti_ActivityKernel10, KernelRecord>());
#endif
#if CUPTI_API_VERSION >= 130100
static_assert(IsSameKernel<CUpti_ActivityKernel11>() &&
              HasSameGraphIds<CUpti_ActivityKernel11, KernelRecord>());
#endif
#if CUPTI_API_VERSION >= 130300
static_assert(IsSameKernel<CUpti_ActivityKernel12>() &&
              HasSameGraphIds<CUpti_ActivityKernel12, KernelRecord>());
#endif
#if CUPTI_API_VERSION >= 130400
static_assert(IsSameKernel<CUpti_ActivityKernel13>() &&
              HasSameGraphIds<CUpti_ActivityKernel13, KernelRecord>());
static_assert(IsSameCopy<CUpti_ActivityMemcpy7, MemcpyRecord>() &&
              HasSameGraphIds<CUpti_ActivityMemcpy7, MemcpyRecord>());
static_assert(IsSameCopy<CUpti_ActivityMemset5, MemsetRecord>() &&
              HasSameGraphIds<CUpti_ActivityMemset5, MemsetRecord>());
#endif
LIBTRACE_SAME(PeerMemcpyRecord, source_device, CUpti_ActivityMemcpyPtoP, srcDeviceId);
LIBTRACE_SAME(PeerMemcpyRecord, target_device, CUpti_ActivityMemcpyPtoP, dstDeviceId);
LIBTRACE_SAME(ExternalCorrelationRecord, external_kind, CUpti_ActivityExternalCorrelation,
              externalKind);
LIBTRACE_SAME(ExternalCorrelationRecord, external_id, CUpti_ActivityExternalCorrelation,
              externalId);
LIBTRACE_SAME(ExternalCorrelationRecord, correlation_id, CUpti_ActivityExternalCorrelation,
              correlationId);
#undef LIBTRACE_SAME

constexpr bool IsSameKind(Kind ours, CUpti_ActivityKind theirs) {
  return static_cast<int>(ours) == static_cast<int>(theirs);
}
static_assert(IsSameKind(kMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY));
static_assert(IsSameKind(kMemset, CUPTI_ACTIVITY_KIND_MEMSET));
static_assert(IsSameKind(kDriver, CUPTI_ACTIVITY_KIND_DRIVER));
static_assert(IsSameKind(kRuntime, CUPTI_ACTIVITY_KIND_RUNTIME));
static_assert(IsSameKind(kConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
static_assert(IsSameKind(kPeerMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY2));
static_assert(IsSameKind(kExternalCorrelation, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION));
static_assert(kExternalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2 &&
              kFlushForced == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED &&
              kUnknownTime == CUPTI_TIMESTAMP_UNKNOWN &&
              kMaxLimitReached == CUPTI_ERROR_MAX_LIMIT_REACHED &&
              kMultipleSubscribers == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
static_assert(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD == 1 && CUPTI_ACTIVITY_MEMCPY_KIND_DTOD == 8 &&
              CUPTI_ACTIVITY_MEMCPY_KIND_PTOP == 10);
static_assert(sizeof(CUptiResult) == sizeof(int) && sizeof(CUpti_ActivityKind) == sizeof(int32_t) &&
              sizeof(CUpti_ExternalCorrelationKind) == sizeof(int));

#define LIBTRACE_SAME_NUMBER(number, name) static_assert(CUPTI_RUNTIME_TRACE_CBID_##name == number);
LIBTRACE_QUIET_RUNTIME_CALLS(LIBTRACE_SAME_NUMBER)
#undef LIBTRACE_SAME_NUMBER
#define LIBTRACE_SAME_NUMBER(number, name) static_assert(CUPTI_DRIVER_TRACE_CBID_##name == number);
LIBTRACE_QUIET_DRIVER_CALLS(LIBTRACE_SAME_NUMBER)
#undef LIBTRACE_SAME_NUMBER

}  // namespace
}  // namespace libtrace::cupti
