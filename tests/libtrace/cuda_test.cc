// libtrace::cuda against the CUPTI stand-in that LIBTRACE_CUPTI names (cupti_stand_in.cc), or,
// where it names a file that is not there, without CUPTI. No test here touches a GPU.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "libtrace/cuda/cuda_activity.h"
#include "libtrace/trace.h"
#include "tests/catch2.h"
#include "tests/libtrace/cuda_stand_in.h"
#include "tests/libtrace/log_text.h"
#include "tests/libtrace/sanitizer.h"

namespace libtrace {
namespace {

using testing::FindRecord;
using testing::Launch;
using testing::MemoryTrace;
using testing::StandIn;

void Copy(uint64_t size_bytes, uint64_t duration_ns, uint32_t stream) {
  StandIn<void (*)(uint64_t, uint64_t, uint32_t)>("standin_copy")(size_bytes, duration_ns, stream);
}

TEST_CASE("stand-in: kernels and copies belong to the op and node that launched them") {
  MemoryTrace trace;
  CudaActivity activity;
  REQUIRE(activity.status().message() == "");
  const std::string node = "mm_3";
  {
    const CudaLaunchScope mm("aten::mm", &node);
    Launch("sgemm_128x64", 5000, 7);
    {
      const CudaLaunchScope inner("aten::relu", nullptr);
      Launch("elementwise", 800, 7);
    }
    Copy(4096, 300, 9);
  }
  Launch("nobody's", 10, 0);
  activity.Emit();

  const auto records = activity.Records();
  REQUIRE(records.size() == 4);
  CHECK(records[0].name == "sgemm_128x64");
  CHECK(records[0].op == "aten::mm");
  CHECK(records[0].node == "mm_3");
  CHECK(records[0].duration_ns == 5000);
  CHECK(records[0].stream == 7);
  CHECK(records[1].op == "aten::relu");
  CHECK_FALSE(records[1].node);
  CHECK(records[2].kind == "memcpy");
  CHECK(records[2].name == "HtoD");
  CHECK(records[2].size_bytes == 4096);
  CHECK(records[2].op == "aten::mm");
  CHECK_FALSE(records[3].op);
  const auto record = FindRecord(trace.records(), "libtrace_cuda_activity");
  REQUIRE(record);
  CHECK(record->payload.find(
            "\"name\": \"sgemm_128x64\", \"op\": \"aten::mm\", \"node\": \"mm_3\"") !=
        std::string::npos);
}

TEST_CASE("stand-in: threads keep their ops apart") {
  const MemoryTrace trace;
  CudaActivity activity;
  std::vector<std::thread> threads;
  for (const char* op : {"a", "b", "c", "d"}) {
    threads.emplace_back([op] {
      for (int i = 0; i < 500; ++i) {
        const CudaLaunchScope scope(op, nullptr);
        Launch(op, 1, 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  activity.Emit();
  REQUIRE(activity.Records().size() == 2000);
  for (const CudaActivityRecord& record : activity.Records()) CHECK(record.op == record.name);
}

TEST_CASE(
    "stand-in: more than one buffer, a limit that counts, one at a time, nothing after Emit") {
  MemoryTrace trace;
  CudaActivity activity({.max_records = 20'000});
  const CudaActivity second;
  CHECK(second.status().message() == "another CudaActivity is watching");
  for (int i = 0; i < 20'005; ++i) Launch("k", 1, 0);
  activity.Emit();
  Launch("late", 1, 0);
  activity.Emit();
  CHECK(activity.Records().size() == 20'000);
  CHECK(activity.lost_count() == 5);
  CudaActivity next;
  CHECK(next.status().ok());
}

template <class... Arguments>
void Call(const char* name, Arguments... arguments) {
  StandIn<void (*)(Arguments...)>(name)(arguments...);
}

TEST_CASE("stand-in: a launch that is reported after its kernel, a graph of kernels, a peer copy") {
  MemoryTrace trace;
  CudaActivity activity;
  Call("standin_launches_come_late", 1);
  {
    const CudaLaunchScope scope("aten::mm", nullptr);
    Launch("sgemm", 10, 7);
    Call("standin_launch_graph", "first", "second", uint32_t{3});
  }
  Call("standin_launches_come_late", 0);
  {
    const CudaLaunchScope scope("graph", nullptr);
    Call("standin_launch_graph", "third", "fourth", uint32_t{4});
    Call("standin_copy_peer", uint64_t{64}, uint32_t{0}, uint32_t{1});
  }
  activity.Emit();
  const auto records = activity.Records();
  REQUIRE(records.size() == 6);
  for (size_t i = 0; i < 3; ++i) CHECK(records[i].op == "aten::mm");
  for (size_t i = 3; i < 6; ++i) CHECK(records[i].op == "graph");
  CHECK(records[0].graph_id == 0);
  CHECK(records[4].graph_id == 4);
  CHECK(records[4].graph_node_id == 101);
  CHECK(records[5].name == "PtoP");
  CHECK(records[5].source_device == uint32_t{0});
  CHECK(records[5].target_device == uint32_t{1});
  CHECK_FALSE(records[0].source_device);
  const auto record = FindRecord(trace.records(), "libtrace_cuda_activity");
  REQUIRE(record);
  CHECK(record->payload.find("\"source_device\": 0, \"target_device\": 1") != std::string::npos);
  CHECK(record->payload.find("\"graph_id\": 4, \"graph_node_id\": 101") != std::string::npos);
}

TEST_CASE("stand-in: a kernel that still runs has no duration, on the common clock") {
  MemoryTrace trace;
  CudaActivity activity;
  Launch("done", 10, 7);
  Launch("running", 0, 7);
  activity.Emit();
  const auto records = activity.Records();
  REQUIRE(records.size() == 2);
  CHECK(records[0].has_ended);
  CHECK_FALSE(records[1].has_ended);
  const auto record = FindRecord(trace.records(), "libtrace_cuda_activity");
  REQUIRE(record);
  CHECK(record->payload.find("\"duration_ns\": 0") == std::string::npos);
  const auto clocks = activity.clocks();
  REQUIRE(clocks.size() == 2);
  CHECK(clocks[0].cupti_ns <= records[0].start_ns);
  CHECK(records[0].start_ns <= clocks[1].cupti_ns);
  // Both clocks count seconds: what passed between the readings is the same in both.
  const auto cupti_ns = static_cast<int64_t>(clocks[1].cupti_ns - clocks[0].cupti_ns);
  CHECK(std::abs(clocks[1].epoch_ns - clocks[0].epoch_ns - cupti_ns) < 1'000'000'000);
}

TEST_CASE("stand-in: what waits for a kernel, and buffers, have limits that count") {
  const MemoryTrace trace;
  {
    CudaActivity activity({.max_pending_launches = 100});
    Call("standin_launches_come_late", 1);
    const CudaLaunchScope scope("op", nullptr);
    for (int i = 0; i < 100'000; ++i) Call("standin_call");
    Launch("k", 1, 0);
    activity.Emit();
    Call("standin_launches_come_late", 0);
    REQUIRE(activity.Records().size() == 1);
    CHECK(activity.Records()[0].op == "op");
    CHECK(activity.counts().unlabelled_count == 0);
  }
  CudaActivity activity({.max_buffers = 0});
  Launch("k", 1, 0);
  activity.Emit();
  CHECK(activity.Records().empty());
  CHECK(activity.lost_count() == 2);  // the kernel and its API call
}

TEST_CASE("stand-in: many activities are several records, from the place that watched") {
  MemoryTrace trace;
  {
    CudaActivity activity;
    for (int i = 0; i < 20'001; ++i) Launch("k", 1, 0);
  }
  size_t count = 0;
  for (const auto& record : trace.records()) {
    if (!record.IsArtifact("libtrace_cuda_activity")) continue;
    ++count;
    CHECK(record.prefix.find("cuda_test.cc:") != std::string::npos);
  }
  CHECK(count == 2);
}

#ifndef LIBTRACE_TEST_SANITIZER  // whose own locks a forked child may find held
TEST_CASE("stand-in: a forked child of a process whose threads enqueue kernels watches nothing") {
  MemoryTrace trace;
  CudaActivity activity;
  REQUIRE(activity.status().message() == "");
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!is_done) const CudaLaunchScope mm("aten::mm", nullptr);
    });
  }
  int ended_count = 0;
  for (int i = 0; i < 40; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // a child that hangs dies of it
      for (int n = 0; n < 10; ++n) const CudaLaunchScope mm("aten::mm", nullptr);
      activity.Emit();
      _exit(activity.Records().empty() && GetStats().record_count == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) break;
    ++ended_count;
  }
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(ended_count == 40);
}
#endif

TEST_CASE("stand-in: when tracing is off nothing is watched") {
  Stop();
  CudaActivity activity;
  CHECK(activity.status().message() == "tracing is off");
  Launch("k", 1, 0);
  activity.Emit();
  CHECK(activity.Records().empty());
}

TEST_CASE("the CUPTI that the process has loaded is taken", "[.loaded]") {
  const testing::TemporaryDirectory directory;
  const std::string file = directory.string() + "/libcupti.so.2099.1";
  std::filesystem::create_symlink(std::getenv("CUPTI_STAND_IN"), file);
  REQUIRE(std::getenv("LIBTRACE_CUPTI") == nullptr);
  REQUIRE(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr);
  MemoryTrace trace;
  CudaActivity activity;
  REQUIRE(activity.status().message() == "");
  activity.Emit();
  const auto record = FindRecord(trace.records(), "libtrace_cuda_activity");
  REQUIRE(record);
  CHECK(record->payload.find(file) != std::string::npos);
  // A version that is newer than all that were compared says so.
  CHECK(record->payload.find("\"cupti_version\": 990000, \"newest_compared_version\": 130500") !=
        std::string::npos);
}

TEST_CASE("without CUPTI nothing is watched, and it says why", "[.none]") {
  MemoryTrace trace;
  CudaActivity activity;
  CHECK(activity.status().message() == "no CUPTI: /no/such/libcupti.so cannot be opened");
  const CudaLaunchScope scope("aten::mm", nullptr);
  activity.Emit();
  CHECK_FALSE(FindRecord(trace.records(), "libtrace_cuda_activity"));
}

// A library of NVIDIA's, on a machine without its driver: no call of it may be made.
TEST_CASE("without a driver nothing is watched, and it says why", "[.driverless]") {
  if (dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) std::exit(77);  // skipped: it has one
  MemoryTrace trace;
  CudaActivity activity;
  CHECK(activity.status().message() == "no NVIDIA driver: libcuda.so.1 cannot be opened");
  activity.Emit();
  CHECK_FALSE(FindRecord(trace.records(), "libtrace_cuda_activity"));
}

}  // namespace
}  // namespace libtrace
