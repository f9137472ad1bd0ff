// libtrace::cuda beside another client of CUPTI, against the stand-in that LIBTRACE_CUPTI names. The
// other client does what Kineto's CuptiActivityApi.cpp does: it registers its callbacks and enables
// kinds at each start, pushes its ids as CUSTOM0, disables its kinds at the end.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "cuda/cupti.h"
#include "libtrace/cuda/cuda_activity.h"
#include "tests/catch2.h"
#include "tests/libtrace/cuda_stand_in.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

using testing::FindRecord;
using testing::MemoryTrace;
using testing::NumberedCall;
using testing::StandIn;

template <class... Arguments>
int CuptiCall(const char* name, Arguments... arguments) {
  return StandIn<int (*)(Arguments...)>(name)(arguments...);
}
void FailEnable(int32_t kind, int result) {
  StandIn<void (*)(int32_t, int)>("standin_fail_enable")(kind, result);
}
void Kernel(const char* name) { testing::Launch(name, 10, 7); }
bool IsEnabledKind(int32_t kind) { return CuptiCall("standin_is_enabled", kind) != 0; }

// Its buffers are not from malloc: freeing one ends the process.
class OtherClient {
 public:
  static constexpr int32_t kKinds[] = {cupti::kRuntime, cupti::kMemcpy, cupti::kExternalCorrelation,
                                       cupti::kConcurrentKernel};

  void Subscribe() {
    REQUIRE(CuptiCall("cuptiSubscribe", &subscriber_, cupti::CallbackFunction{},
                      static_cast<void*>(nullptr)) == 0);
  }
  void Unsubscribe() { CHECK(CuptiCall("cuptiUnsubscribe", subscriber_) == 0); }
  void Start() {
    kernels.clear();
    CuptiCall("cuptiActivityRegisterCallbacks", cupti::BufferRequested{Requested},
              cupti::BufferCompleted{Completed});
    for (const int32_t kind : kKinds) CuptiCall("cuptiActivityEnable", kind);
  }
  void Flush() { CuptiCall("cuptiActivityFlushAll", uint32_t{1}); }
  void Disable() {
    for (const int32_t kind : kKinds) CuptiCall("cuptiActivityDisable", kind);
  }
  void Push(uint64_t id, int kind) {
    CuptiCall("cuptiActivityPushExternalCorrelationId", kind, id);
  }
  void Pop(int kind) {
    CuptiCall("cuptiActivityPopExternalCorrelationId", kind, static_cast<uint64_t*>(nullptr));
  }

  static inline std::vector<std::string> kernels;
  static inline int unknown_buffer_count = 0;

 private:
  static constexpr size_t kSize = 4096;
  static void Requested(uint8_t** buffer, size_t* size_bytes, size_t* max_records) {
    *buffer = space_[next_++ % 8];
    *size_bytes = kSize;
    *max_records = 0;
  }
  static void Completed(void*, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
    if (buffer < space_[0] || buffer >= space_[8]) {
      ++unknown_buffer_count;
      return;
    }
    cupti::Record* record = nullptr;
    while (StandIn<int (*)(uint8_t*, size_t, cupti::Record**)>("cuptiActivityGetNextRecord")(
               buffer, valid_bytes, &record) == 0) {
      if (record->kind == cupti::kConcurrentKernel)
        kernels.emplace_back(reinterpret_cast<cupti::KernelRecord*>(record)->name);
    }
  }

  void* subscriber_ = nullptr;
  alignas(8) static inline uint8_t space_[9][kSize];
  static inline size_t next_ = 0;
};

const std::string kOtherClient = "CUPTI has another client, and serves one: ";

bool Begins(const std::string& text, const std::string& with) {
  return text.compare(0, with.size(), with) == 0;
}

TEST_CASE("two clients: the second is refused with the reason, and nothing is changed") {
  const MemoryTrace trace;
  OtherClient kineto;
  kineto.Subscribe();
  kineto.Start();
  Kernel("before");
  CudaActivity activity;
  CHECK(Begins(activity.status().message(), kOtherClient));
  CHECK(activity.status().message().find("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED") !=
        std::string::npos);
  CHECK_FALSE(IsEnabledKind(cupti::kDriver));
  {
    const CudaLaunchScope scope("aten::mm", nullptr);
    Kernel("during");
  }
  activity.Emit();
  Kernel("after");
  kineto.Flush();
  CHECK(OtherClient::kernels == std::vector<std::string>{"before", "during", "after"});
  CHECK(IsEnabledKind(cupti::kConcurrentKernel));
  CHECK(activity.Records().empty());
  kineto.Disable();
  kineto.Unsubscribe();

  CudaActivity later;  // when the other one has gone
  CHECK(later.status().message() == "");
}

TEST_CASE("two clients: the subscription is free for a profiler that starts later") {
  const MemoryTrace trace;
  const CudaActivity activity;
  REQUIRE(activity.status().ok());
  OtherClient kineto;
  kineto.Subscribe();
  kineto.Unsubscribe();
}

TEST_CASE("two clients: a profiler that takes the buffers is noticed, and loses nothing by Emit") {
  MemoryTrace trace;
  CudaActivity activity;
  REQUIRE(activity.status().message() == "");
  Kernel("ours");
  OtherClient kineto;
  kineto.Start();
  Kernel("in a buffer of ours that the other one gets");
  kineto.Flush();
  CHECK(OtherClient::unknown_buffer_count == 1);
  Kernel("the other one's");
  activity.Emit();
  const CudaActivityClients clients = activity.clients();
  REQUIRE(clients.end);
  CHECK(clients.end->reason == "buffers_taken");
  CHECK(clients.end->noticed_ns > clients.end->last_call_ns);
  CHECK(clients.left_enabled_count == 7);
  for (const int32_t kind : OtherClient::kKinds) CHECK(IsEnabledKind(kind));
  Kernel("after Emit");
  kineto.Flush();
  CHECK(OtherClient::kernels == std::vector<std::string>{"the other one's", "after Emit"});
  const auto record = FindRecord(trace.records(), "libtrace_cuda_activity");
  REQUIRE(record);
  CHECK(record->payload.find("\"left_enabled_count\": 7, \"ended_early\": {\"reason\": "
                             "\"buffers_taken\"") != std::string::npos);
  kineto.Disable();
  for (const int32_t kind : {cupti::kDriver, cupti::kPeerMemcpy, cupti::kMemset})
    CuptiCall("cuptiActivityDisable", int32_t{kind});
}

TEST_CASE("two clients: a stop by the other one is a loss with times") {
  MemoryTrace trace;
  CudaActivity activity;
  REQUIRE(activity.status().message() == "");
  Kernel("ours");
  CuptiCall("cuptiActivityFlushAll", uint32_t{0});  // as CUPTI does by itself
  uint64_t stopped_ns = 0;
  CuptiCall("cuptiGetTimestamp", &stopped_ns);
  CuptiCall("cuptiActivityDisable", int32_t{cupti::kDriver});
  OtherClient().Disable();
  Kernel("nobody's");
  activity.Emit();
  REQUIRE(activity.Records().size() == 1);
  const CudaActivityClients clients = activity.clients();
  REQUIRE(clients.end);
  CHECK(clients.end->reason == "not_recorded");
  CHECK(clients.end->last_call_ns >= activity.Records()[0].start_ns);
  CHECK(clients.end->last_call_ns <= stopped_ns);
  CHECK(clients.end->noticed_ns >= stopped_ns);
  for (const int32_t kind : {cupti::kPeerMemcpy, cupti::kMemset})
    CuptiCall("cuptiActivityDisable", int32_t{kind});
}

TEST_CASE("two clients: without another one nothing is said, and all kinds are disabled") {
  MemoryTrace trace;
  CudaActivity activity;
  Kernel("ours");
  activity.Emit();
  CHECK_FALSE(activity.clients().end);
  CHECK(activity.clients().foreign_buffer_count == 0);
  CHECK(activity.counts().foreign_id_count == 0);
  for (int32_t kind = 0; kind < 64; ++kind) CHECK_FALSE(IsEnabledKind(kind));
  const auto record = FindRecord(trace.records(), "libtrace_cuda_activity");
  REQUIRE(record);
  CHECK(record->payload.find("ended_early") == std::string::npos);
  CHECK(record->payload.find("foreign") == std::string::npos);
}

TEST_CASE("two clients: ids of the other one are never taken for ours") {
  const MemoryTrace trace;
  OtherClient kineto;
  CudaActivity first;
  {
    const CudaLaunchScope scope("aten::mm", nullptr);  // label 1
    Kernel("ours");
  }
  for (const int kind : {3, 4, 5}) {  // CUSTOM0 and CUSTOM1 as Kineto does, CUSTOM2 as none should
    kineto.Push(1, kind);
    Kernel("not ours");
    kineto.Pop(kind);
  }
  kineto.Push(1, 3);
  {
    const CudaLaunchScope scope("aten::relu", nullptr);
    Kernel("both");
  }
  kineto.Pop(3);
  // A scope that is open while one object ends and the next begins.
  std::optional<CudaLaunchScope> stale(std::in_place, "aten::mm", nullptr);
  first.Emit();
  CudaActivity second;
  {
    const CudaLaunchScope scope("aten::add", nullptr);  // label 1 again
    Kernel("the second's");
  }
  Kernel("stale");
  stale.reset();
  second.Emit();

  const auto records = first.Records();
  REQUIRE(records.size() == 5);
  CHECK(records[0].op == "aten::mm");
  for (size_t i = 1; i < 4; ++i) CHECK_FALSE(records[i].op);
  CHECK(records[4].op == "aten::relu");
  CHECK(first.counts().foreign_id_count == 1);
  const auto later = second.Records();
  REQUIRE(later.size() == 2);
  CHECK(later[0].op == "aten::add");
  CHECK_FALSE(later[1].op);
  CHECK(second.counts().foreign_id_count == 1);
}

TEST_CASE("two clients: a buffer of the other one is neither read nor freed") {
  const MemoryTrace trace;
  OtherClient kineto;
  kineto.Start();
  Kernel("the other one's");  // in its buffer, which CUPTI has
  kineto.Disable();
  CudaActivity activity;
  REQUIRE(activity.status().message() == "");
  Kernel("ours");
  activity.Emit();
  // Until that buffer is full or flushed, our records are in it too: CUPTI has one at a time.
  CHECK(activity.clients().foreign_buffer_count == 1);
  CHECK(activity.Records().size() == 1);
}

TEST_CASE("two clients: callbacks are registered at every start") {
  const MemoryTrace trace;
  { const CudaActivity first; }
  OtherClient kineto;
  kineto.Start();
  kineto.Flush();
  kineto.Disable();
  CudaActivity second;
  Kernel("ours");
  second.Emit();
  CHECK(second.Records().size() == 1);
  CHECK_FALSE(second.clients().end);
}

TEST_CASE("two clients: an error of a kind has its name, and the kinds before are disabled again") {
  const MemoryTrace trace;
  FailEnable(cupti::kMemset, 9);
  {
    const CudaActivity activity;
    CHECK(activity.status().message() ==
          "CUPTI sees no GPU that it can watch: CUPTI_ACTIVITY_KIND_MEMSET: "
          "CUPTI_ERROR_NOT_COMPATIBLE");
  }
  for (int32_t kind = 0; kind < 64; ++kind) CHECK_FALSE(IsEnabledKind(kind));
  FailEnable(cupti::kMemset, 0);
  const CudaActivity next;
  CHECK(next.status().ok());
}

TEST_CASE("two clients: kinds that another one enabled, as CUDA 13.5 tells them", "[.kinds]") {
  const MemoryTrace trace;
  OtherClient kineto;
  kineto.Start();
  const CudaActivity activity;
  CHECK(activity.status().message() == kOtherClient + "4 kinds of activities are enabled already");
  for (const int32_t kind : OtherClient::kKinds) CHECK(IsEnabledKind(kind));
  kineto.Disable();
  CudaActivity later;
  CHECK(later.status().message() == "");
}

constexpr uint32_t kLastError = 10;  // cudaGetLastError, which is left out
TEST_CASE("two clients: one that enables a kind beside ours has all of its calls", "[.kinds]") {
  const MemoryTrace trace;
  CudaActivity activity;
  REQUIRE(activity.status().ok());
  CHECK(NumberedCall(cupti::kRuntime, kLastError) == 0);
  OtherClient kineto;
  kineto.Start();
  CHECK(NumberedCall(cupti::kRuntime, kLastError) == 1);
  activity.Emit();
  CHECK(activity.clients().end);
  CHECK(NumberedCall(cupti::kRuntime, kLastError) == 1);
  kineto.Disable();
  for (const int32_t kind : {cupti::kDriver, cupti::kPeerMemcpy, cupti::kMemset})
    CuptiCall("cuptiActivityDisable", int32_t{kind});
}

void* LoadAs(const std::string& file, const char* stand_in) {
  std::filesystem::create_symlink(std::getenv(stand_in), file);
  return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
}

TEST_CASE("one CUPTI: the one that is part of a library of another name", "[.part_of_another]") {
  const testing::TemporaryDirectory directory;
  const std::string file = directory.string() + "/libacme.so";
  REQUIRE(LoadAs(file, "CUPTI_STAND_IN") != nullptr);
  MemoryTrace trace;
  CudaActivity activity;
  REQUIRE(activity.status().message() == "");
  activity.Emit();
  CHECK(FindRecord(trace.records(), "libtrace_cuda_activity")->payload.find(file) !=
        std::string::npos);
}

TEST_CASE("one CUPTI: a process with two is refused, and both are named", "[.two]") {
  const testing::TemporaryDirectory directory;
  const std::string first = directory.string() + "/libacme.so";
  const std::string second = directory.string() + "/libcupti.so.12";
  REQUIRE(LoadAs(first, "CUPTI_STAND_IN") != nullptr);
  REQUIRE(LoadAs(second, "OTHER_CUPTI_STAND_IN") != nullptr);
  const MemoryTrace trace;
  const CudaActivity activity;
  CHECK(activity.status().message() == "the process has several CUPTIs: " + first + ", " + second +
                                           "; LIBTRACE_CUPTI=<file> chooses one of them");
}

TEST_CASE("one CUPTI: LIBTRACE_CUPTI chooses among those that are loaded", "[.one_of_two]") {
  const testing::TemporaryDirectory directory;
  REQUIRE(LoadAs(directory.string() + "/libacme.so", "CUPTI_STAND_IN") != nullptr);
  REQUIRE(LoadAs(directory.string() + "/libcupti.so.12", "OTHER_CUPTI_STAND_IN") != nullptr);
  setenv("LIBTRACE_CUPTI", std::getenv("OTHER_CUPTI_STAND_IN"), 1);
  MemoryTrace trace;
  CudaActivity activity;
  REQUIRE(activity.status().message() == "");
  activity.Emit();
  CHECK(FindRecord(trace.records(), "libtrace_cuda_activity")->payload.find("/libcupti.so.12") !=
        std::string::npos);
}

TEST_CASE("one CUPTI: LIBTRACE_CUPTI names another than is loaded", "[.another_than_loaded]") {
  const testing::TemporaryDirectory directory;
  const std::string file = directory.string() + "/libacme.so";
  REQUIRE(LoadAs(file, "CUPTI_STAND_IN") != nullptr);
  const std::string other = std::getenv("OTHER_CUPTI_STAND_IN");
  setenv("LIBTRACE_CUPTI", other.c_str(), 1);
  const MemoryTrace trace;
  const CudaActivity activity;
  CHECK(activity.status().message() == "LIBTRACE_CUPTI is " + other +
                                           ", but the process has loaded " + file +
                                           "; two CUPTIs in a process disturb each other");
  CHECK(dlopen(other.c_str(), RTLD_NOW | RTLD_NOLOAD) == nullptr);
}

}  // namespace
}  // namespace libtrace
