#include "cli/what_is_here.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/plural.h"
#include "log/find_logs.h"

namespace tlparse {
namespace {

constexpr int kMostEntries = 100'000;  // of the directory; it is not searched further

struct Here {
  std::int64_t logs = 0;
  std::string report;  // the one that was written last
};

Here LookAround() {
  Here here;
  std::error_code error;
  std::filesystem::file_time_type latest;
  std::filesystem::directory_iterator entries(".", error), end;
  for (int seen = 0; !error && entries != end && seen < kMostEntries;
       entries.increment(error), ++seen) {
    const std::filesystem::path& path = entries->path();
    if (IsTraceFileName(path.string())) ++here.logs;
    std::error_code none;
    const auto written = std::filesystem::last_write_time(path / "trace.db", none);
    if (none || (!here.report.empty() && written <= latest)) continue;
    latest = written;
    here.report = path.filename().string();
  }
  return here;
}

}  // namespace

std::string WhatIsHere() {
  const Here here = LookAround();
  const std::string findings =
      here.report.empty()
          ? std::string()
          : fmt::format("'tlparse findings {}' says what the report in it found", here.report);
  if (here.logs == 0) return findings;
  return fmt::format(
      "this directory holds {} log{} of PyTorch: 'tlparse .' ingests {} and writes "
      "a report to tl_out{}",
      here.logs, PluralS(here.logs), here.logs == 1 ? "it" : "them",
      findings.empty() ? findings : "; " + findings);
}

}  // namespace tlparse
