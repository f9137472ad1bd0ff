// libtrace::cuda against the CUPTI stand-in that LIBTRACE_CUPTI names (cupti_stand_in.cc), or,
// where it names a file that is not there, without CUPTI. No test here touches a GPU.
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "libtrace/cuda/cuda_activity.h"
#include "libtrace/trace.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

using testing::FindRecord;
using testing::MemoryTrace;

// Of any thread: it must not use Catch2's macros.
template <class Function>
Function StandIn(const char* name) {
  void* const library = dlopen(std::getenv("LIBTRACE_CUPTI"), RTLD_LAZY);
  if (library == nullptr) std::abort();
  return reinterpret_cast<Function>(dlsym(library, name));
}

void Launch(const char* name, uint64_t duration_ns, uint32_t stream) {
  StandIn<void (*)(const char*, uint64_t, uint32_t)>("standin_launch")(name, duration_ns, stream);
}
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

TEST_CASE("stand-in: when tracing is off nothing is watched") {
  Stop();
  CudaActivity activity;
  CHECK(activity.status().message() == "tracing is off");
  Launch("k", 1, 0);
  activity.Emit();
  CHECK(activity.Records().empty());
}

TEST_CASE("without CUPTI nothing is watched, and it says why", "[.none]") {
  MemoryTrace trace;
  CudaActivity activity;
  CHECK(activity.status().message() == "no CUPTI: /no/such/libcupti.so cannot be opened");
  const CudaLaunchScope scope("aten::mm", nullptr);
  activity.Emit();
  CHECK_FALSE(FindRecord(trace.records(), "libtrace_cuda_activity"));
}

}  // namespace
}  // namespace libtrace
