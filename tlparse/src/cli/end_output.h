// How the processes of a launch ended, as text.
#pragma once

#include <string>
#include <vector>

#include "facts/job/job_tree.h"
#include "facts/job/status.h"

namespace tlparse {

// "0-2,3#2": the ranks of these processes; empty: they have none.
std::string RanksOfRows(const std::vector<const ProcessStatus*>& rows);

// A line for each end, processes that ended alike in one; children are left out unless it is known of
// them.
void PrintEnds(const std::vector<ProcessStatus>& statuses, const JobTree& tree);

}  // namespace tlparse
