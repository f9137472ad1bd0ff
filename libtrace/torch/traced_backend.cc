// The decorator around a c10d backend. Every virtual function of the installed c10d is passed on
// (tests/libtrace_torch/test_forwarding.py).
#include <ATen/core/ivalue_inl.h>

#include <atomic>

#include "core/errno_scope.h"
#include "libtrace/trace.h"
#include "torch/collective_entries.h"
#include "torch/compat.h"
#include "torch/model_parts.h"

namespace libtrace {
namespace {

using Tensors = TensorList;

// What a collective is called with, by reference: nothing is built of it when tracing is off.
struct CollectiveCall {
  const char* op;
  const c10d::ReduceOp* reduce_op = nullptr;
  std::optional<int64_t> root_rank{};
};
class TensorArguments {
 public:
  TensorArguments() = default;
  TensorArguments(const at::Tensor& tensor) : tensor_(&tensor) {}
  TensorArguments(const Tensors& list) : list_(&list) {}
  TensorArguments(const std::vector<Tensors>& lists) : lists_(&lists) {}

  Tensors Flat() const {
    if (tensor_ != nullptr) return {*tensor_};
    Tensors all;
    if (list_ != nullptr) all = *list_;
    if (lists_ == nullptr) return all;
    for (const Tensors& list : *lists_) all.insert(all.end(), list.begin(), list.end());
    return all;
  }

 private:
  const at::Tensor* tensor_ = nullptr;
  const Tensors* list_ = nullptr;
  const std::vector<Tensors>* lists_ = nullptr;
};

class TracedBackend final : public CollectiveBackend {
 public:
  TracedBackend(c10::intrusive_ptr<CollectiveBackend> inner, std::string name,
                std::shared_ptr<CollectiveLog> log)
      : CollectiveBackend(inner->getRank(), inner->getSize()),
        inner_(std::move(inner)),
        name_(std::move(name)),
        log_(std::move(log)) {
#if LIBTRACE_TORCH >= 206
    CollectiveBackend::setGroupUid(inner_->getGroupUid());
    setGroupDesc(inner_->getGroupDesc());
    if (inner_->getBoundDeviceId()) CollectiveBackend::setBoundDeviceId(inner_->getBoundDeviceId());
#endif
  }

  const std::string getBackendName() const override { return inner_->getBackendName(); }
  void startCoalescing() override {
    is_coalescing_ = true;
    shares_number_ = false;
    inner_->startCoalescing();
  }
#if LIBTRACE_C10D_BACKENDS
  Work endCoalescing() override {
    is_coalescing_ = false;
    return inner_->endCoalescing();
  }
#else
  void endCoalescing(std::vector<Work>& requests) override {
    is_coalescing_ = false;
    inner_->endCoalescing(requests);
  }
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
    return Issue({.op = "all_reduce", .reduce_op = &options.reduceOp}, tensors, tensors,
                 [&] { return inner_->allreduce(tensors, options); });
  }
  Work allreduce_coalesced(Tensors& tensors,
                           const c10d::AllreduceCoalescedOptions& options) override {
    return Issue({.op = "all_reduce_coalesced", .reduce_op = &options.reduceOp}, tensors, tensors,
                 [&] { return inner_->allreduce_coalesced(tensors, options); });
  }
  Work reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return Issue({.op = "reduce", .reduce_op = &options.reduceOp, .root_rank = options.rootRank},
                 tensors, tensors, [&] { return inner_->reduce(tensors, options); });
  }
  Work allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::AllgatherOptions& options) override {
    return Issue({.op = "all_gather"}, inputs, outputs,
                 [&] { return inner_->allgather(outputs, inputs, options); });
  }
  Work _allgather_base(at::Tensor& output, at::Tensor& input,
                       const c10d::AllgatherOptions& options) override {
    return Issue({.op = "all_gather"}, input, output,
                 [&] { return inner_->_allgather_base(output, input, options); });
  }
  Work allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                           const c10d::AllgatherOptions& options) override {
    return Issue({.op = "all_gather_coalesced"}, inputs, outputs,
                 [&] { return inner_->allgather_coalesced(outputs, inputs, options); });
  }
  Work gather(std::vector<Tensors>& outputs, Tensors& inputs,
              const c10d::GatherOptions& options) override {
    return Issue({.op = "gather", .root_rank = options.rootRank}, inputs, outputs,
                 [&] { return inner_->gather(outputs, inputs, options); });
  }
  Work scatter(Tensors& outputs, std::vector<Tensors>& inputs,
               const c10d::ScatterOptions& options) override {
    return Issue({.op = "scatter", .root_rank = options.rootRank}, inputs, outputs,
                 [&] { return inner_->scatter(outputs, inputs, options); });
  }
  Work reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                      const c10d::ReduceScatterOptions& options) override {
    return Issue({.op = "reduce_scatter", .reduce_op = &options.reduceOp}, inputs, outputs,
                 [&] { return inner_->reduce_scatter(outputs, inputs, options); });
  }
  Work _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                            const c10d::ReduceScatterOptions& options) override {
    return Issue({.op = "reduce_scatter", .reduce_op = &options.reduceOp}, input, output,
                 [&] { return inner_->_reduce_scatter_base(output, input, options); });
  }
  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                     std::vector<int64_t>& input_sizes,
                     const c10d::AllToAllOptions& options) override {
    return Issue({.op = "all_to_all"}, input, output, [&] {
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

#if LIBTRACE_TORCH >= 206
  Work allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return Issue({.op = "all_reduce_sparse", .reduce_op = &options.reduceOp}, tensors, tensors,
                 [&] { return inner_->allreduce_sparse(tensors, options); });
  }
  Work allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                       const c10d::AllgatherOptions& options) override {
    return Issue({.op = "all_gather_coalesced"}, inputs, outputs,
                 [&] { return inner_->allgather_into_tensor_coalesced(outputs, inputs, options); });
  }
  Work reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                       const c10d::ReduceScatterOptions& options) override {
    return Issue({.op = "reduce_scatter_coalesced", .reduce_op = &options.reduceOp}, inputs,
                 outputs,
                 [&] { return inner_->reduce_scatter_tensor_coalesced(outputs, inputs, options); });
  }
  bool supportsSplitting() const override { return inner_->supportsSplitting(); }
  void registerOnCompletionHook(
      std::function<void(std::shared_ptr<c10d::WorkInfo>)>&& hook) override {
    inner_->registerOnCompletionHook(std::move(hook));
  }
  void waitForPendingWorks() override { inner_->waitForPendingWorks(); }
  void enableCollectivesTiming() override { inner_->enableCollectivesTiming(); }
  void eagerConnectSingleDevice(at::Device device) override {
    PassOnGroup();
    inner_->eagerConnectSingleDevice(device);
  }
#endif
#if LIBTRACE_TORCH >= 207
  bool supportsCoalescing() const override { return inner_->supportsCoalescing(); }
  bool supportsTensorAlloc(c10::DeviceIndex device) override {
    return inner_->supportsTensorAlloc(device);
  }
  at::Tensor allocateTensor(long size, at::TensorOptions options) override {
    return inner_->allocateTensor(size, options);
  }
  std::shared_ptr<c10::Allocator> getMemAllocator() override { return inner_->getMemAllocator(); }
  c10d::ErrorType getError() override { return inner_->getError(); }
  void abort() override { inner_->abort(); }
  void shutdown() override { inner_->shutdown(); }
#endif
#if LIBTRACE_TORCH >= 208
  bool supportsTimeEstimation() const override { return inner_->supportsTimeEstimation(); }
#endif
#if LIBTRACE_TORCH >= 209
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                          const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& options) override {
    return inner_->split(store, ranks, options);
  }
  c10::intrusive_ptr<c10d::Backend> merge(const c10::intrusive_ptr<c10d::Store>& store,
                                          const c10::intrusive_ptr<Options>& options,
                                          const int& rank, const int& size) override {
    return inner_->merge(store, options, rank, size);
  }
  c10::intrusive_ptr<Options> getBackendOptions() override { return inner_->getBackendOptions(); }
  void setTimeout(std::chrono::milliseconds timeout) override { inner_->setTimeout(timeout); }
#endif
#if LIBTRACE_TORCH >= 210
  bool supportsShrinking() const override { return inner_->supportsShrinking(); }
  c10::intrusive_ptr<c10d::Backend> shrink(const std::vector<int64_t>& ranks, int flags,
                                           const c10::intrusive_ptr<Options>& options) override {
    return inner_->shrink(ranks, flags, options);
  }
  void setGroupUid(const std::string& uid) override {
    CollectiveBackend::setGroupUid(uid);
    inner_->setGroupUid(uid);
  }
#endif
#if LIBTRACE_TORCH >= 212
  void suspend() override { inner_->suspend(); }
  void resume() override { inner_->resume(); }
  std::unordered_map<std::string, uint64_t> getMemoryStats() override {
    return inner_->getMemoryStats();
  }
#endif
#if LIBTRACE_TORCH >= 214
  Work all_gather_single(at::Tensor& output, at::Tensor& input,
                         const c10d::AllgatherOptions& options) override {
    return Issue({.op = "all_gather"}, input, output,
                 [&] { return inner_->all_gather_single(output, input, options); });
  }
  Work all_gather_single_coalesced(Tensors& outputs, Tensors& inputs,
                                   const c10d::AllgatherOptions& options) override {
    return Issue({.op = "all_gather_coalesced"}, inputs, outputs,
                 [&] { return inner_->all_gather_single_coalesced(outputs, inputs, options); });
  }
  Work gather_single(at::Tensor& output, at::Tensor& input,
                     const c10d::GatherOptions& options) override {
    return Issue({.op = "gather", .root_rank = options.rootRank}, input, output,
                 [&] { return inner_->gather_single(output, input, options); });
  }
  Work gather_into_tensor(at::Tensor& output, at::Tensor& input,
                          const c10d::GatherOptions& options) override {
    return Issue({.op = "gather", .root_rank = options.rootRank}, input, output,
                 [&] { return inner_->gather_into_tensor(output, input, options); });
  }
  Work reduce_scatter_single(at::Tensor& output, at::Tensor& input,
                             const c10d::ReduceScatterOptions& options) override {
    return Issue({.op = "reduce_scatter", .reduce_op = &options.reduceOp}, input, output,
                 [&] { return inner_->reduce_scatter_single(output, input, options); });
  }
  Work reduce_scatter_single_coalesced(Tensors& outputs, Tensors& inputs,
                                       const c10d::ReduceScatterOptions& options) override {
    return Issue({.op = "reduce_scatter_coalesced", .reduce_op = &options.reduceOp}, inputs,
                 outputs,
                 [&] { return inner_->reduce_scatter_single_coalesced(outputs, inputs, options); });
  }
  Work all_to_all_single(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                         std::vector<int64_t>& input_sizes,
                         const c10d::AllToAllOptions& options) override {
    return Issue({.op = "all_to_all"}, input, output, [&] {
      return inner_->all_to_all_single(output, input, output_sizes, input_sizes, options);
    });
  }
  bool supportsReconfigure() const override { return inner_->supportsReconfigure(); }
  bool supportsWindow() const override { return inner_->supportsWindow(); }
  void addEphemeralTimeout(const std::chrono::milliseconds& timeout) override {
    inner_->addEphemeralTimeout(timeout);
  }
  c10d::ReconfigureHandle get_reconfigure_handle() const override {
    return inner_->get_reconfigure_handle();
  }
  Work reconfigure(const c10d::ReconfigureOptions& options) override {
    return inner_->reconfigure(options);
  }
  c10::intrusive_ptr<c10d::Window> new_window(const std::optional<at::Tensor>& tensor) override {
    return inner_->new_window(tensor);
  }
  void registerAbortHook(int64_t id, c10d::AbortHook hook) override {
    inner_->registerAbortHook(id, std::move(hook));
  }
  void unregisterAbortHook(int64_t id) override { inner_->unregisterAbortHook(id); }
  std::optional<at::Device> getBoundDeviceId() const override { return inner_->getBoundDeviceId(); }
  void setBoundDeviceId(std::optional<at::Device> device) override {
    CollectiveBackend::setBoundDeviceId(device);
    inner_->setBoundDeviceId(device);
  }
#endif
#if LIBTRACE_TORCH >= 215
  bool isInitialized() override { return inner_->isInitialized(); }
  void startTimeEstimate() override { inner_->startTimeEstimate(); }
  float endTimeEstimate() override { return inner_->endTimeEstimate(); }
  bool supportsAbortHooks() const override { return inner_->supportsAbortHooks(); }
  bool supportsCompletionHooks() const override { return inner_->supportsCompletionHooks(); }
  void registerCompletionHook(int64_t id, c10d::CompletionHook hook) override {
    inner_->registerCompletionHook(id, std::move(hook));
  }
  void unregisterCompletionHook(int64_t id) override { inner_->unregisterCompletionHook(id); }
#endif

 private:
  // What ProcessGroup sets without a virtual function stays in the decorator until it is needed.
  void PassOnGroup() {
#if LIBTRACE_TORCH >= 206
    if (inner_->getGroupUid() != getGroupUid()) inner_->setGroupUid(getGroupUid());
    if (inner_->getGroupDesc() != getGroupDesc()) inner_->setGroupDesc(getGroupDesc());
#if LIBTRACE_TORCH < 214
    if (inner_->getBoundDeviceId() != getBoundDeviceId())
      inner_->setBoundDeviceId(getBoundDeviceId());
#endif
#endif
  }

  // Logs, then issues. What goes wrong with the log must not touch the collective.
  template <class F>
  Work Issue(const CollectiveCall& call, TensorArguments inputs, TensorArguments outputs,
             F&& issue) {
    PassOnGroup();
    if (!IsEnabled()) return issue();
    CollectiveLog::Impl::Entry entry;
    try {
      const detail::ErrnoScope keeps_errno;
      IssuedCollective collective;
      collective.op = call.op;
      if (call.reduce_op != nullptr) collective.reduce_op = ReduceOpName(*call.reduce_op);
      collective.root_rank = call.root_rank;
      collective.process_group = name_;
      collective.group_size = static_cast<uint32_t>(getSize());
      collective.backend = inner_->getBackendName();
      const bool shares_number = is_coalescing_ && shares_number_.exchange(true);
      entry =
          log_->impl()->Append(std::move(collective), inputs.Flat(), outputs.Flat(), shares_number);
    } catch (...) {  // no memory
    }
    const int64_t start_ns = NowNs();
    Work work = IssueOrRefuse(entry, issue);
    if (entry) CollectiveLog::Impl::FinishWith(log_->impl(), entry, start_ns, work);
    return work;
  }

  // The backend's exception is passed on as it is.
  template <class F>
  Work IssueOrRefuse(const CollectiveLog::Impl::Entry& entry, F& issue) {
    try {
      return issue();
    } catch (const c10::Error& error) {
      Refuse(entry, error.what_without_backtrace());
      throw;
    } catch (const std::exception& error) {
      Refuse(entry, error.what());
      throw;
    } catch (...) {
      Refuse(entry, "an exception without a text");
      throw;
    }
  }
  void Refuse(const CollectiveLog::Impl::Entry& entry, const char* error) noexcept {
    if (entry == nullptr) return;
    try {
      const detail::ErrnoScope keeps_errno;
      log_->impl()->Refuse(*entry, error);
    } catch (...) {  // no memory
    }
  }

  c10::intrusive_ptr<CollectiveBackend> inner_;
  std::string name_;
  std::shared_ptr<CollectiveLog> log_;
  // Between startCoalescing and endCoalescing all collectives have one number.
  std::atomic<bool> is_coalescing_ = false, shares_number_ = false;
};

}  // namespace

c10::intrusive_ptr<CollectiveBackend> TraceCollectives(
    c10::intrusive_ptr<CollectiveBackend> backend, std::string process_group,
    std::shared_ptr<CollectiveLog> log, CallSite location) {
  const detail::ErrnoScope keeps_errno;
  log->impl()->AddGroup(location);
  return c10::make_intrusive<TracedBackend>(std::move(backend), std::move(process_group),
                                            std::move(log));
}

}  // namespace libtrace
