// When ranks came to the collectives of a group, by recorder dumps or profiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "facts/collectives/issued.h"
#include "facts/collectives/rank_work.h"

namespace tlparse {

struct RankArrival {
  std::size_t rank = 0;
  std::int64_t ns = 0;
  std::int64_t issued_ns = 0;  // on the CPU
};

struct Lag {
  const IssuedCollective* call = nullptr;
  std::size_t rank = 0;       // whose call it is
  std::int64_t whole_ns = 0;  // after the last of the others
  std::int64_t ns = 0;        // of it, what counts
  std::int64_t since_ns = 0;  // when all ranks had come to the collective before; 0: unknown
  std::vector<RankArrival> others = {};  // when the others came to this one
  std::int64_t compiled_ns = 0;          // of the whole, taken out
  // What the rank did longer than the others, compiles left out: more than `ns`, if they compiled longer.
  std::int64_t longer_ns = 0;
  // Of the whole, what the rank issued it after the others.
  std::int64_t IssuedLaterNs() const;
};

// The collectives of a group that several ranks issued.
struct Arrivals {
  std::map<std::size_t, std::vector<Lag>> lags = {};  // by rank: where it came last
  std::set<std::size_t> together =
      {};  // ranks that count as one, the first of them: when one of them came
  std::map<std::size_t, std::size_t> possible = {};  // by rank: others had not ended before it came
  std::map<std::size_t, std::size_t> impossible = {};  // by rank: others had ended before it came
  std::size_t count = 0;
  std::size_t unawaited_count = 0;  // besides: in which no rank waited for another
  bool is_of_barriers = false;      // they alone are counted; otherwise all others
  bool has_barriers = false;
  std::int64_t first_ns = INT64_MAX, last_ns = 0;
  std::int64_t together_ns = 0;  // when all ranks had come to the last one that all wait in
};

// IssuedCollective::arrived_ns.
void SetArrivals(IssuedGroup& group);

Arrivals ArrivalsOf(const IssuedGroup& group, bool is_of_barriers,
                    std::set<std::size_t> together = {});

// Two ranks or more, half of the group at most, for which the others waited longest: those that came later
// than all others by more than any two ranks are apart besides. Empty: there are none, or the others waited
// for ranks beside them for a third of that.
std::set<std::size_t> LateTogether(const IssuedGroup& group);

// When a rank had come to a collective and another had not, and how long the call took the others then.
struct OwnWait {
  TimeSpan time;
  const IssuedGroup* group = nullptr;
  std::int64_t longest_to_ns = 0;  // of this one and those before
};
using OwnWaits = std::vector<OwnWait>;  // by their begin
std::map<std::size_t, OwnWaits> WaitsOfRanks(const IssuedJob& job);

// The ranks that did not come last to some collective of a group: their clocks are not ahead of all
// others by what they come late to those of another group.
std::set<std::size_t> RanksNotAlwaysLast(const IssuedJob& job);

// Whether times stand out of those of the other ranks: three or more, that make half of their sum, are
// three times as long as the second longest of these and as what a busy processor does; or two of
// them, ten times as long.
bool StandOut(const std::vector<std::int64_t>& own_ns, std::vector<std::int64_t> others_ns);

}  // namespace tlparse
