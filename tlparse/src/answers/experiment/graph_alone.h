// A compile that failed, without its job: the script fx_graph_runnable of its log compiles and runs one
// graph, with random numbers as its inputs.
#pragma once

#include <string>

#include "answers/experiment/outcome.h"
#include "base/result.h"
#include "findings/findings.h"
#include "store/database.h"

namespace tlparse {

// The script of the last graph that the compile of this finding began. kNotFound: the log has none.
// Left out of it: what it sets of where the job was recorded and cached, and of `changes`.
Result<std::string> LoadGraphScript(Database& database, std::int64_t run_id,
                                    const Finding& finding);

// Of these changes those that have an effect without Dynamo, all of them or none.
std::vector<Change> ChangesOfGraph(const std::vector<Change>& changes);

// The run of the script as it is.
Result<Judgement> JudgeGraph(Database& database, const Finding& finding, const RunOutcome& run);
// …with changes, after it failed without them.
Result<Judgement> JudgeChangedGraph(Database& database, const Finding& finding,
                                    const RunOutcome& run, const std::vector<Change>& unmade);

}  // namespace tlparse
