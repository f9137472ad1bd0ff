#include "facts/cost/loader_waits.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "artifacts/common/text/python_traceback.h"
#include "inputs/common/generated_code.h"
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

// In which function of the user the calls were.
Result<void> FillFrame(Database& database, const CallsOfThread& thread, LoaderWait& wait) {
  constexpr double kLeastShare = 0.5;
  std::map<std::string, std::int64_t> times;  // by function, with what it calls
  std::int64_t total = 0;
  for (const Interval& call : thread.calls) total += call.second - call.first;
  std::size_t at = 0;
  FOR_EACH_ROW(const FrameOfThread& row,
               Query<FrameOfThread>(
                   database, {.profile_id = wait.profile_id, .thread_id = thread.thread_id})) {
    if (!IsUserFile(FileOfFrame(row.name))) continue;
    while (at < thread.calls.size() && thread.calls[at].second <= row.start_ns) ++at;
    if (at == thread.calls.size()) break;
    if (row.start_ns >= thread.calls[at].first && row.end_ns <= thread.calls[at].second)
      times[std::string(row.name)] += row.end_ns - row.start_ns;
  }
  std::int64_t least = INT64_MAX;
  for (const auto& [name, time] : times) {
    if (static_cast<double>(time) < kLeastShare * static_cast<double>(total) || time >= least)
      continue;
    least = time;
    wait.frame = name;
    wait.frame_share =
        static_cast<double>(time) / static_cast<double>(std::max<std::int64_t>(total, 1));
  }
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
    RETURN_IF_ERROR(FillFrame(database, calls, wait));
    waits.push_back(std::move(wait));
  }
  return waits;
}

}  // namespace tlparse
