#include "libtrace/torch/collectives.h"

#include <ATen/core/ivalue_inl.h>

#include <chrono>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "libtrace/artifacts/collective_schedule.h"
#include "libtrace/scope.h"
#include "libtrace/trace.h"
#include "torch/compat.h"
#include "torch/dtype_name.h"

namespace libtrace {
namespace {

using Work = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;

template <class Clock>
int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

std::vector<std::vector<int64_t>> Shapes(const Tensors& tensors) {
  std::vector<std::vector<int64_t>> shapes;
  for (const at::Tensor& tensor : tensors) shapes.push_back(tensor.sizes().vec());
  return shapes;
}

Tensors Flat(const std::vector<Tensors>& lists) {
  Tensors all;
  for (const Tensors& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

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

// c10d's name -> the schedule's.
std::string ScheduleName(const std::string& op) {
  static const std::map<std::string_view, std::string_view> kFunctional = {
      {"all_reduce", "all_reduce_"},
      {"all_reduce_coalesced", "all_reduce_coalesced_"},
      {"broadcast", "broadcast_"},
      {"all_gather", "all_gather_into_tensor"},
      {"reduce_scatter", "reduce_scatter_tensor"},
      {"all_to_all", "all_to_all_single"},
  };
  const auto found = kFunctional.find(op);
  if (found != kFunctional.end())
    return "torch.ops._c10d_functional." + std::string(found->second) + ".default";
  return "torch.ops.c10d." + op + ".default";
}

}  // namespace

struct CollectiveLog::Impl {
  mutable std::mutex mutex;
  std::vector<std::shared_ptr<IssuedCollective>> issued;
  std::vector<std::optional<std::string>> schedule;
  std::map<std::string, uint64_t> next_sequence_number;  // by process group
};

CollectiveLog::CollectiveLog() : impl_(std::make_shared<Impl>()) {}
CollectiveLog::~CollectiveLog() { Emit(); }

size_t CollectiveLog::size() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->issued.size();
}

void CollectiveLog::Emit() noexcept {
  try {
    std::vector<IssuedCollective> collectives;
    {
      const std::lock_guard lock(impl_->mutex);
      for (const auto& one : impl_->issued) collectives.push_back(*one);
      impl_->issued.clear();
    }
    EmitCollectiveLog(collectives);
  } catch (...) {  // no memory: they stay for the next time
  }
}

void CollectiveLog::EmitSchedule() noexcept {
  try {
    std::vector<std::optional<std::string>> schedule;
    {
      const std::lock_guard lock(impl_->mutex);
      schedule.swap(impl_->schedule);
    }
    EmitCollectiveSchedule(schedule);
  } catch (...) {  // no memory
  }
}

namespace {

class TracedBackend final : public CollectiveBackend {
 public:
  TracedBackend(c10::intrusive_ptr<CollectiveBackend> inner, std::string name,
                std::shared_ptr<CollectiveLog> log)
      : CollectiveBackend(inner->getRank(), inner->getSize()),
        inner_(std::move(inner)),
        name_(std::move(name)),
        log_(std::move(log)) {}

  const std::string getBackendName() const override { return inner_->getBackendName(); }
  void startCoalescing() override { inner_->startCoalescing(); }
#if LIBTRACE_C10D_BACKENDS
  Work endCoalescing() override { return inner_->endCoalescing(); }
#else
  void endCoalescing(std::vector<Work>& requests) override { inner_->endCoalescing(requests); }
#endif
  void setSequenceNumberForGroup() override { inner_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override { return inner_->getSequenceNumberForGroup(); }
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all) override {
    Issue({.op = "monitored_barrier"}, {}, {}, [&] {
      inner_->monitoredBarrier(options, wait_all);
      return Work();
    });
  }

  Work broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return Issue({.op = "broadcast", .root_rank = options.rootRank}, tensors, tensors,
                 [&] { return inner_->broadcast(tensors, options); });
  }
  Work allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return Issue({.op = "all_reduce", .reduce_op = ReduceOpName(options.reduceOp)}, tensors,
                 tensors, [&] { return inner_->allreduce(tensors, options); });
  }
  Work allreduce_coalesced(Tensors& tensors,
                           const c10d::AllreduceCoalescedOptions& options) override {
    return Issue({.op = "all_reduce_coalesced", .reduce_op = ReduceOpName(options.reduceOp)},
                 tensors, tensors, [&] { return inner_->allreduce_coalesced(tensors, options); });
  }
  Work reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return Issue({.op = "reduce",
                  .reduce_op = ReduceOpName(options.reduceOp),
                  .root_rank = options.rootRank},
                 tensors, tensors, [&] { return inner_->reduce(tensors, options); });
  }
  Work allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::AllgatherOptions& options) override {
    return Issue({.op = "all_gather"}, inputs, Flat(outputs),
                 [&] { return inner_->allgather(outputs, inputs, options); });
  }
  Work _allgather_base(at::Tensor& output, at::Tensor& input,
                       const c10d::AllgatherOptions& options) override {
    return Issue({.op = "all_gather"}, {input}, {output},
                 [&] { return inner_->_allgather_base(output, input, options); });
  }
  Work allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                           const c10d::AllgatherOptions& options) override {
    return Issue({.op = "all_gather_coalesced"}, inputs, Flat(outputs),
                 [&] { return inner_->allgather_coalesced(outputs, inputs, options); });
  }
  Work gather(std::vector<Tensors>& outputs, Tensors& inputs,
              const c10d::GatherOptions& options) override {
    return Issue({.op = "gather", .root_rank = options.rootRank}, inputs, Flat(outputs),
                 [&] { return inner_->gather(outputs, inputs, options); });
  }
  Work scatter(Tensors& outputs, std::vector<Tensors>& inputs,
               const c10d::ScatterOptions& options) override {
    return Issue({.op = "scatter", .root_rank = options.rootRank}, Flat(inputs), outputs,
                 [&] { return inner_->scatter(outputs, inputs, options); });
  }
  Work reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                      const c10d::ReduceScatterOptions& options) override {
    return Issue({.op = "reduce_scatter", .reduce_op = ReduceOpName(options.reduceOp)},
                 Flat(inputs), outputs,
                 [&] { return inner_->reduce_scatter(outputs, inputs, options); });
  }
  Work _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                            const c10d::ReduceScatterOptions& options) override {
    return Issue({.op = "reduce_scatter", .reduce_op = ReduceOpName(options.reduceOp)}, {input},
                 {output}, [&] { return inner_->_reduce_scatter_base(output, input, options); });
  }
  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                     std::vector<int64_t>& input_sizes,
                     const c10d::AllToAllOptions& options) override {
    return Issue({.op = "all_to_all"}, {input}, {output}, [&] {
      return inner_->alltoall_base(output, input, output_sizes, input_sizes, options);
    });
  }
  Work alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override {
    return Issue({.op = "all_to_all"}, inputs, outputs,
                 [&] { return inner_->alltoall(outputs, inputs, options); });
  }
  Work send(Tensors& tensors, int destination, int tag) override {
    return Issue({.op = "send", .root_rank = destination}, tensors, {},
                 [&] { return inner_->send(tensors, destination, tag); });
  }
  Work recv(Tensors& tensors, int source, int tag) override {
    return Issue({.op = "recv", .root_rank = source}, {}, tensors,
                 [&] { return inner_->recv(tensors, source, tag); });
  }
  Work recvAnysource(Tensors& tensors, int tag) override {
    return Issue({.op = "recv"}, {}, tensors, [&] { return inner_->recvAnysource(tensors, tag); });
  }
  Work barrier(const c10d::BarrierOptions& options) override {
    return Issue({.op = "barrier"}, {}, {}, [&] { return inner_->barrier(options); });
  }

 private:
  // Logs, then issues. What goes wrong with the log must not touch the collective.
  template <class F>
  Work Issue(IssuedCollective collective, const Tensors& inputs, const Tensors& outputs,
             F&& issue) {
    if (!IsEnabled()) return issue();
    std::shared_ptr<IssuedCollective> entry;
    try {
      entry = Append(std::move(collective), inputs, outputs);
    } catch (...) {  // no memory
    }
    const int64_t start_ns = Now<std::chrono::steady_clock>();
    Work work = issue();
    if (!entry) return work;
    const auto finish = [entry, start_ns, log = log_->impl()] {
      const std::lock_guard lock(log->mutex);
      entry->duration_ns = static_cast<double>(Now<std::chrono::steady_clock>() - start_ns);
    };
    if (!work.defined()) {
      finish();
      return work;
    }
    try {  // point-to-point works have no future: their completion cannot be seen from outside
      const auto future = work->getFuture();
      if (future) future->addCallback([finish](c10::ivalue::Future&) { finish(); });
    } catch (const std::exception&) {
    }
    return work;
  }

  std::shared_ptr<IssuedCollective> Append(IssuedCollective collective, const Tensors& inputs,
                                           const Tensors& outputs) {
    collective.process_group = name_;
    collective.group_size = static_cast<uint32_t>(getSize());
    collective.backend = inner_->getBackendName();
    collective.input_shapes = Shapes(inputs);
    collective.output_shapes = Shapes(outputs);
    const Tensors& typed = inputs.empty() ? outputs : inputs;
    if (!typed.empty()) collective.dtype = DtypeName(typed[0].scalar_type());
    collective.start_us = Now<std::chrono::system_clock>() / 1000;
    if (const CompileId& id = CurrentContext().compile_id; !id.empty())
      collective.compile_id = ToString(id);
    auto entry = std::make_shared<IssuedCollective>(std::move(collective));
    CollectiveLog::Impl& log = *log_->impl();
    const std::lock_guard lock(log.mutex);
    entry->sequence_number = log.next_sequence_number[name_]++;
    log.schedule.emplace_back(ScheduleName(entry->op));
    log.issued.push_back(entry);
    return entry;
  }

  c10::intrusive_ptr<CollectiveBackend> inner_;
  std::string name_;
  std::shared_ptr<CollectiveLog> log_;
};

}  // namespace

c10::intrusive_ptr<CollectiveBackend> TraceCollectives(
    c10::intrusive_ptr<CollectiveBackend> backend, std::string process_group,
    std::shared_ptr<CollectiveLog> log) {
  return c10::make_intrusive<TracedBackend>(std::move(backend), std::move(process_group),
                                            std::move(log));
}

}  // namespace libtrace
