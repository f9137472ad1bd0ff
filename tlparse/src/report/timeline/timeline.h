// A run as a file in the trace-event format, for Perfetto and chrome://tracing: compile events, graph
// calls, profiles, collectives and memory on one clock. Memory does not grow with the run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

struct TimelineOptions {
  std::int64_t run_id = 0;
  std::optional<std::int64_t> launch, rank;
  std::string compile;                                // a label; empty: all
  std::optional<std::int64_t> first_step, last_step;  // of the profiler
};

struct TimelineSummary {
  std::int64_t events = 0;    // without metadata
  std::int64_t left_out = 0;  // their times cannot be written
};

// Gives the document piece by piece to `write`, whose error ends it. kNotFound: there is no such
// launch, rank, compile or step.
Result<TimelineSummary> WriteTimeline(Database& database, const TimelineOptions& options,
                                      const std::function<Result<void>(std::string_view)>& write);

}  // namespace tlparse
