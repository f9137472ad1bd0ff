// Calls of CUDA's interfaces that start nothing on a device and are made often: with them left out,
// CUPTI's buffers hold launches. What is not in these lists leaves a record, a call of a later CUDA
// too. Numbers and names are those of cupti_runtime_cbid.h and cupti_driver_cbid.h; cupti_layout.cc
// compares them.
#pragma once

#include <cstdint>

// clang-format off
#define LIBTRACE_QUIET_RUNTIME_CALLS(X)                                     \
  X(3, cudaGetDeviceCount_v3020)                                            \
  X(10, cudaGetLastError_v3020)                                             \
  X(11, cudaPeekAtLastError_v3020)                                          \
  X(15, cudaFuncGetAttributes_v3020)                                        \
  X(16, cudaSetDevice_v3020)                                                \
  X(17, cudaGetDevice_v3020)                                                \
  X(132, cudaStreamQuery_v3020)                                             \
  X(133, cudaEventCreate_v3020)                                             \
  X(134, cudaEventCreateWithFlags_v3020)                                    \
  X(135, cudaEventRecord_v3020)                                             \
  X(136, cudaEventDestroy_v3020)                                            \
  X(138, cudaEventQuery_v3020)                                              \
  X(139, cudaEventElapsedTime_v3020)                                        \
  X(147, cudaStreamWaitEvent_v3020)                                         \
  X(151, cudaPointerGetAttributes_v4000)                                    \
  X(200, cudaDeviceGetAttribute_v5000)                                      \
  X(203, cudaStreamGetPriority_v5050)                                       \
  X(210, cudaOccupancyMaxActiveBlocksPerMultiprocessor_v6050)               \
  X(240, cudaStreamQuery_ptsz_v7000)                                        \
  X(242, cudaEventRecord_ptsz_v7000)                                        \
  X(247, cudaStreamWaitEvent_ptsz_v7000)                                    \
  X(317, cudaStreamIsCapturing_v10000)                                      \
  X(318, cudaStreamIsCapturing_ptsz_v10000)                                 \
  X(324, cudaStreamGetCaptureInfo_v10010)                                   \
  X(327, cudaThreadExchangeStreamCaptureMode_v10010)                        \
  X(370, cudaEventRecordWithFlags_v11010)                                   \
  X(371, cudaEventRecordWithFlags_ptsz_v11010)

// Not cuDriverGetVersion: a session makes that call to see whether records come.
#define LIBTRACE_QUIET_DRIVER_CALLS(X)                                      \
  X(9, cuDeviceGetAttribute)                                                \
  X(85, cuFuncGetAttribute)                                                 \
  X(119, cuEventRecord)                                                     \
  X(120, cuEventQuery)                                                      \
  X(125, cuStreamQuery)                                                     \
  X(295, cuStreamWaitEvent)                                                 \
  X(303, cuCtxSetCurrent)                                                   \
  X(304, cuCtxGetCurrent)                                                   \
  X(310, cuPointerGetAttribute)                                             \
  X(323, cuCtxPushCurrent_v2)                                               \
  X(324, cuCtxPopCurrent_v2)                                                \
  X(374, cuOccupancyMaxActiveBlocksPerMultiprocessor)                       \
  X(436, cuStreamWaitEvent_ptsz)                                            \
  X(439, cuStreamQuery_ptsz)                                                \
  X(441, cuEventRecord_ptsz)                                                \
  X(450, cuPointerGetAttributes)                                            \
  X(499, cuStreamIsCapturing)                                               \
  X(500, cuStreamIsCapturing_ptsz)
// clang-format on

namespace libtrace::cupti {

#define LIBTRACE_NUMBER(number, name) number,
constexpr uint32_t kQuietRuntimeCalls[] = {LIBTRACE_QUIET_RUNTIME_CALLS(LIBTRACE_NUMBER)};
constexpr uint32_t kQuietDriverCalls[] = {LIBTRACE_QUIET_DRIVER_CALLS(LIBTRACE_NUMBER)};
#undef LIBTRACE_NUMBER

}  // namespace libtrace::cupti
