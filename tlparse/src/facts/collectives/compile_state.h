// Internal to facts/collectives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "facts/job/job.h"
#include "facts/job/job_graphs.h"
#include "facts/job/log_damage.h"

namespace tlparse {

// Why a rank has no collectives for a graph, if its compile says so. `side`: "here" or "there".
std::string StateOf(const Job& job, const LogDamage& damage, RankIndex rank, const GraphSlot& graph,
                    std::string_view side);

}  // namespace tlparse
