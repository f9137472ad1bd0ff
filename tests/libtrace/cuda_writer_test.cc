// The thread of a CudaActivity that writes every interval, against the stand-in for CUPTI that
// LIBTRACE_CUPTI names.
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "libtrace/cuda/cuda_activity.h"
#include "libtrace/trace.h"
#include "tests/catch2.h"
#include "tests/libtrace/cuda_stand_in.h"
#include "tests/libtrace/log_text.h"
#include "tests/libtrace/sanitizer.h"

namespace libtrace {
namespace {

using testing::Activities;
using testing::Becomes;
using testing::CountOf;
using testing::Launch;
using testing::MemoryTrace;
using testing::StandIn;

constexpr std::chrono::milliseconds kOften{10};

TEST_CASE("stand-in: what is written every interval is written once, and forgotten") {
  MemoryTrace trace;
  CudaActivity activity({.write_interval = kOften});
  REQUIRE(activity.status().message() == "");
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) {
      const CudaLaunchScope scope("aten::mm", nullptr);
      Launch("labelled", 1, 0);
    }
    Launch("nobody's", 1, 0);
    const auto whole = static_cast<size_t>(round + 1);
    CHECK(Becomes([&] { return CountOf(Activities(trace), "\"labelled\"") == 100 * whole; }));
    CHECK(Becomes([&] { return CountOf(Activities(trace), "nobody's") == whole; }));
    CHECK(activity.Records().empty());
  }
  Launch("last", 1, 0);
  activity.Emit();
  const std::string text = Activities(trace);
  CHECK(CountOf(text, "\"labelled\"") == 300);
  CHECK(CountOf(text, "\"op\": \"aten::mm\"") == 300);
  CHECK(CountOf(text, "nobody's") == 3);
  CHECK(CountOf(text, "\"last\"") == 1);
  CHECK(activity.counts().lost_count == 0);
}

TEST_CASE("stand-in: of what waits to be written the newest are kept") {
  MemoryTrace trace;
  CudaActivity activity({.max_records = 10, .write_interval = std::chrono::hours(1)});
  for (int i = 0; i < 25; ++i) {
    const std::string op = std::to_string(i);
    const CudaLaunchScope scope(op, nullptr);
    Launch("k", 1, 0);
  }
  activity.Emit();
  const auto records = activity.Records();
  REQUIRE(records.size() == 10);
  CHECK(records.front().op == "15");
  CHECK(records.back().op == "24");
  CHECK(activity.lost_count() == 15);
}

// 8 bytes of name a kernel, so that what is kept is a little less than half of the limit.
TEST_CASE("stand-in: a writer notices that another client ended the records") {
  MemoryTrace trace;
  CudaActivity activity({.write_interval = kOften});
  Launch("ours", 1, 0);
  for (int32_t kind = 1; kind < 64; ++kind) StandIn<int (*)(int32_t)>("cuptiActivityDisable")(kind);
  CHECK(Becomes([] {
    const CudaLaunchScope scope("aten::mm", nullptr);
    Launch("nobody's", 1, 0);
    return !detail::is_watching_cuda;
  }));
  activity.Emit();
  REQUIRE(activity.clients().end);
  CHECK(activity.clients().end->reason == "not_recorded");
  CHECK(CountOf(Activities(trace), "ended_early") == 1);
}

#ifndef LIBTRACE_TEST_SANITIZER
TEST_CASE("stand-in: a process that is killed has written all but the last interval") {
  const testing::TemporaryDirectory directory;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    Options options = Options::FromEnvironment();
    options.directory = directory.string();
    if (!Start(options)) _exit(1);
    const CudaActivity activity({.write_interval = kOften});
    {
      const CudaLaunchScope scope("aten::mm", nullptr);
      Launch("sgemm", 1, 0);
    }
    Becomes([&] { return GetStats().record_count > 1; });
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGKILL);
  const auto logs = testing::LogsIn(directory.path());
  REQUIRE(logs.size() == 1);
  CHECK(testing::ReadText(logs[0]).find("\"sgemm\", \"op\": \"aten::mm\"") != std::string::npos);
}

TEST_CASE("stand-in: a forked child does not wait for the writer of its parent") {
  MemoryTrace trace;
  auto activity = std::make_unique<CudaActivity>(CudaActivityOptions{.write_interval = kOften});
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // a child that hangs dies of it
      activity.reset();
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
}
#endif

}  // namespace
}  // namespace libtrace
