// Parts that models of every kind share.
#pragma once

#include <ATen/core/Tensor.h>

#include "torch/compat.h"
#if LIBTRACE_DEVICE_ALLOCATORS
#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>
#endif

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libtrace/artifacts/cache_event.h"
#include "libtrace/artifacts/model_load.h"
#include "libtrace/cache/cache_key.h"
#include "libtrace/torch/cost_model.h"
#include "libtrace/trace.h"
#include "torch/dtype_name.h"

namespace libtrace {

inline int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Resident memory of this process; empty if unknown.
inline std::optional<int64_t> ResidentBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  }
  return {};
}

// What libtorch's allocator gave out on all GPUs at most. Empty: libtorch has no GPU, or is older than
// 2.9.
inline std::optional<int64_t> DevicePeakBytes() {
#if LIBTRACE_DEVICE_ALLOCATORS
  try {
    if (!at::hasCUDA()) return {};
    auto* const allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(at::kCUDA));
    if (allocator == nullptr) return {};
    if (!allocator->initialized()) return 0;
    constexpr auto kAll = static_cast<size_t>(c10::CachingDeviceAllocator::StatType::AGGREGATE);
    int64_t sum = 0;
    for (size_t device = 0; device < at::getNumGPUs(); ++device) {
      const auto index = static_cast<c10::DeviceIndex>(device);
      sum += allocator->getDeviceStats(index).allocated_bytes[kAll].peak;
    }
    return sum;
  } catch (const std::exception&) {  // an allocator that keeps no statistics
    return {};
  }
#else
  return {};
#endif
}

inline ModelWeight WeightOf(const std::string& name, const at::Tensor& tensor) {
  return {.name = name,
          .shape = tensor.sizes().vec(),
          .dtype = DtypeName(tensor.scalar_type()),
          .device = tensor.device().str(),
          .size_bytes = tensor.nbytes(),
          .storage_id = tensor.has_storage()
                            ? reinterpret_cast<uintptr_t>(tensor.storage().unsafeGetStorageImpl())
                            : 0,
          .storage_size_bytes = tensor.has_storage() ? tensor.storage().nbytes() : 0};
}

// Measures what estimates for these weights' devices need, so that no request has to wait for it.
inline void MeasureRooflines(const std::vector<ModelWeight>& weights) {
  MeasuredRoofline();
  for (const ModelWeight& weight : weights) MeasuredRoofline(weight.device);
}

// The event of a lookup that LoadedModels answered. `time_taken_ns` is what compiling took once.
inline void EmitMemoryHit(std::string_view layer, const CacheKey& key, int64_t time_taken_ns,
                          CallSite location) {
  if (!IsEnabled()) return;
  CacheInfo info;
  info.cache_status_detailed = "hit";
  info.key = key.text;
  info.components = key.components;
  info.time_saved_ns = time_taken_ns;
  info.answered_by = "memory";
  EmitCacheEvent(layer, CacheState::kHit, info, location);
}

}  // namespace libtrace
