// The runs of a job over time: the data of the pages of `tlparse serve --url`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/fleet_answer.h"

namespace tlparse {

struct TrendRun {
  std::string run_id, day, run_name;
  std::int64_t ranks = 0;
  std::int64_t start_us = 0;  // since 1970, of the first compile; 0: not known
  // Of the process with the largest value.
  // Of the processes whose logs have the times of all compiles; nothing: there is none.
  std::optional<double> compile_s;
  std::int64_t recompiles = 0;
  std::int64_t graph_breaks = 0;
  std::optional<double> hit_rate;  // of all processes and layers, 0 to 1; nothing: no lookups
};

// Runs of the question, the earliest first; only the latest `question.limit` of them.
Result<std::vector<TrendRun>> ReadTrend(FleetReader& reader, const FleetQuestion& question);

}  // namespace tlparse
