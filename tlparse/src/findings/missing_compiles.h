// Compiles with collectives that some ranks lack. Internal to findings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "findings/context.h"

namespace tlparse {

// Of a compile that rank `with` has and `lacking` do not: the collectives in it, which need all ranks
// of a group, and what they compiled instead. ": it holds all_reduce; rank 1 went on to 2/0 update".
// Empty: there are no collectives, or they compiled nothing after it.
std::string WithCollectives(const FindingContext& context, std::int32_t slot, RankIndex with,
                            const std::vector<RankIndex>& lacking);

}  // namespace tlparse
