// Sentences about what sets a class of ranks apart. Internal to facts/ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "facts/cache/cache.h"
#include "facts/collectives/collectives.h"
#include "facts/contents/graph_difference.h"
#include "facts/execution/execution.h"
#include "facts/ranks/ranks.h"

namespace tlparse {

// "0/0 f, 1/0 g, 2/0 h and 3 more", as these ranks name them
std::string FirstTitles(const Job& job, const std::vector<std::int32_t>& slots,
                        const std::vector<RankIndex>& who);

// Of keys that differ in compiles `where`; `is_reversed`: from the finding's ranks to those that they
// are compared with. `whose`: the ranks that have it, where the class that is described does not.
std::string KeyText(const CacheFinding& finding, const std::string& where, bool is_reversed,
                    const std::string& whose);
// What differs where the cause is another configuration.
std::vector<RankOption> OptionsOf(const Cause& cause);
// "inductor_config[max_fusion_size]: 64 → 13; and 2 more"; with `is_short` "max_fusion_size 64 → 13".
std::string OptionsText(const std::vector<RankOption>& options, bool is_short = false);
// The first of `count` mismatches of collectives.
std::string MismatchText(const std::string& graph, const CollectiveMismatch& first,
                         std::size_t count);
// Graphs of one compile that differ, "0/0 forward" being its title; without a place.
RankAspect OfOtherGraph(std::int32_t slot, const std::string& title,
                        const GraphDifference& difference, bool is_state);
// From the others to this side; "others" is replaced where there is no majority.
std::string OrderText(const OrderDifference& first);

}  // namespace tlparse
