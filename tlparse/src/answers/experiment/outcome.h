// What a run shows of an experiment, and what came of the change: confirmed, refuted, changed or
// inconclusive.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "findings/findings.h"
#include "store/database.h"

namespace tlparse {

// A command as `tlparse run` recorded it.
struct RecordedCommand {
  std::vector<std::string> words;
  std::string directory;
  // NAME=value, of its environment: those that say how PyTorch runs, without what was set to record.
  std::vector<std::string> variables;
};
// Nothing: the run was not recorded by `tlparse run`.
Result<std::optional<RecordedCommand>> LoadCommand(Database& database, std::int64_t run_id);

struct RunOutcome {
  std::int64_t run_id = 0;
  std::vector<Finding> findings;
  std::int64_t processes = 0;  // that compiled
  std::int64_t ranks = 0;      // of these
  std::optional<int> exit_code;
  std::optional<std::int64_t> compile_us;  // of the process that took longest
  std::int64_t cache_hits = 0;
  std::optional<std::int64_t> step_us;     // median of the profiled steps
  std::optional<std::int64_t> command_us;  // from the start of the command to its end
};
// `run_name`: empty for the latest.
Result<RunOutcome> LoadOutcome(Database& database, const std::string& run_name);

// The finding of these, or of their evidence, that has the same cause, though what is said of it may
// differ; nullptr: none.
const Finding* FindSameCause(const std::vector<Finding>& findings, const Finding& wanted);

struct Judgement {
  ExperimentVerdict verdict = ExperimentVerdict::kInconclusive;
  std::string reason;             // a sentence
  std::vector<std::string> came;  // ids of findings above a note that only the new run has
};
// `finding` is one of `base` or evidence of one. `unmade`: changes of it that no process of the new
// run made. Of fullgraph the question is whether the line of the finding ends the graph.
Result<Judgement> Judge(Database& database, const Finding& finding, const RunOutcome& base,
                        const RunOutcome& changed, const std::vector<Change>& unmade);

struct Experiment {
  std::string finding_id;
  std::int64_t base_run_id = 0;  // whose finding it is
  std::vector<Change> changes;
  std::vector<std::string> command;
  std::string directory;  // output directory of the new run
  std::int64_t started_us = 0;
};
// Writes the row; returns its id. `before`: whose times are compared. Without `changed` there is no
// new run.
Result<std::int64_t> AddExperiment(Database& database, const Experiment& experiment,
                                   const RunOutcome& before, const RunOutcome* changed,
                                   const Judgement& judgement);

}  // namespace tlparse
