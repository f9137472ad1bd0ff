// Observes the collectives of a process group that somebody else made and runs.
#include <ATen/core/ivalue_inl.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <map>
#include <thread>
#include <utility>

#include "core/errno_scope.h"
#include "core/per_process.h"
#include "libtrace/trace.h"
#include "torch/collective_entries.h"
#include "torch/compat.h"
#include "torch/model_parts.h"
#ifndef C10D_BACKEND_HAS_HOOKS
#include <torch/csrc/distributed/c10d/Types.hpp>
#endif

namespace libtrace {

struct CollectiveObserver::Impl {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::string name;
  std::shared_ptr<CollectiveLog> log;
#ifdef C10D_BACKEND_HAS_HOOKS
  int64_t hook_id = 0;
  std::mutex mutex = {};
  struct Issuing {
    CollectiveLog::Impl::Entry entry;
    int64_t start_ns = 0;
    std::thread::id thread;
  };
  // Between the hooks of a collective, by the id that both are given.
  std::map<int64_t, Issuing> issuing = {};
  // A collective that the backend refuses has no second hook: its thread begins another one.
  void RefuseOfThisThread() {
    CollectiveLog::Impl::Entry refused;
    {
      const std::lock_guard lock(mutex);
      const auto place = std::find_if(issuing.begin(), issuing.end(), [](const auto& one) {
        return one.second.thread == std::this_thread::get_id();
      });
      if (place == issuing.end()) return;
      refused = std::move(place->second.entry);
      issuing.erase(place);
    }
    log->impl()->Refuse(*refused, "the backend threw an exception");
  }
#endif

  CollectiveLog::Impl::Entry Append(IssuedCollective collective, const TensorList& inputs,
                                    const TensorList& outputs) const {
    collective.process_group = name;
    collective.group_size = static_cast<uint32_t>(group->getSize());
    collective.backend = group->getBackendName();
    return log->impl()->Append(std::move(collective), inputs, outputs, false);
  }
};

#ifdef C10D_BACKEND_HAS_HOOKS
namespace {

const char* OpName(c10d::HookOpName name) {
  using Name = c10d::HookOpName;
  switch (name) {
    case Name::SEND:
      return "send";
    case Name::RECV:
      return "recv";
    case Name::BROADCAST:
      return "broadcast";
    case Name::ALLREDUCE:
      return "all_reduce";
    case Name::REDUCE:
      return "reduce";
    case Name::ALLGATHER:
      return "all_gather";
    case Name::REDUCE_SCATTER:
      return "reduce_scatter";
    case Name::ALLTOALL:
      return "all_to_all";
    case Name::BARRIER:
      return "barrier";
    case Name::SCATTER:
      return "scatter";
    case Name::GATHER:
      return "gather";
    default:  // a split or a window is no collective on tensors
      return nullptr;
  }
}

}  // namespace

CollectiveObserver::CollectiveObserver(c10::intrusive_ptr<c10d::ProcessGroup> group,
                                       std::string process_group,
                                       std::shared_ptr<CollectiveLog> log, CallSite location) {
  const detail::ErrnoScope keeps_errno;
  impl_.reset(new Impl{std::move(group), std::move(process_group), std::move(log)});
  impl_->log->impl()->AddGroup(location);
  static std::atomic<int64_t> next_hook_id{int64_t{0x6c74} << 32};  // far from those of others
  impl_->hook_id = next_hook_id++;
  Impl* const impl = impl_.get();
  impl->group->registerPreHook(impl->hook_id, [impl](const c10d::PreHookArgs& args) {
    const char* const op = OpName(args.name);
    if (op == nullptr || !IsEnabled()) return;
    const detail::ErrnoScope keeps_errno_of_call;
    try {
      impl->RefuseOfThisThread();
      IssuedCollective collective{.op = op};
      if (args.root >= 0) collective.root_rank = args.root;
      auto entry = impl->Append(std::move(collective), args.input_tensors, args.output_tensors);
      if (entry == nullptr) return;
      const std::lock_guard lock(impl->mutex);
      if (impl->issuing.size() >= 1000) impl->issuing.clear();  // of threads that have ended
      impl->issuing[args.op_id] = {std::move(entry), NowNs(), std::this_thread::get_id()};
    } catch (const std::exception&) {  // no memory
    }
  });
  impl->group->registerPostHook(impl->hook_id, [impl](const c10d::PostHookArgs& args) {
    const detail::ErrnoScope keeps_errno_of_call;
    CollectiveObserver::Impl::Issuing issued;
    {
      const std::lock_guard lock(impl->mutex);
      const auto place = impl->issuing.find(args.op_id);
      if (place == impl->issuing.end()) return;
      issued = std::move(place->second);
      impl->issuing.erase(place);
    }
    CollectiveLog::Impl::FinishWith(impl->log->impl(), issued.entry, issued.start_ns, args.work);
  });
}

CollectiveObserver::~CollectiveObserver() {
  const detail::ErrnoScope keeps_errno;
  impl_->group->unregisterPreHook(impl_->hook_id);
  impl_->group->unregisterPostHook(impl_->hook_id);
}

#else  // no hooks: the dispatcher's ops

namespace {

// c10d's op -> the name in the log; null for what is no collective.
const char* OpName(std::string_view op) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"c10d::allreduce_", "all_reduce"},
      {"c10d::allreduce_coalesced_", "all_reduce_coalesced"},
      {"c10d::allreduce_sparse_", "all_reduce_sparse"},
      {"c10d::broadcast_", "broadcast"},
      {"c10d::reduce_", "reduce"},
      {"c10d::allgather_", "all_gather"},
      {"c10d::_allgather_base_", "all_gather"},
      {"c10d::allgather_coalesced_", "all_gather_coalesced"},
      {"c10d::allgather_into_tensor_coalesced_", "all_gather_coalesced"},
      {"c10d::reduce_scatter_", "reduce_scatter"},
      {"c10d::_reduce_scatter_base_", "reduce_scatter"},
      {"c10d::reduce_scatter_tensor_coalesced_", "reduce_scatter_coalesced"},
      {"c10d::gather_", "gather"},
      {"c10d::scatter_", "scatter"},
      {"c10d::alltoall_", "all_to_all"},
      {"c10d::alltoall_base_", "all_to_all"},
      {"c10d::barrier", "barrier"},
      {"c10d::monitored_barrier_", "monitored_barrier"},
      {"c10d::send", "send"},
      {"c10d::recv_", "recv"},
      {"c10d::recv_any_source_", "recv"},
  };
  const auto* const found = std::find_if(std::begin(kNames), std::end(kNames),
                                         [op](const auto& one) { return one.first == op; });
  return found == std::end(kNames) ? nullptr : found->second;
}

// The object of that custom class of c10d, or null.
template <class T>
c10::intrusive_ptr<T> CustomClass(const c10::IValue& value, std::string_view class_name) {
  if (!value.isObject() || value.toObjectRef().name() != class_name) return {};
  return value.toCustomClass<T>();
}

void Flatten(const c10::IValue& value, TensorList& tensors) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) tensors.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(tensor);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) Flatten(element, tensors);
  }
}

// Observers by group. Callbacks of libtorch are plain functions.
struct Observers {
  std::mutex mutex;
  std::multimap<const c10d::ProcessGroup*, CollectiveObserver::Impl*> by_group;
};
// Never destroyed: ops run while the process ends.
constinit std::atomic<detail::PerProcess<Observers>*> g_observers{nullptr};
Observers& TheObservers() { return detail::MadeOnce(g_observers).get(); }
at::CallbackHandle callback = 0;  // 0 = not registered; a child inherits that of its parent

// What one op carries from its start to its end.
struct IssueContext final : at::ObserverContext {
  std::vector<std::pair<std::shared_ptr<CollectiveLog>, CollectiveLog::Impl::Entry>> issued;
  int64_t start_ns = 0;
  int exception_count = std::uncaught_exceptions();
};

bool HasRoot(std::string_view op) {
  return op == "broadcast" || op == "reduce" || op == "gather" || op == "scatter" || op == "send" ||
         op == "recv";
}

// The arguments of c10d's ops are the tensors (two lists: outputs, inputs), the group, then the
// reduce op, the root or peer, and what is not logged.
struct CollectiveArguments {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  IssuedCollective collective;
  TensorList inputs, outputs;

  CollectiveArguments(const char* op, c10::ArrayRef<const c10::IValue> values) {
    collective.op = op;
    std::vector<TensorList> lists;
    for (const c10::IValue& value : values) {
      if (!group) {
        group = CustomClass<c10d::ProcessGroup>(value, "__torch__.torch.classes.c10d.ProcessGroup");
        if (!group) Flatten(value, lists.emplace_back());
      } else if (const auto reduce =
                     CustomClass<c10d::ReduceOp>(value, "__torch__.torch.classes.c10d.ReduceOp")) {
        collective.reduce_op = ReduceOpName(*reduce);
      } else if (value.isInt() && !collective.root_rank && HasRoot(collective.op)) {
        collective.root_rank = value.toInt();
      }
    }
    if (lists.size() > 1) {
      outputs = std::move(lists[0]);
      inputs = std::move(lists[1]);
    } else if (lists.size() == 1) {
      if (collective.op != "send") outputs = lists[0];
      if (collective.op != "recv") inputs = std::move(lists[0]);
    }
    if (collective.op == "barrier") inputs.clear(), outputs.clear();
  }
};

std::unique_ptr<at::ObserverContext> OnCollectiveStart(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  if (name.substr(0, 6) != "c10d::" || !IsEnabled()) return nullptr;
  const char* const op = OpName(name);
  if (op == nullptr) return nullptr;
  const detail::ErrnoScope keeps_errno;
  try {
    const CollectiveArguments arguments(op, function.inputs());
    auto context = std::make_unique<IssueContext>();
    Observers& observers = TheObservers();
    const std::lock_guard lock(observers.mutex);
    const auto [first, last] = observers.by_group.equal_range(arguments.group.get());
    for (auto one = first; one != last; ++one) {
      auto entry = one->second->Append(arguments.collective, arguments.inputs, arguments.outputs);
      if (entry) context->issued.emplace_back(one->second->log, std::move(entry));
    }
    if (context->issued.empty()) return nullptr;
    context->start_ns = NowNs();
    return context;
  } catch (const std::exception&) {  // no memory, or arguments of another shape: not logged
    return nullptr;
  }
}

void OnCollectiveEnd(const at::RecordFunction& function, at::ObserverContext* context) {
  if (context == nullptr) return;
  const detail::ErrnoScope keeps_errno;
  const auto& issue = *static_cast<IssueContext*>(context);
  try {
    Work work;
    for (const c10::IValue& value : function.outputs()) {
      if (!work) work = CustomClass<c10d::Work>(value, "__torch__.torch.classes.c10d.Work");
    }
    if (std::uncaught_exceptions() > issue.exception_count) {
      for (const auto& [log, entry] : issue.issued)
        log->impl()->Refuse(*entry, "the op threw an exception");
      return;
    }
    if (!work) return;  // its end cannot be observed
    for (const auto& [log, entry] : issue.issued)
      CollectiveLog::Impl::FinishWith(log->impl(), entry, issue.start_ns, work);
  } catch (const std::exception&) {  // no memory: no duration
  }
}

}  // namespace

CollectiveObserver::CollectiveObserver(c10::intrusive_ptr<c10d::ProcessGroup> group,
                                       std::string process_group,
                                       std::shared_ptr<CollectiveLog> log, CallSite location) {
  const detail::ErrnoScope keeps_errno;
  impl_.reset(new Impl{std::move(group), std::move(process_group), std::move(log)});
  impl_->log->impl()->AddGroup(location);
  Observers& observers = TheObservers();
  const std::lock_guard lock(observers.mutex);
  observers.by_group.emplace(impl_->group.get(), impl_.get());
  if (callback != 0) return;
  callback = at::addGlobalCallback(at::RecordFunctionCallback(OnCollectiveStart, OnCollectiveEnd)
                                       .needsInputs(true)
                                       .needsOutputs(true)
                                       .scopes({at::RecordScope::FUNCTION}));
}

CollectiveObserver::~CollectiveObserver() {
  const detail::ErrnoScope keeps_errno;
  Observers& observers = TheObservers();
  const std::lock_guard lock(observers.mutex);
  const auto [first, last] = observers.by_group.equal_range(impl_->group.get());
  const auto own =
      std::find_if(first, last, [&](const auto& one) { return one.second == impl_.get(); });
  if (own == last) return;  // in a forked child of the process that made it
  observers.by_group.erase(own);
  if (observers.by_group.empty()) at::removeCallback(std::exchange(callback, 0));
}
#endif

}  // namespace libtrace
