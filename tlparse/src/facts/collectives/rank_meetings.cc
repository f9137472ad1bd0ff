#include "facts/collectives/rank_meetings.h"

#include <algorithm>
#include <cstddef>

namespace tlparse {
namespace {

// How much of a time is within `near_ns` of one of these moments.
double ShareNear(const std::vector<std::int64_t>& moments_ns, std::int64_t near_ns,
                 const TimeSpan& time) {
  std::int64_t covered_ns = 0, until_ns = time.from_ns;
  for (const std::int64_t ns : moments_ns) {
    const std::int64_t to_ns = std::min(ns + near_ns, time.to_ns);
    covered_ns += std::max<std::int64_t>(0, to_ns - std::max(ns - near_ns, until_ns));
    until_ns = std::max(until_ns, to_ns);
  }
  return static_cast<double>(covered_ns) / static_cast<double>(time.Length());
}

bool HasNear(const std::vector<std::int64_t>& moments_ns, std::int64_t ns, std::int64_t near_ns) {
  const auto next = std::lower_bound(moments_ns.begin(), moments_ns.end(), ns - near_ns);
  return next != moments_ns.end() && *next <= ns + near_ns;
}

}  // namespace

RankMeetings::RankMeetings(const SpansByRank& calls, const TimeSpan& common,
                           const ProfiledTraffic& traffic, bool are_messages)
    : traffic_(traffic), is_told_by_peers_(are_messages && traffic.has_all_peers), common_(common) {
  for (const auto& [rank, spans] : calls) {
    Moments& own = moments_[rank];
    const auto is_in = [&](std::int64_t ns) { return ns > common.from_ns && ns < common.to_ns; };
    for (const TimeSpan& one : spans) {
      if (is_in(one.from_ns)) own.all_ns.push_back(one.from_ns);
      if (!is_in(one.to_ns)) continue;
      own.all_ns.push_back(one.to_ns);
      own.ends_ns.push_back(one.to_ns);
    }
    std::sort(own.ends_ns.begin(), own.ends_ns.end());
    std::sort(own.all_ns.begin(), own.all_ns.end());
  }
}

bool RankMeetings::Meet(std::int64_t one, std::int64_t other) const {
  if (traffic_.Has(one, other)) return true;
  if (is_told_by_peers_) return false;
  constexpr std::int64_t kNearNs[] = {100'000, 1'000'000, 5'000'000, 20'000'000};
  const std::vector<std::int64_t>& ends_ns = moments_.at(one).ends_ns;
  const std::vector<std::int64_t>& all_ns = moments_.at(other).all_ns;
  return std::any_of(std::begin(kNearNs), std::end(kNearNs), [&](std::int64_t near_ns) {
    const double share = ShareNear(all_ns, near_ns, common_);
    const auto near =
        static_cast<double>(std::count_if(ends_ns.begin(), ends_ns.end(), [&](std::int64_t ns) {
          return HasNear(all_ns, ns, near_ns);
        }));
    const auto count = static_cast<double>(ends_ns.size());
    const double beyond = near - count * share;
    return near >= 2 && beyond > 0 && beyond * beyond >= 16 * count * share * (1 - share);
  });
}

bool RankMeetings::AreJoined(const std::set<std::int64_t>& ranks,
                             std::set<std::int64_t> others) const {
  std::vector<std::int64_t> joined(ranks.begin(), ranks.end()), apart;
  for (const auto& [rank, moments] : moments_) {
    if (!ranks.contains(rank)) apart.push_back(rank);
  }
  for (std::size_t i = 0; i < joined.size() && !others.empty(); ++i) {
    std::erase_if(apart, [&](std::int64_t one) {
      if (!Meet(one, joined[i])) return false;
      joined.push_back(one);
      others.erase(one);
      return true;
    });
  }
  return others.empty();
}

}  // namespace tlparse
