// What a rank's process groups really issue: a decorator around a c10d backend.
//
//   auto log = std::make_shared<libtrace::CollectiveLog>();
//   auto group = libtrace::TraceCollectives(gloo, "data_parallel", log);
//   group->allreduce(tensors)->wait();        // as before
//   log->Emit();                              // libtrace_collective_log
//
// libtorch 1.13: `gloo` and `group` are process groups, use `group` where `gloo` was used. From 2.0
// on they are backends: give `group` to ProcessGroup::setBackend. Arguments, results, order and
// errors are the backend's own; the log is written beside them.
#pragma once

#include <torch/version.h>

#include <memory>
#include <string>
#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

#include "libtrace/artifacts/collective_log.h"
#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

#if TORCH_VERSION_MAJOR >= 2
using CollectiveBackend = c10d::Backend;
#else
using CollectiveBackend = c10d::ProcessGroup;
#endif

// Collectives of any number of groups of this process, in the order in which they were issued.
// Thread-safe.
class CollectiveLog {
 public:
  CollectiveLog();
  ~CollectiveLog();  // Emit()
  CollectiveLog(const CollectiveLog&) = delete;
  CollectiveLog& operator=(const CollectiveLog&) = delete;

  // Emits what was issued since the last time, as `libtrace_collective_log`. A collective that has
  // not completed yet has no duration. Does nothing when tracing is off.
  void Emit() noexcept;
  // Emits the ops issued since the last EmitSchedule() as `inductor_collective_schedule`: call it
  // within the compile scope of the graph or step that issued them. Names are those of PyTorch's
  // functional collectives where there is one (`torch.ops._c10d_functional.all_reduce_.default`),
  // else of c10d's ops.
  void EmitSchedule() noexcept;
  // Issued and not emitted yet.
  size_t size() const;

  struct Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// `process_group` names the group in the log: ranks of one group must agree on it. `backend` is
// kept alive.
c10::intrusive_ptr<CollectiveBackend> TraceCollectives(
    c10::intrusive_ptr<CollectiveBackend> backend, std::string process_group,
    std::shared_ptr<CollectiveLog> log);

}  // namespace LIBTRACE_EXPORT
