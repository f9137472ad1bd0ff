// CudaActivity: the kernels and copies that a GPU really ran, and which op and graph node launched
// each.
//
//   libtrace::CudaActivity activity;      // watches from here on
//   if (!activity.status().ok()) puts(activity.status().message().c_str());  // no GPU, no CUPTI
//   {
//     libtrace::CudaLaunchScope op("aten::mm", &node);  // OpObserver does this for every op
//     Launch();
//   }
//   cudaDeviceSynchronize();              // what still runs at Emit has no times
//   activity.Emit();                      // libtrace_cuda_activity
//
// NVIDIA's CUPTI is opened with dlopen when the first object is made; neither building nor running
// needs it. It is the CUPTI that the process has loaded already, or if it has none, the file that
// LIBTRACE_CUPTI names, else one of the usual names. A process with two CUPTIs is refused, unless
// LIBTRACE_CUPTI names one of them.
//
// CUPTI's activities have one client per process at a time. Beside torch.profiler (Kineto), Nsight
// or another client:
//   * If the other one came first, as far as CUPTI tells (cuptiSubscribe), status() says so and
//     nothing of it is changed. Kineto counts as a client from its first profile of CUDA on, unless
//     TEARDOWN_CUPTI=1.
//   * If the other one comes later, it gets the records from then on. Emit notices by a call whose
//     record must arrive, says so in clients().end, and leaves enabled what is enabled.
//   * Ids are pushed as CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2 and have a tag; other ids, and
//     buffers of other clients, are counted and not touched.
// These rules were tried against a stand-in for CUPTI, not against two clients on a GPU.
//
// A kernel of a CUDA graph belongs to the op that launched the graph. While something is watched,
// CUPTI also makes a record of each call of CUDA's runtime and driver interfaces, because it ties
// kernels to ops only beside these. Frequent calls that start nothing on a device are left out, where
// CUPTI can leave out calls by number (cuptiActivityEnableRuntimeApi).
#pragma once

#include <atomic>
#include <chrono>
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
  // Of the kernel, mangled as CUDA gives it; of copies `HtoD`, `DtoH`, `DtoD`, `PtoP`, …
  std::string name{};
  std::optional<std::string> op{};    // that launched it
  std::optional<std::string> node{};  // graph node of the op
  uint32_t device = 0;
  uint32_t stream = 0;
  uint64_t start_ns = 0;     // CUPTI's clock, see CudaClock; 0 if it had not started
  uint64_t duration_ns = 0;  // 0 if has_ended is false
  uint64_t size_bytes = 0;   // of copies
  bool has_ended = true;     // false: it was still running when the records were fetched
  // Of a copy between two GPUs.
  std::optional<uint32_t> source_device{}, target_device{};
  // CUDA graph that it was part of, and its node there; 0 = launched by itself.
  uint32_t graph_id = 0;
  uint64_t graph_node_id = 0;
};

// The same moment in CUPTI's clock and since the epoch, read at the start and at the end.
struct CudaClock {
  uint64_t cupti_ns = 0;
  int64_t epoch_ns = 0;
  uint64_t error_ns = 0;  // the two differ by at most this
};

struct CudaActivityCounts {
  uint64_t lost_count = 0;  // records beyond max_records and those that CUPTI dropped
  // Activities and ops whose relation may have been lost: beyond max_pending_launches, or more
  // than 65,536 different ops and nodes.
  uint64_t unlabelled_count = 0;
  // External ids of libtrace's kind that were not pushed by this object.
  uint64_t foreign_id_count = 0;
  // Activities that `only_sampled_requests` leaves out.
  uint64_t unsampled_count = 0;
};

// No record came any more before Emit: a loss of what was launched after last_call_ns.
struct CudaActivityEnd {
  // buffers_taken: another client has registered its buffer callbacks, and got ours.
  // not_recorded: the kinds of activities were disabled, or the callbacks taken while CUPTI had no
  // buffer of ours.
  std::string reason{};
  uint64_t last_call_ns = 0;  // end of the last call of CUDA that was seen, CUPTI's clock; 0: none
  uint64_t noticed_ns = 0;    // CUPTI's clock; 0: not known
};

// What other clients of CUPTI did; known after Emit.
struct CudaActivityClients {
  std::optional<CudaActivityEnd> end{};
  uint32_t left_enabled_count =
      0;  // kinds that Emit did not disable, as another client may use them
  uint64_t foreign_buffer_count = 0;  // that CUPTI gave us; they were not read
};

struct CudaActivityOptions {
  uint32_t max_records = 1'000'000;         // more are only counted; up to 130 bytes each
  uint32_t max_pending_launches = 262'144;  // calls of CUDA remembered to find their kernels
  uint32_t max_buffers = 64;  // of 1 MiB, filled by CUPTI at the same time; it drops what is beyond
  // If not 0, a thread of the object writes at this interval what was seen since, and forgets it: a
  // server that is killed loses the last interval (of activities without an op the last two).
  // `max_records` then limits what waits to be written; the oldest are lost and counted. When calls
  // are missing, it is looked for whether another client ended the records.
  std::chrono::milliseconds write_interval{0};
  // If not 0: what the object may keep in memory, beside CUPTI's buffers: half of it activities with
  // the names of their kernels, a quarter remembered calls, a quarter names of ops and nodes. What is
  // beyond it is lost and counted as beyond `max_records` and `max_pending_launches`.
  uint64_t max_bytes = 0;
  // Keeps what ops launched in a request whose traceparent is sampled (libtrace/traceparent.h), on
  // the thread of its TraceparentScope; the rest is only counted.
  bool only_sampled_requests = false;
};

// One at a time per process; a second one says so in status(). Thread-safe.
class CudaActivity {
 public:
  // `location` becomes the prefix of what the destructor emits.
  explicit CudaActivity(CudaActivityOptions options = {}, CallSite location = CallSite::Current());
  ~CudaActivity();  // Emit()
  CudaActivity(const CudaActivity&) = delete;
  CudaActivity& operator=(const CudaActivity&) = delete;

  // Why nothing is watched, or ok. Tracing that is off is a reason.
  const Status& status() const { return status_; }
  // Stops watching, fetches what CUPTI has and emits `libtrace_cuda_activity`, one record for up to
  // 20,000 activities. Does not wait for the GPU: what still runs is listed without times. A second
  // call does nothing.
  void Emit(CallSite location = CallSite::Current()) noexcept;
  // What was seen until Emit, in the order in which CUPTI reported it; with a write_interval what is
  // not written yet.
  std::vector<CudaActivityRecord> Records() const;
  uint64_t lost_count() const { return counts().lost_count; }
  CudaActivityCounts counts() const;
  CudaActivityClients clients() const;
  // Of the start and, after Emit, the end; empty if CUPTI does not tell its time.
  std::vector<CudaClock> clocks() const;

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
