// Which ranks have calls with each other, by the peers of their messages and by the times of their calls.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "facts/collectives/profiled_messages.h"
#include "facts/collectives/rank_states.h"

namespace tlparse {

// Slices of Gloo do not name their group, and the group of all ranks is there in every job, whether
// anyone calls in it or not. But who waits in a call is released when the last of its ranks comes.
class RankMeetings {
 public:
  // `are_messages`: no call is a collective. If the peers of all are known, times tell no more.
  RankMeetings(const SpansByRank& calls, const TimeSpan& common, const ProfiledTraffic& traffic,
               bool are_messages);
  // Whether each of `others` has calls with one of `ranks`, or with a rank that has, and so on.
  bool AreJoined(const std::set<std::int64_t>& ranks, std::set<std::int64_t> others) const;

 private:
  // They have messages with each other; or calls of `one` end when calls of `other` begin or end, more often
  // than chance has it in one of 30,000 jobs, and twice at least.
  bool Meet(std::int64_t one, std::int64_t other) const;

  struct Moments {
    std::vector<std::int64_t> ends_ns, all_ns;  // ascending; all: when calls begin, too
  };
  const ProfiledTraffic& traffic_;
  bool is_told_by_peers_;
  TimeSpan common_;
  std::map<std::int64_t, Moments> moments_;
};

}  // namespace tlparse
