// The pages of `tlparse serve --url`, as HTML without scripts. Text of runs is escaped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleet/fleet_answer.h"
#include "fleet/fleet_trend.h"

namespace tlparse {

// Links of the pages: "/", "/job?name=J", "/function?job=J&name=F", "/run/UUID".

struct FleetJob {
  std::string name, last_day;
  std::int64_t runs = 0;
  std::int64_t ranks = 0;  // of the largest run
};
std::string JobsPage(const std::vector<FleetJob>& jobs);

// Charts with one dot per run, which links to that run; below, the functions that took longest.
// `has_more_runs`: `runs` are only the latest.
std::string JobPage(const std::string& job, const std::vector<TrendRun>& runs, bool has_more_runs,
                    const FleetAnswer& functions);

// `time`: the answer of FleetTime for this function of this job.
std::string FunctionPage(const std::string& job, const std::string& function,
                         const FleetAnswer& time);

std::string ErrorPage(std::string_view message);

}  // namespace tlparse
