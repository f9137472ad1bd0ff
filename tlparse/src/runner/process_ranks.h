// Which of the processes of a command have a rank.
#pragma once

#include <vector>

#include "runner/process_watch.h"

namespace tlparse {

// `processes` are in order of their starts; `told` is what is known of each.
void SetRanks(std::vector<WatchedProcess>& processes, const std::vector<ToldRank>& told);

}  // namespace tlparse
