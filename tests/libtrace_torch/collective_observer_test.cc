// The observer of a process group beside a real backend: two ranks, as threads, over Gloo.
#include "libtrace/torch/collectives.h"

#if TORCH_VERSION_MAJOR >= 2  // in 1.13 a group is its own backend: see collectives_test.cc
#include <ATen/ops/ones.h>

#include <string>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"
#include "torch/compat.h"

namespace libtrace {
namespace {

using testing::MemoryTrace;
using testing::PayloadsOf;
using Tensors = std::vector<at::Tensor>;
using Work = c10::intrusive_ptr<c10d::Work>;

constexpr int kRanks = 2;

c10::intrusive_ptr<c10d::ProcessGroup> GlooGroup(const c10::intrusive_ptr<c10d::Store>& store,
                                                 int rank) {
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices = {c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")};
  auto group = c10::make_intrusive<c10d::ProcessGroup>(
      c10::make_intrusive<c10d::PrefixStore>("group", store), rank, kRanks);
  constexpr auto kGloo = c10d::ProcessGroup::BackendType::GLOO;
  const c10::intrusive_ptr<c10d::Backend> backend = c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>("gloo", store), rank, kRanks, options);
  group->setBackend(c10::DeviceType::CPU, kGloo, backend);
  group->setDefaultBackend(kGloo);
  return group;
}

// What one rank issues, through the group.
void IssueAll(const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
  const bool is_first = group->getRank() == 0;
  Tensors tensors{at::ones({2, 3})};
  const Tensors both{at::ones({2, 3}), at::ones({2, 3})};
  std::vector<Tensors> gathered{both}, scattered, none;
  at::Tensor flat = at::ones({4}), other = at::ones({4});
  std::vector<int64_t> even;
  const auto wait = [](const Work& work) { work->wait(); };
  wait(group->allreduce(tensors));
  c10d::BroadcastOptions from_second;
  from_second.rootRank = 1;
  wait(group->broadcast(tensors, from_second));
  wait(group->reduce(tensors));
  wait(group->allgather(gathered, tensors));
  wait(group->gather(is_first ? gathered : none, tensors));
  if (is_first) scattered.push_back(both);
  wait(group->scatter(tensors, scattered));
#if LIBTRACE_TORCH >= 214
  wait(group->all_to_all_single(flat, other, even, even));
#else
  wait(group->alltoall_base(flat, other, even, even));
#endif
  wait(is_first ? group->send(tensors, 1, 7) : group->recv(tensors, 0, 7));
  wait(group->barrier());
}

TEST_CASE("collectives: an observer sees what a group of Gloo's issues that stays as it is") {
  MemoryTrace trace;
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::thread second([&] { IssueAll(GlooGroup(store, 1)); });  // not observed
  auto log = std::make_shared<CollectiveLog>();
  const auto group = GlooGroup(store, 0);
  {
    const CollectiveObserver observer(group, "dp", log);
    IssueAll(group);
  }
  second.join();
  const std::string text = PayloadsOf(trace.records(), "libtrace_collective_log");
  INFO(text);
  std::vector<std::string> ops;
  for (size_t at = text.find("\"op\": \""); at != std::string::npos;
       at = text.find("\"op\": \"", at + 1))
    ops.push_back(text.substr(at + 7, text.find('"', at + 7) - at - 7));
  CHECK(ops == std::vector<std::string>{"all_reduce", "broadcast", "reduce", "all_gather", "gather",
                                        "scatter", "all_to_all", "send", "barrier"});
  CHECK(text.find("\"process_group\": \"dp\", \"group_size\": 2") != std::string::npos);
  CHECK(text.find("\"input_shapes\": [[2, 3]]") != std::string::npos);
  CHECK(text.find("\"root_rank\": 1") != std::string::npos);
  CHECK(text.find("\"collective_seq_id\": 8") != std::string::npos);
  CHECK(text.find("\"p2p_seq_id\": 1") != std::string::npos);
  const std::string states = PayloadsOf(trace.records(), "libtrace_collective_state");
  CHECK(states.find("\"duration_ns\"") != std::string::npos);
}

}  // namespace
}  // namespace libtrace
#endif
