// Sums and counts of the delays with which a rank came last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "facts/collectives/arrivals.h"
#include "facts/collectives/compile_spans.h"

namespace tlparse {

std::int64_t Sum(const std::vector<Lag>& lags);
// The sum, with what several delays share counted once: calls that do not wait for each other.
std::int64_t LostNs(std::vector<Lag> lags);
// Without the longest: one delay is a compile, or a pause.
std::int64_t SteadySum(const std::vector<Lag>& lags);
// A rank that came last every time may have a clock that is ahead.
void TakeOutClock(std::vector<Lag>& lags);
// Whether no chance made the rank the one that was awaited longest. `share`: how often chance makes
// it the last.
bool IsNoChance(const Arrivals& arrivals, std::size_t rank, double share);
// Whether few delays may be what the ranks' times vary by: such ranks come last to so many calls in one job of a
// hundred, and twice what the times of the others differ by is more than the delays. `compiles`: not counted.
bool MayBeSpread(const Arrivals& arrivals, const std::set<std::size_t>& ranks, std::size_t all,
                 const IssuedJob& job, const std::vector<CompileSpan>& compiles);
// Of delays in descending order: how many make nine tenths of the sum.
std::size_t CountOfLong(const std::vector<Lag>& lags);
bool AreAlike(std::int64_t shorter_ns, std::int64_t longer_ns);
// How many delays are of one length, if the others add little to them: those of a busy machine are of
// any length. The longest is counted, but as it may be a compile or a pause as well, two must be as long
// as each other beside it, or it as long as the next. A delay is shorter for the others where they
// compiled meanwhile; what the rank did is as long.
std::size_t CountOfSteady(const std::vector<Lag>& lags);

}  // namespace tlparse
