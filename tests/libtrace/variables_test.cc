// The environment variables of the trace, in a fresh process: they are read once.
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "libtrace/trace.h"
#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

using testing::FindRecord;
using testing::LogsIn;
using testing::ParseLog;
using testing::ReadText;
using testing::TemporaryDirectory;

TEST_CASE("Variables switch tracing on, and bad ones are reported once", "[options]") {
  const TemporaryDirectory directory;
  std::string errors;
  const std::string command = std::string("TORCH_TRACE=/nowhere TORCH_DTRACE=") +
                              directory.string() +
                              " RANK=6 LIBTRACE_QUEUE_BYTES=12Q LIBTRACE_ASYNC=sometimes " +
                              LIBTRACE_EMIT_PROGRAM + " 2>&1 >/dev/null";
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  char buffer[1024];
  while (fgets(buffer, sizeof buffer, pipe) != nullptr) errors += buffer;
  CHECK(pclose(pipe) == 0);
  CHECK(errors.find("libtrace: LIBTRACE_ASYNC=sometimes ignored: expected one of off, block, drop; "
                    "LIBTRACE_QUEUE_BYTES=12Q ignored: expected a size such as 64M\n"
                    "libtrace: record `broken` (") == 0);
  CHECK(errors.find("emit_everything.cc:") != std::string::npos);
  CHECK(errors.ends_with("): a builder threw; the record is lost and counted\n"));
  CHECK(std::count(errors.begin(), errors.end(), '\n') == 2);  // once each
  int ranked = 0;  // the program calls SetRank(3) before it forks
  for (const auto& log : LogsIn(directory.path())) {
    if (log.filename().native().find("rank_6_") == std::string::npos) continue;
    ++ranked;
    CHECK(FindRecord(ParseLog(ReadText(log)), "detail_record"));  // TORCH_DTRACE: detail is on
  }
  CHECK(ranked == 1);
}

// What the test below runs as another user.
TEST_CASE("The environment of a set-user-ID program", "[.set_user_id]") {
  if (getauxval(AT_SECURE) == 0) exit(77);  // not set-user-ID: the test below is skipped
  const Options options = Options::FromEnvironment();
  CHECK(options.directory.empty());
  CHECK_FALSE(options.rank);
}

TEST_CASE("A set-user-ID program takes nothing from its environment", "[options]") {
  if (geteuid() != 0) {
    WARN("skipped: only root can make a set-user-ID program of another user");
    return;
  }
  const TemporaryDirectory directory;
  namespace fs = std::filesystem;
  fs::permissions(directory.path(), fs::perms::all);
  const std::string program = directory.string() + "/program";
  fs::copy_file("/proc/self/exe", program);
  REQUIRE(chmod(program.c_str(), 04755) == 0);
  const pid_t child = fork();
  if (child == 0) {
    setenv("TORCH_TRACE", "/tmp", 1);
    setenv("RANK", "3", 1);
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(9);
    execl(program.c_str(), "program", "[.set_user_id]", nullptr);
    _exit(9);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    WARN("skipped: the file system does not allow set-user-ID programs");
    return;
  }
  CHECK(status == 0);
}

}  // namespace
}  // namespace libtrace
