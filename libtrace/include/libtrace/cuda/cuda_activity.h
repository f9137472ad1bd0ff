// CudaActivity: the kernels and copies that a GPU really ran, and which op and graph node launched
// each.
//
//   libtrace::CudaActivity activity;                 // from here on
//   if (!activity.status().ok()) puts(activity.status().message().c_str());  // no GPU, no CUPTI:
//   nothing is watched { libtrace::CudaLaunchScope op("aten::mm", &node); Launch(); }          //
//   OpObserver does this for every op activity.Emit();                                 //
//   libtrace_cuda_activity
//
// NVIDIA's CUPTI is opened with dlopen when the object is made (LIBTRACE_CUPTI=<file>, else the
// usual names); neither building nor running needs it. CUPTI serves one client per process: a
// profiler that uses it at the same time (Kineto with CUDA) gets nothing, or this object says so in
// status().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libtrace/call_site.h"
#include "libtrace/export.h"
#include "libtrace/status.h"

namespace libtrace LIBTRACE_EXPORT {

struct CudaActivityRecord {
  std::string kind{};  // kernel, memcpy, memset
  std::string
      name{};  // of the kernel, mangled as CUDA gives it; of copies `HtoD`, `DtoH`, `DtoD`, …
  std::optional<std::string> op{};    // that launched it
  std::optional<std::string> node{};  // graph node of the op
  uint32_t device = 0;
  uint32_t stream = 0;
  uint64_t start_ns = 0;  // CUPTI's clock
  uint64_t duration_ns = 0;
  uint64_t size_bytes = 0;  // of copies
};

struct CudaActivityOptions {
  uint32_t max_records = 1'000'000;  // more are only counted
};

// One at a time per process; a second one says so in status(). Thread-safe.
class CudaActivity {
 public:
  explicit CudaActivity(CudaActivityOptions options = {});
  ~CudaActivity();  // Emit()
  CudaActivity(const CudaActivity&) = delete;
  CudaActivity& operator=(const CudaActivity&) = delete;

  // Why nothing is watched, or ok. Tracing that is off is a reason.
  const Status& status() const { return status_; }
  // Waits for what the GPU has finished, stops watching, emits `libtrace_cuda_activity`. A second
  // call does nothing.
  void Emit(CallSite location = CallSite::Current()) noexcept;
  // What was seen until Emit, in the order in which CUPTI reported it.
  std::vector<CudaActivityRecord> Records() const;
  uint64_t lost_count() const;  // records beyond max_records and those that CUPTI dropped

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
  Status status_;
};

namespace detail {
extern std::atomic<bool> is_watching_cuda;
bool PushCudaLaunch(std::string_view op, const std::string* node) noexcept;
void PopCudaLaunch() noexcept;
}  // namespace detail

// What this thread launches meanwhile belongs to this op; nested scopes take over. A load and a
// branch when nothing is watched.
class CudaLaunchScope {
 public:
  CudaLaunchScope(std::string_view op, const std::string* node) noexcept
      : is_pushed_(detail::is_watching_cuda.load(std::memory_order_relaxed) &&
                   detail::PushCudaLaunch(op, node)) {}
  ~CudaLaunchScope() {
    if (is_pushed_) detail::PopCudaLaunch();
  }
  CudaLaunchScope(const CudaLaunchScope&) = delete;
  CudaLaunchScope& operator=(const CudaLaunchScope&) = delete;

 private:
  bool is_pushed_;
};

}  // namespace LIBTRACE_EXPORT
