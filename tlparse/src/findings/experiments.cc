// What `tlparse try` has found out about findings.
#include "queries/findings/experiments.h"

#include <map>
#include <string>

#include "facts/job/participants.h"
#include "findings/context.h"

namespace tlparse {
namespace {

using ExperimentsById = std::map<std::string, FindingExperiment, std::less<>>;

void SetOf(const ExperimentsById& experiments, std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    if (const auto found = experiments.find(finding.id); found != experiments.end())
      finding.experiment = found->second;
    SetOf(experiments, finding.evidence);
  }
}

}  // namespace

Result<void> SetExperiments(Database& database, std::int64_t run_id,
                            std::vector<Finding>& findings) {
  ASSIGN_OR_RETURN(const bool has_table, HasExperiments(database));
  if (!has_table) return {};
  ExperimentsById experiments;
  FOR_EACH_ROW(const ExperimentOfRun& row, Query<ExperimentOfRun>(database, {.run_id = run_id})) {
    FindingExperiment& one = experiments[std::string(row.finding_id)];
    one = {row.id, row.verdict, std::string(row.reason), row.is_check};
  }
  if (!experiments.empty()) SetOf(experiments, findings);
  return {};
}

}  // namespace tlparse
