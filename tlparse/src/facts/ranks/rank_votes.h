// With which ranks the others are compared, and which side of a difference is the odd one. A rank
// whose log ends before a thing has no vote on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "facts/ranks/ranks.h"

namespace tlparse {

// The class that agrees with most ranks in most things; of equals one whose logs do not end early
// (if all do, the one that goes furthest), then the largest, then that of the lowest rank. Needs the classes' ranks and the answers on
// caches, collectives and execution.
Result<std::size_t> ChooseReference(Database& database, const RanksAnswer& answer);

// Whether graphs differ in more than numbers, which follow from sizes of data or from the rank.
bool IsOfProgram(const RankAspect& aspect);

// Whether what sets a class apart is only that its logs end before the reference's.
bool IsAlikeAsFarAsItGoes(const RanksAnswer& answer, const RankClass& one);

// Whether an aspect is more than what a log that ends early lacks.
bool IsVote(const RankAspect& aspect);

// Aspects of one area and compile are about one thing; inputs, graphs and code are one. -1: of no
// compile.
using Thing = std::pair<AspectArea, std::int32_t>;
Thing ThingOf(const RankAspect& aspect);

// Sets `has_majority` of the answer and of the aspects.
void CountVotes(RanksAnswer& answer);

}  // namespace tlparse
