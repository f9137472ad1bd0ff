// The host must survive whatever happens to its trace. Each case runs in a child process, so that a
// crash or a hang is a failed test and not the end of the tests.
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "libtrace/sink.h"
#include "libtrace/trace.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"
#include "tests/libtrace/sanitizer.h"

// Read by ThreadSanitizer, which refuses to go on after fork() otherwise; forking while threads run
// is what is tested here.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace libtrace {
namespace {

using testing::FindRecord;
using testing::LoggedRecord;
using testing::LogsIn;
using testing::ParseLog;
using testing::ReadText;
using testing::TemporaryDirectory;

void EmitNumber(int number, size_t payload_size = 100) {
  Emit(
      "number", [&](MetadataWriter& json) { json.Int(number); },
      [&](Payload& payload) { payload.text().assign(payload_size, 'p'); });
}

Options InDirectory(const std::filesystem::path& directory) {
  Options options;
  options.directory = directory.string();
  return options;
}

uint64_t Lost(LossKind kind) { return GetStats().lost_by_kind[static_cast<size_t>(kind)]; }

// Exit status of a child that runs `body`; -signal if it was killed; its stderr goes to `errors`.
int InChild(const std::function<int()>& body, std::string* errors = nullptr) {
  int pipe_fds[2];
  REQUIRE(pipe(pipe_fds) == 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    dup2(pipe_fds[1], STDERR_FILENO);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    _exit(body());
  }
  close(pipe_fds[1]);
  char buffer[4096];
  for (ssize_t n = 0; (n = read(pipe_fds[0], buffer, sizeof buffer)) > 0;) {
    if (errors != nullptr) errors->append(buffer, static_cast<size_t>(n));
  }
  close(pipe_fds[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::vector<LoggedRecord> OnlyLog(const std::filesystem::path& directory) {
  const auto logs = LogsIn(directory);
  REQUIRE(logs.size() == 1);
  return ParseLog(ReadText(logs[0]));
}

TEST_CASE("A file size limit loses records, tells once, and the file ends with a whole record",
          "[fault]") {
  const TemporaryDirectory directory;
  std::string errors;
  const int status = InChild(
      [&] {
        rlimit limit{10'000, RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &limit);
        Start(InDirectory(directory.path()));
        for (int i = 0; i < 100; ++i) EmitNumber(i);
        if (Lost(LossKind::kWriteFailed) == 0) return 1;
        limit.rlim_cur = RLIM_INFINITY;  // as if somebody had made room
        setrlimit(RLIMIT_FSIZE, &limit);
        EmitNumber(1000);
        Stop();
        return 0;
      },
      &errors);
  CHECK(status == 0);
  CHECK(std::count(errors.begin(), errors.end(), '\n') == 1);
  CHECK(errors.find("File too large") != std::string::npos);
  const std::vector<LoggedRecord> records = OnlyLog(directory.path());
  CHECK(FindRecord(records, "\"number\": 1000"));
  const auto loss = FindRecord(records, "libtrace_loss");
  REQUIRE(loss);
  CHECK(loss->payload.find("\"kind\": \"write_failed\"") != std::string::npos);
}

TEST_CASE("A record of many parts that does not fit is cut off again", "[fault]") {
  const TemporaryDirectory directory;
  std::string errors;
  const int status = InChild(
      [&] {
        rlimit limit{12'000'000, RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &limit);
        Start(InDirectory(directory.path()));
        EmitNumber(1);
        EmitNumber(2, 20'000'000);
        EmitNumber(3, 9'000'000);
        Stop();
        return Lost(LossKind::kWriteFailed) == 1 ? 0 : 1;
      },
      &errors);
  CHECK(status == 0);
  const std::vector<LoggedRecord> records = OnlyLog(directory.path());
  CHECK(FindRecord(records, "\"number\": 1"));
  CHECK_FALSE(FindRecord(records, "\"number\": 2"));
  CHECK(FindRecord(records, "\"number\": 3")->payload.size() == 9'000'000);
  CHECK(FindRecord(records, "libtrace_loss"));
}

TEST_CASE("A full disk loses records and not the program", "[fault]") {
  const TemporaryDirectory directory;
  if (mount("tmpfs", directory.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    WARN("no right to mount a small tmpfs; the file size limit above is the same path");
    return;
  }
  std::string errors;
  const int status = InChild(
      [&] {
        Start(InDirectory(directory.path()));
        for (int i = 0; i < 50; ++i) EmitNumber(i, 5000);
        return Lost(LossKind::kWriteFailed) > 0 && GetStats().record_count > 5 ? 0 : 1;
      },
      &errors);
  const auto logs = LogsIn(directory.path());
  const std::string text = logs.empty() ? "" : ReadText(logs[0]);
  umount2(directory.path().c_str(), MNT_DETACH);
  CHECK(status == 0);
  CHECK(errors.find("No space left on device") != std::string::npos);
  CHECK(ParseLog(text).size() > 5);  // whole records only
}

TEST_CASE("A directory that cannot be made or written costs the trace only", "[fault]") {
  const TemporaryDirectory directory;
  const std::string file = directory.string() + "/file";
  close(open(file.c_str(), O_CREAT | O_WRONLY, 0600));
  for (const std::string& bad : {file + "/trace", std::string("/proc/none/trace"), file}) {
    std::string errors;
    const int status = InChild(
        [&] {
          Start(InDirectory(bad));
          for (int i = 0; i < 1000; ++i) EmitNumber(i);
          const bool is_counted = Lost(LossKind::kOpenFailed) == 1000;
          Stop();
          return is_counted ? 0 : 1;
        },
        &errors);
    INFO(bad << ": " << errors);
    CHECK(status == 0);
    CHECK(std::count(errors.begin(), errors.end(), '\n') == 1);
  }
}

TEST_CASE("A directory that comes into being later is used from then on", "[fault]") {
  const TemporaryDirectory directory;
  const std::string file = directory.string() + "/x";
  close(open(file.c_str(), O_CREAT | O_WRONLY, 0600));
  Options options = InDirectory(file);
  options.on_error = [](LossKind, const std::string&) {};
  REQUIRE(Start(std::move(options)));
  EmitNumber(1);
  unlink(file.c_str());
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // it is tried once a second
  EmitNumber(2);
  Stop();
  const std::vector<LoggedRecord> records = OnlyLog(file);
  CHECK(FindRecord(records, "\"number\": 2"));
  CHECK(FindRecord(records, "libtrace_loss")->payload.find("open_failed") != std::string::npos);
}

// Without the last record: the kernel may stop a write at a page when it kills the process.
std::string WithoutLastRecord(const std::string& text) {
  const size_t last = text.rfind("\nV");
  return text.substr(0, last == std::string::npos ? 0 : last + 1);
}

TEST_CASE("A process killed while it emits leaves whole records, but for the last", "[fault]") {
  for (int round = 0; round < 5; ++round) {
    const TemporaryDirectory directory;
    const pid_t child = fork();
    if (child == 0) {
      Start(InDirectory(directory.path()));
      std::thread other([] {
        for (int i = 0;; ++i) EmitNumber(i, 3000);
      });
      for (int i = 0;; ++i) EmitNumber(i, 200);
    }
    const auto size_bytes = [&]() -> uint64_t {
      const auto logs = LogsIn(directory.path());
      return logs.empty() ? 0 : std::filesystem::file_size(logs[0]);
    };
    while (size_bytes() < 500'000 + 100'000 * static_cast<uint64_t>(round)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    const auto logs = LogsIn(directory.path());
    REQUIRE(logs.size() == 1);
    CHECK(ParseLog(WithoutLastRecord(ReadText(logs[0]))).size() > 10);
  }
}

TEST_CASE("A forked child writes a file of its own that stands alone", "[fork]") {
  const TemporaryDirectory directory;
  Options options = InDirectory(directory.path());
  options.rank = 2;
  REQUIRE(Start(std::move(options)));
  EmitNumber(1);
  const std::string parent_path = LogPath();
  CHECK(InChild([] {
          EmitNumber(2);
          return LogPath().empty() ? 1 : 0;
        }) == 0);
  EmitNumber(3);
  Stop();
  const auto logs = LogsIn(directory.path());
  REQUIRE(logs.size() == 2);
  for (const auto& log : logs) {
    const std::vector<LoggedRecord> records = ParseLog(ReadText(log));  // interned ids per file
    const bool is_parent = log == parent_path;
    CHECK(records.at(1).IsArtifact("libtrace_version"));
    CHECK(FindRecord(records, "\"number\": 1").has_value() == is_parent);
    CHECK(FindRecord(records, "\"number\": 2").has_value() == !is_parent);
    CHECK(FindRecord(records, "\"number\": 3").has_value() == is_parent);
    for (const LoggedRecord& record : records) CHECK(record.pid() == records[0].pid());
    CHECK(log.filename().native().find("rank_2_") != std::string::npos);
  }
}

TEST_CASE("A child that emits nothing leaves no file and keeps none open", "[fork]") {
  const TemporaryDirectory directory;
  REQUIRE(Start(InDirectory(directory.path())));
  EmitNumber(1);
  const std::string path = LogPath();
  CHECK(InChild([&] {
          for (int fd = 3; fd < 1024; ++fd) {
            char target[4096] = {};
            const std::string link = "/proc/self/fd/" + std::to_string(fd);
            if (readlink(link.c_str(), target, sizeof target - 1) > 0 && path == target) return 1;
          }
          return 0;
        }) == 0);
  Stop();
  CHECK(LogsIn(directory.path()).size() == 1);
}

TEST_CASE("exit() while threads emit ends the program and writes the queue", "[fault]") {
  for (const AsyncMode mode : {AsyncMode::kOff, AsyncMode::kBlock}) {
    const TemporaryDirectory directory;
    const int status = InChild([&]() -> int {
      Options options = InDirectory(directory.path());
      options.async = mode;
      Start(std::move(options));
      for (int t = 0; t < 3; ++t) {
        std::thread([] {
          for (int i = 0;; ++i) EmitNumber(i, 200);
        }).detach();
      }
      EmitNumber(12345);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      exit(3);
    });
    CHECK(status == 3);
    CHECK(FindRecord(OnlyLog(directory.path()), "\"number\": 12345"));
  }
}

std::atomic<int> g_signal_count{0};
void EmitFromSignal(int) {
  EmitNumber(-1, 10);
  ++g_signal_count;
}

TEST_CASE("Signals interrupt writes without breaking records", "[fault]") {
  const TemporaryDirectory directory;
  REQUIRE(Start(InDirectory(directory.path())));
  struct sigaction action {
  }, previous{};
  action.sa_handler = [](int) { ++g_signal_count; };  // no SA_RESTART: writes see EINTR
  sigaction(SIGUSR1, &action, &previous);
  std::atomic<bool> is_done{false};
  const pthread_t target = pthread_self();
  std::thread sender([&] {
    while (!is_done) {
      pthread_kill(target, SIGUSR1);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  for (int i = 0; i < 300; ++i) EmitNumber(i, 20'000);
  is_done = true;
  sender.join();
  sigaction(SIGUSR1, &previous, nullptr);
  Stop();
  CHECK(g_signal_count > 0);
  CHECK(OnlyLog(directory.path()).size() == 302);
}

TEST_CASE("A signal handler that emits in the middle of a write loses its record", "[fault]") {
  // The sink raises the signal itself, so that the handler runs exactly there.
  const TemporaryDirectory directory;
  struct sigaction action {
  }, previous{};
  action.sa_handler = EmitFromSignal;
  sigaction(SIGUSR1, &action, &previous);
  Options options;
  int written = 0;
  options.sink = std::make_shared<CallbackSink>([&](std::string_view) {
    if (++written == 3) raise(SIGUSR1);
  });
  REQUIRE(Start(std::move(options)));
  EmitNumber(1);
  EmitNumber(2);
  Stop();
  sigaction(SIGUSR1, &previous, nullptr);
  CHECK(Lost(LossKind::kReentrant) == 1);
}

TEST_CASE("Records emitted while a thread ends are written", "[fault]") {
  testing::MemoryTrace trace;
  std::thread([] {
    struct EmitAtEnd {
      ~EmitAtEnd() { EmitNumber(77); }
    };
    thread_local EmitAtEnd late;  // destroyed after the library's own memory of the thread
    (void)late;
    EmitNumber(1);
  }).join();
  CHECK(FindRecord(trace.records(), "\"number\": 77"));
}

TEST_CASE("A payload of a gigabyte is written or counted", "[fault][.large]") {
  const TemporaryDirectory directory;
  const int status = InChild([&]() -> int {
    alarm(280);  // disks may be slow
    Start(InDirectory(directory.path()));
    const std::string large(std::size_t{1} << 30, 'x');
    EmitArtifact("large", "string", [&](Payload& payload) { payload.Borrow(large); });
    EmitNumber(1);
    return GetStats().lost_record_count == 0 && GetStats().size_bytes > large.size() ? 0 : 1;
  });
  CHECK(status == 0);
}

// The sanitizers' allocators end the program instead of failing.
#ifndef LIBTRACE_TEST_SANITIZER
TEST_CASE("A borrowed payload needs no second copy; no memory for a record costs the record",
          "[fault]") {
  const TemporaryDirectory directory;
  const int status = InChild([&]() -> int {
    Start(InDirectory(directory.path()));
    EmitNumber(1);
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    std::string payload(std::size_t{200} << 20, 'x');
    limit.rlim_cur = std::size_t{260} << 20;  // not enough for a second copy
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 0;
    const auto emit = [&](std::string_view name) {
      EmitArtifact(name, "string", [&](Payload& target) { target.Borrow(payload); });
    };
    emit("borrowed");
    if (Lost(LossKind::kBuilderFailed) != 0) return 2;
    payload.back() = '\xff';  // to be repaired in a copy
    emit("broken");
    const bool is_counted = Lost(LossKind::kBuilderFailed) == 1;
    EmitNumber(2);
    return is_counted ? 0 : 1;
  });
  CHECK(status == 0);
  const std::vector<LoggedRecord> records = OnlyLog(directory.path());
  CHECK(FindRecord(records, "\"number\": 2"));
  CHECK(FindRecord(records, "borrowed")->payload.size() == std::size_t{200} << 20);
}
#endif

}  // namespace
}  // namespace libtrace
