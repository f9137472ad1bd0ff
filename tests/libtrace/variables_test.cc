// The environment variables of the trace, in a fresh process: they are read once.
#include <algorithm>
#include <cstdio>
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

}  // namespace
}  // namespace libtrace
