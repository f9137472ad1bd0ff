// Logs the collectives that a rank's process groups issue: an observer of a process group, and a
// decorator around a c10d backend.
//
//   auto log = std::make_shared<libtrace::CollectiveLog>();
//   libtrace::CollectiveObserver observer(group, "data_parallel", log);  // the group is unchanged
//   group->allreduce(tensors)->wait();        // as before
//
//   auto traced = libtrace::TraceCollectives(gloo, "data_parallel", log);
//
// The decorator sees everything that is issued through it. libtorch 1.13: `gloo` and `traced` are
// process groups, use `traced` where `gloo` was used. From 2.0 on they are backends: give `traced`
// to ProcessGroup::setBackend. Arguments, results, order and errors are the backend's own; the log
// is written beside them. What else a backend can do is passed on to it; the groups and windows
// that it makes of itself (split, merge, shrink, new_window) are not traced.
#pragma once

#include <torch/version.h>

#include <memory>
#include <string>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#endif

#include "libtrace/artifacts/collective_log.h"
#include "libtrace/call_site.h"
#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

#if TORCH_VERSION_MAJOR >= 2
using CollectiveBackend = c10d::Backend;
#else
using CollectiveBackend = c10d::ProcessGroup;
#endif

struct CollectiveLogOptions {
  // Each collective is written when it is issued (`libtrace_collective_log`), and its end when it
  // is seen (`libtrace_collective_state`): the log shows what a rank that hangs or was killed waits
  // for. Otherwise all are written by Emit().
  bool writes_as_issued = true;
  // Written, or kept for Emit(), by this object; later ones are numbered and counted only.
  uint64_t max_collectives = 200'000;
};

// Collectives of any number of groups of this process, in the order in which they were issued.
// Numbered within each group: `sequence_number` counts everything from 0; `collective_seq_id` and
// `p2p_seq_id` count collectives and sends and receives from 1, as c10d's flight recorder does.
// Thread-safe.
class CollectiveLog {
 public:
  explicit CollectiveLog(CollectiveLogOptions options = {});
  ~CollectiveLog();  // Emit()
  CollectiveLog(const CollectiveLog&) = delete;
  CollectiveLog& operator=(const CollectiveLog&) = delete;

  // Emits what is kept, and how many were not written. A collective that has not completed yet has
  // no duration. Does nothing when tracing is off.
  void Emit() noexcept;
  // Emits the ops issued since the last EmitSchedule() as `inductor_collective_schedule`: call it
  // within the compile scope of the graph or step that issued them. Names are those of PyTorch's
  // functional collectives where there is one (`torch.ops._c10d_functional.all_reduce_.default`),
  // else of c10d's ops.
  void EmitSchedule() noexcept;
  // Kept for Emit().
  size_t size() const;
  uint64_t unwritten_count() const;  // beyond max_collectives

  struct Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// `process_group` names the group in the log: ranks of one group must agree on it. `backend` is
// kept alive. The first place that gives a log a group becomes the prefix of its records.
c10::intrusive_ptr<CollectiveBackend> TraceCollectives(
    c10::intrusive_ptr<CollectiveBackend> backend, std::string process_group,
    std::shared_ptr<CollectiveLog> log, CallSite location = CallSite::Current());

// Watches what is issued through `group` as long as it lives; one group may have several. Where
// libtorch has hooks (2.14) they are used: register and remove observers while no collective is
// being issued. Elsewhere the dispatcher's ops (`c10d::…`) are observed, which costs every op of the
// process about 0.2 µs; of libtorch 1.13 this shows what is issued through c10d::ops, as DDP does,
// and not what is called on the group itself. Hooks do not tell the reduce op.
class CollectiveObserver {
 public:
  CollectiveObserver(c10::intrusive_ptr<c10d::ProcessGroup> group, std::string process_group,
                     std::shared_ptr<CollectiveLog> log, CallSite location = CallSite::Current());
  ~CollectiveObserver();
  CollectiveObserver(const CollectiveObserver&) = delete;
  CollectiveObserver& operator=(const CollectiveObserver&) = delete;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace LIBTRACE_EXPORT
