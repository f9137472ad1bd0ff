// How long ranks go on between two calls: what a wait is judged by.
#include <algorithm>

#include "facts/collectives/issued_group.h"

namespace tlparse {
namespace {

// Ranks that wait so long are no moment of a job that runs, where nothing tells how long its pauses are.
constexpr std::int64_t kLongNs = 10'000'000'000;

}  // namespace

void SetPace(IssuedJob& job) {
  std::vector<std::vector<std::int64_t>> times(job.ranks.size());
  for (const IssuedGroup& group : job.groups) {
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      for (const IssuedCollective& one : group.issued[i])
        times[group.ranks[i]].push_back(one.start_ns);
    }
  }
  for (const MessageGroup& group : job.message_groups) {
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      for (const IssuedMessage& one : group.issued[i])
        times[group.ranks[i]].push_back(one.call.start_ns);
    }
  }
  CallPace& pace = job.pace;
  for (std::vector<std::int64_t>& own : times) {
    std::erase(own, 0);
    std::sort(own.begin(), own.end());
    std::int64_t longest_ns = 0, next_ns = 0;
    for (std::size_t i = 1; i < own.size(); ++i) {
      const std::int64_t pause_ns = own[i] - own[i - 1];
      next_ns = std::max(next_ns, std::min(longest_ns, pause_ns));
      longest_ns = std::max(longest_ns, pause_ns);
    }
    if (own.size() < 2) continue;
    pace.pauses = std::max(pace.pauses, own.size() - 1);
    pace.usual_ns = std::max(pace.usual_ns, next_ns);
    pace.span_ns = std::max(pace.span_ns, own.back() - own.front());
  }
}

bool KnowsPace(const IssuedJob& job) {
  constexpr std::size_t kLeastPauses = 8;
  return job.pace.pauses >= kLeastPauses;
}

bool IsLongWait(const IssuedJob& job, std::int64_t waited_ns, std::int64_t timeout_ms) {
  constexpr std::int64_t kTimesUsual = 3, kTimesFarBeyond = 10;
  const CallPace& pace = job.pace;
  if (timeout_ms > 0 && waited_ns / 900'000 >= timeout_ms) return true;
  if (!KnowsPace(job)) return waited_ns >= kLongNs;
  if (waited_ns >= kLongNs) return waited_ns >= kTimesUsual * pace.usual_ns;
  return waited_ns >= kTimesFarBeyond * pace.usual_ns && waited_ns >= pace.span_ns;
}

FindingSeverity SeverityOfWait(const IssuedJob& job, std::int64_t waited_ns,
                               std::int64_t timeout_ms, bool is_known) {
  if (IsLongWait(job, waited_ns, timeout_ms)) return FindingSeverity::kError;
  return is_known && waited_ns < kLongNs ? FindingSeverity::kNote : FindingSeverity::kWarning;
}

}  // namespace tlparse
