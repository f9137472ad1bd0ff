// What a watch does when it ends.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "cli/watch_options.h"
#include "findings/live.h"
#include "inputs/find_inputs.h"
#include "report/output_directory.h"

namespace tlparse {

// Everything in its directories, logs included; nothing of standard input.
FoundInputs FindOtherInputs(const WatchOptions& options);

// Whether these logs, by path, are files without a byte.
bool AreEmptyFiles(const std::map<std::string, LiveLog>& logs);

// The tree and the page of the output directory.
Result<void> WriteWatchReport(const WatchOptions& options, const Directory& directory,
                              const std::string& database, std::int64_t run_id);

// Whether the run keeps the budget of the options; prints the answer unless --json is given.
Result<bool> CheckWatchBudget(const WatchOptions& options, const std::string& database,
                              const std::string& run);

}  // namespace tlparse
