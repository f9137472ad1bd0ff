#include "facts/cost/loader_waits.h"

#include <algorithm>
#include <utility>

#include "queries/facts/cost/loader_waits.h"

namespace tlparse {
namespace {

using Interval = std::pair<std::int64_t, std::int64_t>;

struct CallsOfThread {
  std::int64_t thread_id = 0;
  std::vector<Interval> calls;
  std::string name;
};

double MedianUs(std::vector<std::int64_t> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return static_cast<double>(*middle) / 1e3;
}

// The part of the call in which none of the intervals, sorted by their start, is open.
std::int64_t Outside(const Interval& call, const std::vector<Interval>& busy) {
  std::int64_t at = call.first, outside = 0;
  for (const auto& [start, end] : busy) {
    if (start >= call.second) break;
    if (end <= at) continue;
    outside += std::max<std::int64_t>(0, start - at);
    at = std::max(at, end);
  }
  return outside + std::max<std::int64_t>(0, call.second - at);
}

Result<void> FillTimes(Database& database, const CallsOfThread& thread, LoaderWait& wait) {
  std::vector<Interval> busy;
  FOR_EACH_ROW(const BusyTime& row, Query<BusyTime>(database, {.profile_id = wait.profile_id}))
    busy.emplace_back(row.start_ns, row.end_ns);
  wait.has_device = !busy.empty();
  std::vector<std::int64_t> periods, calls, waits;
  for (std::size_t i = 0; i + 1 < thread.calls.size(); ++i) {
    const Interval& call = thread.calls[i];
    periods.push_back(thread.calls[i + 1].first - call.first);
    calls.push_back(call.second - call.first);
    waits.push_back(Outside(call, busy));
  }
  wait.periods = periods.size();
  wait.period_us = MedianUs(std::move(periods));
  wait.call_us = MedianUs(std::move(calls));
  wait.wait_us = MedianUs(std::move(waits));
  return {};
}

}  // namespace

Result<std::vector<LoaderWait>> LoaderWaits(Database& database, std::int64_t run_id) {
  constexpr std::size_t kFewestCalls = 3;
  std::vector<std::pair<LoaderWait, CallsOfThread>> found;  // the busiest thread of each profile
  CallsOfThread thread;
  FOR_EACH_ROW(const LoaderCall& row, Query<LoaderCall>(database, {.run_id = run_id})) {
    const bool is_other = found.empty() || found.back().first.profile_id != row.profile_id;
    if (is_other) {
      LoaderWait wait;
      wait.profile_id = row.profile_id;
      wait.path = row.path;
      wait.rank = row.rank;
      wait.start_us = row.start_ns / 1000;
      found.emplace_back(std::move(wait), CallsOfThread{});
    }
    if (is_other || thread.thread_id != row.thread_id) thread = {row.thread_id, {}, {}};
    thread.calls.emplace_back(row.start_ns, row.end_ns);
    if (thread.name.empty()) thread.name = row.name;
    if (thread.calls.size() > found.back().second.calls.size()) found.back().second = thread;
  }
  std::vector<LoaderWait> waits;
  for (auto& [wait, calls] : found) {
    if (calls.calls.size() < kFewestCalls) continue;
    wait.name = calls.name;
    RETURN_IF_ERROR(FillTimes(database, calls, wait));
    waits.push_back(std::move(wait));
  }
  return waits;
}

}  // namespace tlparse
