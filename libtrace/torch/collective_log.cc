#include <ATen/core/ivalue_inl.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/errno_scope.h"
#include "libtrace/artifacts/collective_schedule.h"
#include "libtrace/scope.h"
#include "libtrace/trace.h"
#include "torch/collective_entries.h"
#include "torch/compat.h"
#include "torch/dtype_name.h"
#include "torch/model_parts.h"

namespace libtrace {
namespace {

std::vector<std::vector<int64_t>> Shapes(const TensorList& tensors) {
  std::vector<std::vector<int64_t>> shapes;
  for (const at::Tensor& tensor : tensors) shapes.push_back(tensor.sizes().vec());
  return shapes;
}

// c10d's name -> the schedule's.
std::string ScheduleName(const std::string& op) {
  constexpr std::pair<std::string_view, std::string_view> kFunctional[] = {
      {"all_reduce", "all_reduce_"},
      {"all_reduce_coalesced", "all_reduce_coalesced_"},
      {"broadcast", "broadcast_"},
      {"all_gather", "all_gather_into_tensor"},
      {"reduce_scatter", "reduce_scatter_tensor"},
      {"all_to_all", "all_to_all_single"},
  };
  const auto* const found = std::find_if(std::begin(kFunctional), std::end(kFunctional),
                                         [&](const auto& one) { return one.first == op; });
  if (found != std::end(kFunctional))
    return "torch.ops._c10d_functional." + std::string(found->second) + ".default";
  return "torch.ops.c10d." + op + ".default";
}

}  // namespace

std::string ReduceOpName(const c10d::ReduceOp& op) {
  static constexpr std::string_view kNames[] = {"sum", "avg",  "product", "min",
                                                "max", "band", "bor",     "bxor"};
#if LIBTRACE_C10D_BACKENDS
  const auto index = static_cast<size_t>(op.op_);
#else
  const auto index = static_cast<size_t>(static_cast<c10d::ReduceOp::RedOpType>(op));
#endif
  return std::string(index < std::size(kNames) ? kNames[index] : "other");
}

CollectiveLog::Impl::Entry CollectiveLog::Impl::Append(IssuedCollective collective,
                                                       const TensorList& inputs,
                                                       const TensorList& outputs,
                                                       bool shares_number) {
  if (IsInherited()) return nullptr;
  const detail::ErrnoScope keeps_errno;
  collective.input_shapes = Shapes(inputs);
  collective.output_shapes = Shapes(outputs);
  const TensorList& typed = inputs.empty() ? outputs : inputs;
  if (!typed.empty()) collective.dtype = DtypeName(typed[0].scalar_type());
  collective.start_us = std::chrono::duration_cast<std::chrono::microseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count();
  if (const CompileId& id = CurrentContext().compile_id; !id.empty())
    collective.compile_id = ToString(id);
  auto entry = std::make_shared<Issued>(Issued{std::move(collective)});
  bool is_first_unwritten = false;
  {
    const std::lock_guard lock(mutex);
    Numbers& numbers = numbers_[entry->process_group];
    entry->sequence_number = numbers.next++;
    if (IsPointToPoint(entry->op)) {
      entry->p2p_seq_id = ++numbers.p2p;
    } else {
      entry->takes_number = !shares_number || numbers.collective == 0;
      if (entry->takes_number) ++numbers.collective;
      entry->collective_seq_id = numbers.collective;
    }
    if (schedule.size() < options.max_collectives) schedule.emplace_back(ScheduleName(entry->op));
    if (count_++ >= options.max_collectives) {
      is_first_unwritten = unwritten_count++ == 0;
      entry->is_written = false;
    } else if (!options.writes_as_issued) {
      kept.push_back(entry);
    }
  }
  if (is_first_unwritten) EmitCollectiveState({.unwritten_count = 1}, location);
  if (entry->is_written && options.writes_as_issued)
    EmitCollectiveLog(ArrayView<IssuedCollective>(entry.get(), 1), location);
  return entry;
}

void CollectiveLog::Impl::Finish(Issued& entry, int64_t start_ns,
                                 std::optional<std::string> error) {
  if (IsInherited() || !entry.is_written) return;
  const auto duration_ns = static_cast<double>(NowNs() - start_ns);
  if (options.writes_as_issued) {
    EmitCollectiveState({.process_group = entry.process_group,
                         .sequence_number = entry.sequence_number,
                         .duration_ns = duration_ns,
                         .error = std::move(error)},
                        location);
    return;
  }
  const std::lock_guard lock(mutex);
  entry.duration_ns = duration_ns;
  entry.error = std::move(error);
}

void CollectiveLog::Impl::Refuse(Issued& entry, std::string error) {
  if (IsInherited()) return;
  {
    const std::lock_guard lock(mutex);
    Numbers& numbers = numbers_[entry.process_group];
    uint64_t& newest = entry.p2p_seq_id ? numbers.p2p : numbers.collective;
    const auto own = entry.p2p_seq_id ? entry.p2p_seq_id : entry.collective_seq_id;
    if (entry.takes_number && own == newest) --newest;
    if (!schedule.empty() && schedule.back() == ScheduleName(entry.op)) schedule.pop_back();
    entry.p2p_seq_id.reset();
    entry.collective_seq_id.reset();
    entry.error = error;
  }
  if (!entry.is_written || !options.writes_as_issued) return;
  EmitCollectiveState({.process_group = entry.process_group,
                       .sequence_number = entry.sequence_number,
                       .error = std::move(error)},
                      location);
}

void CollectiveLog::Impl::FinishWith(const std::shared_ptr<Impl>& log, const Entry& entry,
                                     int64_t start_ns, const Work& work) {
  const detail::ErrnoScope keeps_errno;
  if (!work.defined()) return log->Finish(*entry, start_ns);
  try {  // point-to-point works have no future: their completion cannot be seen from outside
    const auto future = work->getFuture();
    if (!future) return;
    future->addCallback([log, entry, start_ns](c10::ivalue::Future& done) {
      std::optional<std::string> error;
      if (done.hasError()) error = done.tryRetrieveErrorMessage();
      log->Finish(*entry, start_ns, std::move(error));
    });
  } catch (const std::exception&) {
  }
}

void CollectiveLog::Impl::EmitKept() {
  if (IsInherited() || !IsEnabled()) return;
  std::vector<IssuedCollective> collectives;
  uint64_t unwritten = 0;
  {
    const std::lock_guard lock(mutex);
    for (const Entry& one : kept) collectives.push_back(*one);
    kept.clear();
    unwritten = unwritten_count;
  }
  EmitCollectiveLog(collectives, location);
  if (unwritten != 0) EmitCollectiveState({.unwritten_count = unwritten}, location);
}

CollectiveLog::CollectiveLog(CollectiveLogOptions options) {
  const detail::ErrnoScope keeps_errno;
  impl_ = std::make_shared<Impl>(options);
}
CollectiveLog::~CollectiveLog() {
  const detail::ErrnoScope keeps_errno;
  Emit();
  impl_.reset();
}

size_t CollectiveLog::size() const {
  if (impl_->IsInherited()) return 0;
  const std::lock_guard lock(impl_->mutex);
  return impl_->kept.size();
}

uint64_t CollectiveLog::unwritten_count() const {
  if (impl_->IsInherited()) return 0;
  const std::lock_guard lock(impl_->mutex);
  return impl_->unwritten_count;
}

void CollectiveLog::Emit() noexcept {
  const detail::ErrnoScope keeps_errno;
  try {
    impl_->EmitKept();
  } catch (...) {  // no memory: they stay for the next time
  }
}

void CollectiveLog::EmitSchedule() noexcept {
  if (impl_->IsInherited()) return;
  const detail::ErrnoScope keeps_errno;
  try {
    std::vector<std::optional<std::string>> schedule;
    {
      const std::lock_guard lock(impl_->mutex);
      schedule.swap(impl_->schedule);
    }
    EmitCollectiveSchedule(schedule, impl_->location);
  } catch (...) {  // no memory
  }
}

}  // namespace libtrace
