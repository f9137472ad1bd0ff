// How the processes of a launch ended, as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "facts/job/exits.h"
#include "facts/job/hangs.h"
#include "facts/job/job_tree.h"
#include "facts/job/status.h"

namespace tlparse {

// "0-2,3#2": the ranks of these processes; empty: they have none.
std::string RanksOfRows(const std::vector<const ProcessStatus*>& rows);

// A line for each end, processes that ended alike in one; children are left out unless it is known of
// them.
void PrintEnds(const std::vector<ProcessStatus>& statuses, const JobTree& tree);

// "10:42:48.506"; empty: not known.
std::string DayTimeText(const std::optional<std::int64_t>& us);

// All ranks that ended after it ended with exit code 0, so the command did not hang.
bool HasGoneOn(const Hang& hang, const std::vector<ProcessExit>& exits);
// A line for each time at which `tlparse run` judged that the command hangs.
void PrintHangs(const std::vector<Hang>& hangs, const std::vector<ProcessExit>& exits);

}  // namespace tlparse
