// Whether two runs computed the same: the outputs of compiled graphs that `tlparse run --numbers` looked
// at, call by call.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "answers/experiment/outcome.h"
#include "base/result.h"
#include "store/database.h"

namespace tlparse {

struct OutputNumbers {
  std::string function, hash;
  std::optional<double> norm;
  std::int64_t nan_count = 0, inf_count = 0;
};
// By rank (-1: none), label of the compile, graph, number of the call, name. A graph that is compiled
// again under the same label replaces the one before.
using OutputsOfRun =
    std::map<std::tuple<std::int64_t, std::string, std::string, std::int64_t, std::string>,
             OutputNumbers>;
Result<OutputsOfRun> LoadOutputs(Database& database, std::int64_t run_id);

// Refuted: an output differs from the good run's in its count of NaN or infinity, or by more than a
// thousandth in its norm; where a norm is not known, in its hash. Confirmed: none does.
Judgement JudgeOutputs(const OutputsOfRun& good, const OutputsOfRun& other);

// "10", where the run looked at each tenth call; empty: at none.
Result<std::string> RecordedNumbers(Database& database, std::int64_t run_id);

}  // namespace tlparse
