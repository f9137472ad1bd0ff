// What a CudaActivity leaves out: beyond its limit in bytes, of requests that are not sampled, calls that
// start nothing. Against the stand-in for CUPTI that LIBTRACE_CUPTI names.
#include <chrono>
#include <string>
#include <vector>

#include "cuda/cupti.h"
#include "libtrace/cuda/cuda_activity.h"
#include "libtrace/traceparent.h"
#include "tests/catch2.h"
#include "tests/libtrace/cuda_stand_in.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

using testing::Activities;
using testing::Becomes;
using testing::CountOf;
using testing::Launch;
using testing::MemoryTrace;
using testing::NumberedCall;
using testing::StandIn;

constexpr std::chrono::milliseconds kSoon{10};

TEST_CASE("stand-in: what is kept in memory has a limit in bytes, names too") {
  MemoryTrace trace;
  constexpr uint64_t kLimit = 256 << 10;
  CudaActivity activity({.write_interval = std::chrono::hours(1), .max_bytes = kLimit});
  std::vector<std::string> names;  // as CUPTI does, the stand-in hands out pointers to them
  for (int i = 0; i < 5000; ++i) names.push_back("kernel_" + std::to_string(i));
  for (const std::string& name : names) {
    const CudaLaunchScope scope("op of " + name, nullptr);
    Launch(name.c_str(), 1, 0);
  }
  activity.Emit();
  const auto records = activity.Records();
  REQUIRE(!records.empty());
  CHECK(records.back().name == "kernel_4999");
  CHECK(records.size() + activity.lost_count() == 5000);
  // Each activity takes 72 bytes, and its name is stored twice.
  CHECK(records.size() <= kLimit / 2 / 200);
  CHECK(records.size() >= kLimit / 2 / 400);
  CHECK(activity.counts().unlabelled_count > 0);  // names of ops have a quarter of it
  CHECK(activity.counts().unlabelled_count < 5000);
}

TEST_CASE("stand-in: names of kernels that are gone make room for new ones") {
  MemoryTrace trace;
  CudaActivity activity({.write_interval = kSoon, .max_bytes = 64 << 10});
  for (int i = 0; i < 20; ++i) {
    const std::string name =
        "a_kernel_of_a_long_name" + std::string(1000, static_cast<char>('a' + i));
    for (int call = 0; call < 2; ++call) {
      const CudaLaunchScope scope("aten::mm", nullptr);
      Launch(name.c_str(), 1, 0);
    }
    CHECK(Becomes([&] { return CountOf(Activities(trace), name) == 2; }));
  }
  activity.Emit();
  CHECK(activity.lost_count() == 0);
}

TEST_CASE("stand-in: without an interval the first are kept within the bytes") {
  MemoryTrace trace;
  CudaActivity activity({.max_bytes = 64 << 10});
  for (int i = 0; i < 2000; ++i) Launch(i == 0 ? "first" : "k", 1, 0);
  activity.Emit();
  REQUIRE(!activity.Records().empty());
  CHECK(activity.Records().front().name == "first");
  CHECK(activity.Records().size() + activity.lost_count() == 2000);
  CHECK(activity.Records().size() < 500);
}

// Each request launches three kernels: one of an op, one of an op within, one of nobody.
void Request(const std::string& traceparent, const char* name) {
  const TraceparentScope request(traceparent);
  {
    const CudaLaunchScope outer("aten::linear", nullptr);
    Launch(name, 1, 0);
    const CudaLaunchScope inner("aten::mm", nullptr);
    Launch(name, 1, 0);
  }
  Launch("nobody's", 1, 0);
}

void CheckSampled(std::chrono::milliseconds interval, int is_late) {
  const std::string trace_id = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-";
  MemoryTrace trace;
  CudaActivity activity({.write_interval = interval, .only_sampled_requests = true});
  StandIn<void (*)(int)>("standin_launches_come_late")(is_late);
  for (int i = 0; i < 10; ++i)
    Request(trace_id + (i == 3 ? "01" : "00"), i == 3 ? "sampled" : "not");
  Request("", "without");
  StandIn<void (*)(int)>("standin_launches_come_late")(0);
  activity.Emit();
  const std::string text = Activities(trace);
  CHECK(CountOf(text, "\"sampled\"") == 2);
  CHECK(CountOf(text, "\"op\": ") == 2);
  CHECK(CountOf(text, "\"kind\": ") == 2);
  CHECK(activity.counts().unsampled_count == 31);
  CHECK(activity.counts().lost_count == 0);
}

TEST_CASE("stand-in: what sampled requests launched is kept alone, the rest is counted") {
  for (const int is_late : {0, 1}) {
    CheckSampled(std::chrono::milliseconds(0), is_late);
    CheckSampled(kSoon, is_late);
  }
}

constexpr uint32_t kCudaGetLastError = 10, kCudaLaunchKernel = 211, kCuStreamQuery = 125,
                   kCuDriverGetVersion = 2, kLaterCall = 9999;

TEST_CASE("calls that start nothing leave no record, where CUPTI can leave them out", "[.kinds]") {
  const MemoryTrace trace;
  {
    CudaActivity activity({.max_pending_launches = 4});
    REQUIRE(activity.status().message() == "");
    CHECK(NumberedCall(cupti::kRuntime, kCudaGetLastError) == 0);
    CHECK(NumberedCall(cupti::kDriver, kCuStreamQuery) == 0);
    CHECK(NumberedCall(cupti::kRuntime, kCudaLaunchKernel) == 1);
    CHECK(NumberedCall(cupti::kDriver, kCuDriverGetVersion) == 1);
    CHECK(NumberedCall(cupti::kRuntime, kLaterCall) == 1);
    StandIn<void (*)(int)>("standin_launches_come_late")(1);
    {
      const CudaLaunchScope scope("aten::mm", nullptr);
      for (int i = 0; i < 100; ++i) NumberedCall(cupti::kRuntime, kCudaGetLastError);
      Launch("k", 10, 7);
    }
    StandIn<void (*)(int)>("standin_launches_come_late")(0);
    activity.Emit();
    CHECK_FALSE(activity.clients().end);
    REQUIRE(activity.Records().size() == 1);
    CHECK(activity.Records()[0].op == "aten::mm");
    CHECK(activity.counts().unlabelled_count == 0);
  }
  // A client that comes later gets the calls that it asks for.
  StandIn<int (*)(int32_t)>("cuptiActivityEnable")(cupti::kRuntime);
  CHECK(NumberedCall(cupti::kRuntime, kCudaGetLastError) == 1);
  StandIn<int (*)(int32_t)>("cuptiActivityDisable")(cupti::kRuntime);
}

}  // namespace
}  // namespace libtrace
