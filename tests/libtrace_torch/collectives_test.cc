// The log of collectives: through the decorator and beside a group that stays as it is. The backend
// is one that remembers what it was given.
#include "libtrace/torch/collectives.h"

#include <ATen/ops/ones.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>
#if TORCH_VERSION_MAJOR < 2
#include <torch/csrc/distributed/c10d/Ops.hpp>
#endif

#include "libtrace/trace.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"
#include "torch/compat.h"

namespace libtrace {
namespace {

using testing::MemoryTrace;
using testing::PayloadsOf;
using Tensors = std::vector<at::Tensor>;
using Work = c10::intrusive_ptr<c10d::Work>;

class RememberingBackend final : public CollectiveBackend {
 public:
  RememberingBackend() : CollectiveBackend(0, 2) {}

  const std::string getBackendName() const override { return "remembering"; }
  Work broadcast(Tensors& t, const c10d::BroadcastOptions&) override {
    return Call("broadcast", &t);
  }
  Work allreduce(Tensors& t, const c10d::AllreduceOptions&) override {
    return Call("allreduce", &t);
  }
  Work allreduce_coalesced(Tensors& t, const c10d::AllreduceCoalescedOptions&) override {
    return Call("allreduce_coalesced", &t);
  }
  Work reduce(Tensors& t, const c10d::ReduceOptions&) override { return Call("reduce", &t); }
  Work allgather(std::vector<Tensors>& o, Tensors& i, const c10d::AllgatherOptions&) override {
    return Call("allgather", &o, &i);
  }
  Work _allgather_base(at::Tensor& o, at::Tensor& i, const c10d::AllgatherOptions&) override {
    return Call("_allgather_base", &o, &i);
  }
  Work allgather_coalesced(std::vector<Tensors>& o, Tensors& i,
                           const c10d::AllgatherOptions&) override {
    return Call("allgather_coalesced", &o, &i);
  }
  Work gather(std::vector<Tensors>& o, Tensors& i, const c10d::GatherOptions&) override {
    return Call("gather", &o, &i);
  }
  Work scatter(Tensors& o, std::vector<Tensors>& i, const c10d::ScatterOptions&) override {
    return Call("scatter", &o, &i);
  }
  Work reduce_scatter(Tensors& o, std::vector<Tensors>& i,
                      const c10d::ReduceScatterOptions&) override {
    return Call("reduce_scatter", &o, &i);
  }
  Work _reduce_scatter_base(at::Tensor& o, at::Tensor& i,
                            const c10d::ReduceScatterOptions&) override {
    return Call("_reduce_scatter_base", &o, &i);
  }
  Work alltoall_base(at::Tensor& o, at::Tensor& i, std::vector<int64_t>&, std::vector<int64_t>&,
                     const c10d::AllToAllOptions&) override {
    return Call("alltoall_base", &o, &i);
  }
  Work alltoall(Tensors& o, Tensors& i, const c10d::AllToAllOptions&) override {
    return Call("alltoall", &o, &i);
  }
  Work send(Tensors& t, int, int) override { return Call("send", &t); }
  Work recv(Tensors& t, int, int) override { return Call("recv", &t); }
  Work recvAnysource(Tensors& t, int) override { return Call("recvAnysource", &t); }
  Work barrier(const c10d::BarrierOptions&) override { return Call("barrier"); }
  void monitoredBarrier(const c10d::BarrierOptions&, bool) override { Call("monitoredBarrier"); }
#if LIBTRACE_TORCH >= 206
  Work allreduce_sparse(Tensors& t, const c10d::AllreduceOptions&) override {
    return Call("allreduce_sparse", &t);
  }
  Work allgather_into_tensor_coalesced(Tensors& o, Tensors& i,
                                       const c10d::AllgatherOptions&) override {
    return Call("allgather_into_tensor_coalesced", &o, &i);
  }
  Work reduce_scatter_tensor_coalesced(Tensors& o, Tensors& i,
                                       const c10d::ReduceScatterOptions&) override {
    return Call("reduce_scatter_tensor_coalesced", &o, &i);
  }
#endif
#if LIBTRACE_TORCH >= 214
  Work all_gather_single(at::Tensor& o, at::Tensor& i, const c10d::AllgatherOptions&) override {
    return Call("all_gather_single", &o, &i);
  }
  Work all_gather_single_coalesced(Tensors& o, Tensors& i, const c10d::AllgatherOptions&) override {
    return Call("all_gather_single_coalesced", &o, &i);
  }
  Work gather_single(at::Tensor& o, at::Tensor& i, const c10d::GatherOptions&) override {
    return Call("gather_single", &o, &i);
  }
  Work gather_into_tensor(at::Tensor& o, at::Tensor& i, const c10d::GatherOptions&) override {
    return Call("gather_into_tensor", &o, &i);
  }
  Work reduce_scatter_single(at::Tensor& o, at::Tensor& i,
                             const c10d::ReduceScatterOptions&) override {
    return Call("reduce_scatter_single", &o, &i);
  }
  Work reduce_scatter_single_coalesced(Tensors& o, Tensors& i,
                                       const c10d::ReduceScatterOptions&) override {
    return Call("reduce_scatter_single_coalesced", &o, &i);
  }
  Work all_to_all_single(at::Tensor& o, at::Tensor& i, std::vector<int64_t>&, std::vector<int64_t>&,
                         const c10d::AllToAllOptions&) override {
    return Call("all_to_all_single", &o, &i);
  }
#endif

  std::string name;
  const void* first = nullptr;
  const void* second = nullptr;
  bool refuses = false;

 private:
  Work Call(const char* called, const void* one = nullptr, const void* two = nullptr) {
    if (refuses) throw std::invalid_argument("requires non-empty tensor list");
    name = called;
    first = one;
    second = two;
    return {};
  }
};

TEST_CASE("collectives: all are passed on as they are, and logged when they are issued") {
  MemoryTrace trace;
  auto inner = c10::make_intrusive<RememberingBackend>();
  auto log = std::make_shared<CollectiveLog>();
  const auto traced = TraceCollectives(inner, "dp", log);
  at::Tensor tensor = at::ones({2, 3}), other = at::ones({4, 3});
  Tensors list{tensor}, others{other};
  std::vector<Tensors> lists{{tensor, tensor}};
  std::vector<int64_t> sizes;
  const auto check = [&](const char* called, const char* op, const void* first,
                         const void* second = nullptr) {
    INFO(called);
    CHECK(inner->name == called);
    CHECK(inner->first == first);
    CHECK(inner->second == second);
    // On its way out before the next is issued.
    const std::string text = PayloadsOf(trace.records(), "libtrace_collective_log");
    CHECK(text.find("\"op\": \"" + std::string(op) + "\"", text.rfind("sequence_number")) !=
          std::string::npos);
  };
  c10d::AllreduceOptions max;
  max.reduceOp = c10d::ReduceOp::MAX;
  traced->broadcast(list, {});
  check("broadcast", "broadcast", &list);
  traced->allreduce(list, max);
  check("allreduce", "all_reduce", &list);
  traced->allreduce_coalesced(list, {});
  check("allreduce_coalesced", "all_reduce_coalesced", &list);
  traced->reduce(list, {});
  check("reduce", "reduce", &list);
  traced->allgather(lists, list, {});
  check("allgather", "all_gather", &lists, &list);
  traced->_allgather_base(other, tensor, {});
  check("_allgather_base", "all_gather", &other, &tensor);
  traced->allgather_coalesced(lists, list, {});
  check("allgather_coalesced", "all_gather_coalesced", &lists, &list);
  traced->gather(lists, list, {});
  check("gather", "gather", &lists, &list);
  traced->scatter(list, lists, {});
  check("scatter", "scatter", &list, &lists);
  traced->reduce_scatter(list, lists, {});
  check("reduce_scatter", "reduce_scatter", &list, &lists);
  traced->_reduce_scatter_base(tensor, other, {});
  check("_reduce_scatter_base", "reduce_scatter", &tensor, &other);
  traced->alltoall_base(other, tensor, sizes, sizes, {});
  check("alltoall_base", "all_to_all", &other, &tensor);
  traced->alltoall(others, list, {});
  check("alltoall", "all_to_all", &others, &list);
  traced->send(list, 1, 7);
  check("send", "send", &list);
  traced->recv(list, 1, 7);
  check("recv", "recv", &list);
  traced->recvAnysource(list, 7);
  check("recvAnysource", "recv", &list);
  traced->barrier({});
  check("barrier", "barrier", nullptr);
  traced->monitoredBarrier({}, false);
  check("monitoredBarrier", "monitored_barrier", nullptr);
  uint64_t collective_count = 15;
#if LIBTRACE_TORCH >= 206
  traced->allreduce_sparse(list, max);
  check("allreduce_sparse", "all_reduce_sparse", &list);
  traced->allgather_into_tensor_coalesced(others, list, {});
  check("allgather_into_tensor_coalesced", "all_gather_coalesced", &others, &list);
  traced->reduce_scatter_tensor_coalesced(list, others, {});
  check("reduce_scatter_tensor_coalesced", "reduce_scatter_coalesced", &list, &others);
  collective_count += 3;
#endif
#if LIBTRACE_TORCH >= 214
  traced->all_gather_single(other, tensor, {});
  check("all_gather_single", "all_gather", &other, &tensor);
  traced->all_gather_single_coalesced(others, list, {});
  check("all_gather_single_coalesced", "all_gather_coalesced", &others, &list);
  traced->gather_single(other, tensor, {});
  check("gather_single", "gather", &other, &tensor);
  traced->gather_into_tensor(other, tensor, {});
  check("gather_into_tensor", "gather", &other, &tensor);
  traced->reduce_scatter_single(tensor, other, {});
  check("reduce_scatter_single", "reduce_scatter", &tensor, &other);
  traced->reduce_scatter_single_coalesced(list, others, {});
  check("reduce_scatter_single_coalesced", "reduce_scatter_coalesced", &list, &others);
  traced->all_to_all_single(other, tensor, sizes, sizes, {});
  check("all_to_all_single", "all_to_all", &other, &tensor);
  collective_count += 7;
#endif

  for (const auto& record : trace.records()) {  // from the place that gave the log a group
    if (record.IsArtifact("libtrace_collective_log"))
      CHECK(record.prefix.find("collectives_test.cc:") != std::string::npos);
  }
  const std::string text = PayloadsOf(trace.records(), "libtrace_collective_log");
  CHECK(text.find("\"reduce_op\": \"max\"") != std::string::npos);
  // Collectives and the 3 point-to-point ops have numbers of their own.
  const auto has = [&](const char* member, uint64_t number) {
    return text.find("\"" + std::string(member) + "\": " + std::to_string(number)) !=
           std::string::npos;
  };
  CHECK(has("sequence_number", collective_count + 2));
  CHECK_FALSE(has("sequence_number", collective_count + 3));
  CHECK(has("collective_seq_id", collective_count));
  CHECK_FALSE(has("collective_seq_id", collective_count + 1));
  CHECK(text.find("\"p2p_seq_id\": 3") != std::string::npos);
  CHECK(text.find("\"p2p_seq_id\": 4") == std::string::npos);
  CHECK(PayloadsOf(trace.records(), "libtrace_collective_state").find("\"sequence_number\": 17") !=
        std::string::npos);
}

TEST_CASE("collectives: coalesced ones share a number, errors pass, a limit counts") {
  MemoryTrace trace;
  auto log = std::make_shared<CollectiveLog>(
      CollectiveLogOptions{.writes_as_issued = false, .max_collectives = 4});
  const auto traced = TraceCollectives(c10::make_intrusive<RememberingBackend>(), "dp", log);
  Tensors list{at::ones({2})};
  traced->allreduce(list, {});
  try {
    traced->startCoalescing();
  } catch (const std::exception&) {  // the backend has none; the numbers do not depend on it
  }
  traced->allreduce(list, {});
  traced->allreduce(list, {});
  try {
#if TORCH_VERSION_MAJOR >= 2
    traced->endCoalescing();
#else
    std::vector<Work> works;
    traced->endCoalescing(works);
#endif
  } catch (const std::exception&) {
  }
  traced->allreduce(list, {});
  for (int i = 0; i < 3; ++i) traced->allreduce(list, {});
  CHECK(log->size() == 4);
  CHECK(log->unwritten_count() == 3);
  log->Emit();
  CHECK(log->size() == 0);
  const std::string text = PayloadsOf(trace.records(), "libtrace_collective_log");
  const auto count = [&](const std::string& number) {
    size_t found = 0;
    const std::string member = "\"collective_seq_id\": " + number;
    for (size_t at = text.find(member); at != std::string::npos; at = text.find(member, at + 1))
      ++found;
    return found;
  };
  CHECK(count("1") == 1);
  CHECK(count("2") == 2);
  CHECK(count("3") == 1);
  CHECK(PayloadsOf(trace.records(), "libtrace_collective_state").find("\"unwritten_count\": 3") !=
        std::string::npos);
}

TEST_CASE(
    "collectives: one that the backend refuses has an error and takes no number of its peers") {
  for (const bool writes_as_issued : {true, false}) {
    MemoryTrace trace;
    auto inner = c10::make_intrusive<RememberingBackend>();
    auto log = std::make_shared<CollectiveLog>(
        CollectiveLogOptions{.writes_as_issued = writes_as_issued, .max_collectives = 4});
    const auto traced = TraceCollectives(inner, "dp", log);
    Tensors list{at::ones({2})}, none;
    const auto refuse = [&](const auto& call) {
      inner->refuses = true;
      CHECK_THROWS_AS(call(), std::invalid_argument);
      inner->refuses = false;
    };
    traced->allreduce(list, {});
    refuse([&] { traced->allreduce(none, {}); });
    refuse([&] { traced->send(list, 1, 7); });
    traced->broadcast(list, {});
    refuse([&] { traced->barrier({}); });  // beyond the limit: not written, nor numbered
    traced->send(list, 1, 7);
    log->EmitSchedule();
    log->Emit();
    const std::string text = PayloadsOf(trace.records(), "libtrace_collective_log");
    INFO(text);
    // The one after it has the number that its peers give it.
    CHECK(text.find("\"collective_seq_id\": 2", text.find("\"op\": \"broadcast\"")) !=
          std::string::npos);
    CHECK(text.find("\"collective_seq_id\": 3") == std::string::npos);
    const std::string schedule = PayloadsOf(trace.records(), "inductor_collective_schedule");
    CHECK(schedule.find("all_reduce") == schedule.rfind("all_reduce"));
    const std::string error = "\"error\": \"requires non-empty tensor list\"";
    const std::string states = PayloadsOf(trace.records(), "libtrace_collective_state");
    if (writes_as_issued) {
      CHECK(states.find("\"sequence_number\": 1, " + error) != std::string::npos);
      CHECK(states.find("\"sequence_number\": 2, " + error) != std::string::npos);
    } else {
      CHECK(text.find(error) != std::string::npos);
      CHECK(text.find("\"collective_seq_id\": 2") == text.rfind("\"collective_seq_id\": 2"));
    }
  }
}

#if TORCH_VERSION_MAJOR < 2  // a process group is its own backend, and c10d::ops dispatches
TEST_CASE("collectives: an observer sees what a group issues that stays as it is") {
  MemoryTrace trace;
  auto log = std::make_shared<CollectiveLog>();
  c10::intrusive_ptr<c10d::ProcessGroup> group = c10::make_intrusive<RememberingBackend>();
  c10::intrusive_ptr<c10d::ProcessGroup> unobserved = c10::make_intrusive<RememberingBackend>();
  Tensors list{at::ones({2, 3})};
  {
    const CollectiveObserver observer(group, "dp", log);
    c10d::AllreduceOptions max;
    max.reduceOp = c10d::ReduceOp::MAX;
    const auto issue = [](const auto& call) {
      try {  // the op wants a work that the remembering backend does not give
        call();
      } catch (const std::exception&) {
      }
    };
    issue([&] { c10d::ops::allreduce(group, list, max); });
    issue([&] { c10d::ops::allreduce(unobserved, list, max); });
    issue([&] { c10d::ops::scatter(group, list, {{list[0], list[0]}}, {}); });
    issue([&] { c10d::ops::send(group, list, 1, 7); });
  }
  c10d::ops::broadcast(group, list, {});
  const std::string text = PayloadsOf(trace.records(), "libtrace_collective_log");
  CHECK(text.find("\"op\": \"all_reduce\", \"process_group\": \"dp\", \"group_size\": 2, "
                  "\"backend\": \"remembering\", \"input_shapes\": [[2, 3]], "
                  "\"output_shapes\": [[2, 3]], \"dtype\": \"float32\", \"reduce_op\": \"max\"") !=
        std::string::npos);
  CHECK(text.find("\"input_shapes\": [[2, 3], [2, 3]], \"output_shapes\": [[2, 3]]") !=
        std::string::npos);
  CHECK(text.find("\"op\": \"send\"") != std::string::npos);
  CHECK(text.find("\"root_rank\": 1") != std::string::npos);
  CHECK(text.find("\"sequence_number\": 2") != std::string::npos);
  CHECK(text.find("\"sequence_number\": 3") == std::string::npos);
  CHECK(text.find("broadcast") == std::string::npos);
}
#endif

TEST_CASE("collectives: what was issued is in the log of a process that was killed") {
  const testing::TemporaryDirectory directory;
  const pid_t child = fork();
  if (child == 0) {
    Options options = Options::FromEnvironment();
    options.directory = directory.string();
    if (!Start(options)) _exit(1);
    const auto traced = TraceCollectives(c10::make_intrusive<RememberingBackend>(), "dp",
                                         std::make_shared<CollectiveLog>());
    traced->barrier({});
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  const auto logs = testing::LogsIn(directory.path());
  REQUIRE(logs.size() == 1);
  CHECK(testing::ReadText(logs[0]).find("\"op\": \"barrier\"") != std::string::npos);
}

}  // namespace
}  // namespace libtrace
