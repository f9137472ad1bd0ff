// Which processes `tlparse status` is asked about, and their stacks.
#pragma once

#include <string>
#include <vector>

#include "facts/job/asked_participant.h"
#include "facts/job/job_tree.h"
#include "facts/job/status.h"

namespace tlparse {

// A rank with its children. Returns what the answer is of then; empty: of all.
std::string KeepAsked(const AskedParticipant& asked, const JobTree& tree,
                      std::vector<ProcessStatus>& rows);
// The user's frames above compiles that are open or failed.
Result<void> PrintStacks(Database& database, const std::vector<ProcessStatus>& rows);

}  // namespace tlparse
