#include "facts/collectives/wait_activity.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

#include "queries/facts/collectives/wait_activity.h"

namespace tlparse {
namespace {

// Whether other ranks were in it too, for less than half of its time on this one.
Result<bool> TakesOthersLess(Database& database, std::int64_t run_id, const std::string& name,
                             std::int64_t rank) {
  std::int64_t own_ns = 0, most_ns = -1;
  FOR_EACH_ROW(const TimeInAnnotation& row,
               Query<TimeInAnnotation>(database, {.run_id = run_id, .name = name})) {
    if (row.rank == rank)
      own_ns = row.ns;
    else
      most_ns = std::max(most_ns, row.ns);
  }
  return most_ns >= 0 && 2 * most_ns < own_ns;
}

}  // namespace

std::int64_t SteadyNs(const std::vector<TimeSpan>& spans) {
  std::int64_t sum_ns = 0, longest_ns = 0;
  for (const TimeSpan& one : spans) {
    sum_ns += one.Length();
    longest_ns = std::max(longest_ns, one.Length());
  }
  return sum_ns - longest_ns;
}

Result<void> SetActivityOfWait(Database& database, std::int64_t run_id,
                               const std::vector<TimeSpan>& awaited, ProfiledWait& wait) {
  struct Activity {
    std::int64_t total_ns = 0;
    std::vector<std::int64_t> shared_ns;  // by time of `awaited`
  };
  const auto longest =
      static_cast<std::size_t>(std::max_element(awaited.begin(), awaited.end(),
                                                [](const TimeSpan& a, const TimeSpan& b) {
                                                  return a.Length() < b.Length();
                                                }) -
                               awaited.begin());
  std::map<std::string, Activity> activities;
  FOR_EACH_ROW(const AnnotationOfRank& row,
               Query<AnnotationOfRank>(database, {.run_id = run_id, .rank = wait.rank})) {
    Activity& one = activities[std::string(row.name)];
    one.shared_ns.resize(awaited.size());
    const TimeSpan span{row.start_ns, row.end_ns};
    one.total_ns += span.Length();
    for (std::size_t i = 0; i < awaited.size(); ++i) one.shared_ns[i] += SharedNs(span, awaited[i]);
  }
  for (const auto& [name, one] : activities) {
    std::int64_t shared_ns = 0;
    for (const std::int64_t ns : one.shared_ns) shared_ns += ns;
    const bool is_most = 2 * (shared_ns - one.shared_ns[longest]) >= SteadyNs(awaited);
    if (!is_most || shared_ns <= wait.activity_ns) continue;
    if (2 * one.total_ns > 3 * shared_ns) {
      ASSIGN_OR_RETURN(const bool is_own, TakesOthersLess(database, run_id, name, wait.rank));
      if (!is_own) continue;
    }
    wait.activity = name;
    wait.activity_ns = shared_ns;
  }
  return {};
}

}  // namespace tlparse
