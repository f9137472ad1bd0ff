// Runs a command with changes, adds the new run to the database of the old one, and writes the row
// of the experiment: the work of `tlparse try` and of each step of `tlparse bisect`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "answers/experiment/outcome.h"
#include "base/result.h"
#include "cli/run_options.h"

namespace tlparse {

struct ExperimentPlan {
  std::string database;          // or its output directory
  std::string name;              // of the new run
  std::int64_t base_run_id = 0;  // whose finding it is
  std::string output;            // output directory of the new run: it does not exist
  RecordedCommand command;
  std::vector<Change> changes;
};

struct ExperimentRun {
  std::int64_t id = 0;
  Experiment experiment;
  RunOutcome before;
  std::optional<RunOutcome> changed;  // nothing: the command left nothing to read
  Judgement judgement;
};

// `unmade`: changes that no process made.
using JudgeExperiment =
    std::function<Result<Judgement>(Database& database, const RunOutcome& before,
                                    const RunOutcome& changed, const std::vector<Change>& unmade)>;

// `before`: the run that the new one is compared with. What compiled graphs give, and a profile of its
// steps, is recorded if it was of the base run. Changes to the command's directory and sets its variables in this process. Our standard output
// goes to standard error while the command runs.
Result<ExperimentRun> RunExperiment(const ExperimentPlan& plan, const std::string& finding_id,
                                    const RunOutcome& before, const JudgeExperiment& judge);

}  // namespace tlparse
