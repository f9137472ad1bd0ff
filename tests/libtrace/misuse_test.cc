// What the library is not made for, and survives: handles that end out of turn or on another thread,
// threads that are cancelled, a host that closes all descriptors.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "libtrace/libtrace.h"
#include "libtrace/scope.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"
#include "tests/libtrace/sanitizer.h"

namespace libtrace {
namespace {

using testing::FindRecord;
using testing::MemoryTrace;

libtrace_compile* Begin(const char* function) {
  return libtrace_compile_begin(nullptr, libtrace_new_frame(), 0, function, "m.c", 1, nullptr, 0);
}

TEST_CASE("A compile that ends before an inner one leaves the inner one be", "[c_api]") {
  MemoryTrace trace;
  libtrace_compile* const outer = Begin("outer");
  const CompileId outer_id = CurrentContext().compile_id;
  libtrace_compile* const inner = Begin("inner");
  const CompileId inner_id = CurrentContext().compile_id;
  libtrace_compile_end(outer);
  CHECK(CurrentContext().compile_id == inner_id);
  libtrace_compile_end(inner);
  CHECK(CurrentContext().compile_id.empty());
  // The metrics of the outer compile carry its own id.
  const auto metrics = FindRecord(trace.records(), "\"co_name\": \"outer\"");
  REQUIRE(metrics);
  CHECK(metrics->Has("\"frame_id\": " + std::to_string(*outer_id.frame_id) + ","));
}

TEST_CASE("Stacks that end out of turn leave no dangling frames", "[c_api]") {
  MemoryTrace trace;
  const auto begin = [](const char* function) {
    const libtrace_frame frame{sizeof frame, "m.c", function, 1, nullptr};
    return libtrace_stack_begin(&frame, 1);
  };
  libtrace_stack* const outer = begin("outer");
  libtrace_stack* const inner = begin("inner");
  libtrace_stack_end(outer);
  libtrace_instant(nullptr, "within inner", nullptr);
  libtrace_stack_end(inner);
  libtrace_instant(nullptr, "within none", nullptr);
  int inner_count = 0;
  for (const auto& record : trace.records()) {
    CHECK_FALSE(record.Has("\"outer\""));
    inner_count += record.Has("\"inner\"") ? 1 : 0;
  }
  CHECK(inner_count == 1);
}

TEST_CASE("A compile that another thread ends is written, and the first thread goes on",
          "[c_api]") {
  MemoryTrace trace;
  std::thread([&] {
    [[maybe_unused]] const testing::MayLeak may_leak;  // as libtrace.h says
    libtrace_compile* const compile = Begin("elsewhere");
    std::thread([compile] { libtrace_compile_end(compile); }).join();
    libtrace_instant(nullptr, "later", nullptr);
    libtrace_compile* const next = Begin("next");
    libtrace_compile_end(next);
  }).join();
  const auto metrics = FindRecord(trace.records(), "\"co_name\": \"elsewhere\"");
  REQUIRE(metrics);
  CHECK(metrics->Has("\"frame_id\""));
  CHECK(FindRecord(trace.records(), "\"co_name\": \"next\""));
}

TEST_CASE("A context or stack that another thread ends stays valid for the first one", "[c_api]") {
  MemoryTrace trace;
  std::thread([&] {
    [[maybe_unused]] const testing::MayLeak may_leak;
    libtrace_compile* const compile = Begin("f");
    libtrace_context* const context = libtrace_context_take();
    const libtrace_frame frame{sizeof frame, "m.c", "f", 1, nullptr};
    libtrace_context_enter(context);
    libtrace_stack* const stack = libtrace_stack_begin(&frame, 1);
    std::thread([&] {
      libtrace_context_enter(context);  // entered already
      libtrace_context_leave(context);
      libtrace_context_free(context);
      libtrace_stack_end(stack);
    }).join();
    libtrace_instant(nullptr, "still in it", nullptr);
    libtrace_compile_end(compile);
  }).join();
  CHECK(FindRecord(trace.records(), "\"co_name\": \"f\""));
}

TEST_CASE("A context that is entered twice and freed while entered is left", "[c_api]") {
  libtrace_compile* const compile = Begin("f");
  const CompileId id = CurrentContext().compile_id;
  libtrace_context* const context = libtrace_context_take();
  libtrace_context_enter(context);
  libtrace_context_enter(context);
  libtrace_context_free(context);
  CHECK(CurrentContext().compile_id == id);
  libtrace_compile_end(compile);
  CHECK(CurrentContext().compile_id.empty());
}

TEST_CASE("A thread that is cancelled while it emits ends, and nothing else", "[threads]") {
  const testing::TemporaryDirectory directory;
  Options options;
  options.directory = directory.string();
  REQUIRE(Start(std::move(options)));
  const auto emit = [](void*) -> void* {
    for (;;) {
      Emit("number", [](MetadataWriter& json) { json.Int(1); });
      pthread_testcancel();
    }
  };
  for (int i = 0; i < 200; ++i) {
    pthread_t thread;
    REQUIRE(pthread_create(&thread, nullptr, emit, nullptr) == 0);
    usleep(static_cast<useconds_t>(i * 5));
    REQUIRE(pthread_cancel(thread) == 0);
    void* result = nullptr;
    REQUIRE(pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
  }
  Stop();
  for (const auto& log : testing::LogsIn(directory.path()))
    CHECK(testing::ParseLog(testing::ReadText(log)).size() > 200);
}

TEST_CASE("A host that closes all descriptors gets no record into its own files", "[file_sink]") {
  const testing::TemporaryDirectory directory;
  Options options;
  options.directory = directory.string() + "/trace";
  options.on_error = [](LossKind, const std::string&) {};
  REQUIRE(Start(std::move(options)));
  const auto emit = [] { Emit("number", [](MetadataWriter& json) { json.Int(1); }); };
  emit();
  // As a daemon would, but for those of the test.
  for (int fd = 10; fd < 1024; ++fd) close(fd);
  int fd = -1;
  std::vector<int> own;
  const std::string path = directory.string() + "/own";
  do {
    fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    own.push_back(fd);
  } while (fd < 20);
  emit();  // lost, and counted
  emit();  // in another file
  CHECK(GetStats().lost_by_kind[static_cast<size_t>(LossKind::kWriteFailed)] == 1);
  CHECK(GetStats().file_count == 2);
  Stop();
  for (const int one : own) close(one);
  CHECK(testing::ReadText(path).empty());
  CHECK(testing::LogsIn(directory.path() / "trace").size() == 2);
}

}  // namespace
}  // namespace libtrace
