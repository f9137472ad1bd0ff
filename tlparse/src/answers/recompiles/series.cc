#include "answers/recompiles/series.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "artifacts/common/text/recompile_limit.h"
#include "facts/compiles/advice.h"
#include "facts/compiles/recompile_reasons.h"
#include "queries/answers/recompiles/series.h"

namespace tlparse {
namespace {

struct Span {
  std::int64_t from_us = 0, to_us = 0;
};
// When others waited in collectives for a rank: by run, launch and rank.
using Waits = std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::vector<Span>>;

// Of one process.
struct Extent {
  std::optional<std::int64_t> rank;
  std::int64_t pid = 0, recompiles = 0, refused = 0, lost_us = 0;
  bool has_time = false;
  std::vector<std::string> values = {};
  std::vector<Span> compiled = {};
};

struct Growing {
  RecompileSeries series;
  std::map<std::int64_t, Extent> of_process;
  std::set<std::int64_t> ranks, pids;
};

using FunctionName = std::tuple<std::int64_t, std::int64_t, std::string, std::string, std::int64_t>;
using SeriesKey = std::tuple<FunctionName, std::string, std::string, bool>;

struct Reason {
  FunctionName function;  // run, launch, name, file, line
  std::string run, label, reason, user_file;
  std::int64_t user_line = 0;
  std::optional<std::int64_t> rank;
  std::int64_t pid = 0, process = 0;
  std::optional<std::int64_t> lost_us = {};
  bool is_refused = false, is_of_torch_logs = false;
  RecompileReason parsed = {};
  Span compiled = {};  // the forward; 0: not known
};

class SeriesCollector {
 public:
  void Add(const Reason& reason);
  void SetLimit(const FunctionName& function) { limited_.insert(function); }
  std::vector<RecompileSeries> Take(const Waits& waits);
  bool empty() const { return all_.empty(); }

 private:
  std::map<SeriesKey, Growing> all_;
  std::set<FunctionName> limited_;
};

void AddValue(const std::string& value, std::vector<std::string>& values) {
  if (!value.empty() && std::find(values.begin(), values.end(), value) == values.end())
    values.push_back(value);
}

void SeriesCollector::Add(const Reason& reason) {
  const RecompileReason& parsed = reason.parsed;
  std::string guard = parsed.subject.empty() ? parsed.text : parsed.subject;
  if (guard.empty()) guard = reason.reason;
  const auto [found, is_new] =
      all_.try_emplace(SeriesKey{reason.function, guard, parsed.at, reason.is_of_torch_logs});
  Growing& one = found->second;
  RecompileSeries& series = one.series;
  if (is_new) {
    series.run = reason.run;
    const std::int64_t launch = std::get<1>(reason.function);
    if (launch > 0) series.launch = launch;
    series.function = std::get<2>(reason.function);
    series.file = std::get<3>(reason.function);
    series.line = std::get<4>(reason.function);
    series.guard = std::move(guard);
    series.at = parsed.at;
    if (!reason.user_file.empty()) series.user_file = WholePath(reason.user_file, series.file);
    series.user_line = reason.user_line;
    series.is_of_torch_logs = reason.is_of_torch_logs;
  }
  AddValue(reason.label, series.compiles);
  Extent& extent =
      one.of_process.try_emplace(reason.process, Extent{reason.rank, reason.pid}).first->second;
  AddValue(parsed.value, extent.values);
  AddValue(parsed.actual, extent.values);
  ++(reason.is_refused ? extent.refused : extent.recompiles);
  extent.lost_us += reason.lost_us.value_or(0);
  extent.has_time |= reason.lost_us.has_value();
  if (reason.compiled.from_us > 0) extent.compiled.push_back(reason.compiled);
  if (reason.rank) {
    one.ranks.insert(*reason.rank);
  } else if (!reason.is_of_torch_logs) {
    one.pids.insert(reason.pid);
  }
  if (reason.is_refused) SetLimit(reason.function);
}

void SetValues(const std::map<std::int64_t, Extent>& of_process, RecompileSeries& series) {
  const auto count = [](const auto& one) { return one.second.recompiles + one.second.refused; };
  const Extent& most =
      std::max_element(of_process.begin(), of_process.end(), [&](const auto& a, const auto& b) {
        return count(a) < count(b);
      })->second;
  series.values = most.values;
  const bool have_these = std::all_of(of_process.begin(), of_process.end(), [&](const auto& one) {
    const std::vector<std::string>& own = one.second.values;
    return own.size() <= most.values.size() &&
           std::equal(own.begin(), own.end(), most.values.begin());
  });
  if (have_these) return;
  series.values_rank = most.rank;
  if (!most.rank) series.values_pid = most.pid;
}

// How much of the compiles another rank waited for; calls that share time count once.
std::int64_t WaitedUs(const std::vector<Span>& compiled, const std::vector<Span>& waits) {
  std::vector<Span> both;
  for (const Span& one : compiled) {
    for (const Span& wait : waits) {
      const Span shared{std::max(one.from_us, wait.from_us), std::min(one.to_us, wait.to_us)};
      if (shared.from_us < shared.to_us) both.push_back(shared);
    }
  }
  std::sort(both.begin(), both.end(),
            [](const Span& a, const Span& b) { return a.from_us < b.from_us; });
  std::int64_t sum_us = 0, reached_us = 0;
  for (const Span& one : both) {
    sum_us += std::max<std::int64_t>(0, one.to_us - std::max(one.from_us, reached_us));
    reached_us = std::max(reached_us, one.to_us);
  }
  return sum_us;
}

Result<Waits> LoadWaits(Database& database, const std::optional<std::int64_t>& run_id) {
  Waits waits;
  FOR_EACH_ROW(const AwaitedInCollective& row,
               Query<AwaitedInCollective>(database, {.run_id = run_id}))
    waits[{row.run_id, row.launch.value_or(0), row.rank}].push_back({row.from_us, row.to_us});
  return waits;
}

std::vector<RecompileSeries> SeriesCollector::Take(const Waits& waits) {
  std::vector<RecompileSeries> result;
  for (auto& [key, one] : all_) {
    RecompileSeries& series = one.series;
    series.least_recompiles = INT64_MAX;
    for (const auto& [process, extent] : one.of_process) {
      series.recompiles = std::max(series.recompiles, extent.recompiles);
      series.least_recompiles = std::min(series.least_recompiles, extent.recompiles);
      series.refused = std::max(series.refused, extent.refused);
      if (extent.has_time)
        series.seconds_lost =
            std::max(series.seconds_lost.value_or(0), static_cast<double>(extent.lost_us) / 1e6);
      const auto& function = std::get<0>(key);
      const auto of_rank =
          waits.find({std::get<0>(function), std::get<1>(function), extent.rank.value_or(-1)});
      if (of_rank == waits.end()) continue;
      const auto waited_s = static_cast<double>(WaitedUs(extent.compiled, of_rank->second)) / 1e6;
      series.others_waited_s = std::max(series.others_waited_s.value_or(0), waited_s);
    }
    SetValues(one.of_process, series);
    series.is_limit_reached = limited_.contains(std::get<0>(key));
    series.ranks.assign(one.ranks.begin(), one.ranks.end());
    series.pids.assign(one.pids.begin(), one.pids.end());
    result.push_back(std::move(series));
  }
  std::stable_sort(
      result.begin(), result.end(), [](const RecompileSeries& a, const RecompileSeries& b) {
        return std::make_tuple(a.is_limit_reached, a.seconds_lost.value_or(0), a.recompiles) >
               std::make_tuple(b.is_limit_reached, b.seconds_lost.value_or(0), b.recompiles);
      });
  return result;
}

// The compiles that the limit refused.
Result<std::set<std::int64_t>> LoadRefused(Database& database, const RecompileFilter& filter,
                                           SeriesCollector& collector) {
  std::set<std::int64_t> refused;
  FOR_EACH_ROW(const ExceptionOfCompile& row,
               Query<ExceptionOfCompile>(database, {.rank = filter.asked.rank,
                                                    .run_id = filter.run_id,
                                                    .launch = filter.launch,
                                                    .pid = filter.asked.pid})) {
    if (!IsRecompileLimit(row.type, row.reason)) continue;
    refused.insert(row.compile_id);
    collector.SetLimit({row.run_id, row.launch.value_or(0), std::string(row.function),
                        std::string(row.file), row.line});
  }
  return refused;
}

// Of each compile one of the earlier ones that were tried.
void AddTelling(const std::vector<std::vector<Reason>>& compiles, SeriesCollector& collector) {
  std::map<std::pair<std::int64_t, FunctionName>, ComparedValues> compared;
  const auto values_of = [&](const Reason& one) -> ComparedValues& {
    return compared[{one.process, one.function}];
  };
  for (const std::vector<Reason>& tried : compiles) {
    for (const Reason& one : tried) values_of(one).Add(one.parsed);
  }
  for (const std::vector<Reason>& tried : compiles) {
    std::vector<const RecompileReason*> reasons;
    for (const Reason& one : tried) reasons.push_back(&one.parsed);
    collector.Add(tried[values_of(tried.front()).Telling(reasons)]);
  }
}

}  // namespace

Result<std::vector<RecompileSeries>> FindRecompileSeries(Database& database,
                                                         const RecompileFilter& filter) {
  SeriesCollector collector;
  ASSIGN_OR_RETURN(const std::set<std::int64_t> refused, LoadRefused(database, filter, collector));
  std::vector<std::vector<Reason>> compiles;  // of each what it failed on
  std::int64_t compile_id = 0;
  FOR_EACH_ROW(const ReasonOfCompile& row,
               Query<ReasonOfCompile>(database, {.rank = filter.asked.rank,
                                                 .run_id = filter.run_id,
                                                 .launch = filter.launch,
                                                 .pid = filter.asked.pid})) {
    if (compiles.empty() || row.compile_id != compile_id) compiles.emplace_back();
    compile_id = row.compile_id;
    compiles.back().push_back(
        {{row.run_id, row.launch.value_or(0), std::string(row.function), std::string(row.file),
          row.line},
         std::string(row.run),
         std::string(row.label),
         std::string(row.reason),
         std::string(row.user_file),
         row.user_line,
         row.rank,
         row.pid,
         row.process_id,
         row.lost_us,
         refused.contains(row.compile_id),
         false,
         ParseRecompileReason(row.guard, row.reason, row.user_file, row.user_line),
         {row.start_us.value_or(0), row.start_us.value_or(0) + row.duration_us}});
  }
  AddTelling(compiles, collector);
  Waits waits;
  if (!collector.empty()) {
    ASSIGN_OR_RETURN(waits, LoadWaits(database, filter.run_id));
  }
  if (filter.launch || filter.asked.pid) return collector.Take(waits);
  FOR_EACH_ROW(const ReasonInText& row, Query<ReasonInText>(database, {.rank = filter.asked.rank,
                                                                       .run_id = filter.run_id})) {
    Reason reason{
        {row.run_id, 0, std::string(row.function), std::string(row.file), row.function_line},
        std::string(row.run),
        std::string(row.label),
        std::string(row.reason),
        {},
        0,
        row.rank};
    reason.parsed = ParseRecompileReason(row.guard, row.reason, {}, 0);
    reason.process = -row.profile_id;
    reason.is_refused = row.is_refused;
    reason.is_of_torch_logs = true;
    collector.Add(reason);
  }
  return collector.Take(waits);
}

}  // namespace tlparse
