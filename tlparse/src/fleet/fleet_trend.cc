#include "fleet/fleet_trend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "fleet/cache_states.h"

namespace tlparse {
namespace {

std::int64_t Integer(const std::string& text) { return std::strtoll(text.c_str(), nullptr, 10); }

// run_id and the largest `value` that a process of it has.
std::string LargestOfProcess(FleetReader& reader, const FleetQuestion& question,
                             std::string_view table, std::string_view value,
                             std::string_view condition, std::string_view of_process = "1") {
  return fmt::format(
      "SELECT toString(run_id), toString(max(v)) "
      "FROM (SELECT run_id, load_id, process_id, {} AS v FROM {} "
      "WHERE {} AND {} GROUP BY run_id, load_id, process_id HAVING {}) AS p GROUP BY run_id",
      value, reader.From(table), reader.Live(question), condition, of_process);
}

class TrendReader {
 public:
  TrendReader(FleetReader& reader, const FleetQuestion& question)
      : reader_(reader), question_(question) {}

  Result<std::vector<TrendRun>> Run() {
    RETURN_IF_ERROR(ReadRuns());
    RETURN_IF_ERROR(
        Fill(LargestOfProcess(reader_, question_, "compile", kProcessCompileUs, "1", kHasAllTimes),
             [](TrendRun& run, const std::vector<std::string>& row) {
               run.compile_s = std::strtod(row[1].c_str(), nullptr) / 1e6;
             }));
    RETURN_IF_ERROR(
        Fill(LargestOfProcess(reader_, question_, "recompile", "count()", "ordinal = 0"),
             [](TrendRun& run, const std::vector<std::string>& row) {
               run.recompiles = Integer(row[1]);
             }));
    RETURN_IF_ERROR(Fill(LargestOfProcess(reader_, question_, "graph_break", "count()", "1"),
                         [](TrendRun& run, const std::vector<std::string>& row) {
                           run.graph_breaks = Integer(row[1]);
                         }));
    RETURN_IF_ERROR(
        Fill(fmt::format("SELECT toString(run_id), toString(countIf(state IN {2}) / count()) "
                         "FROM {0} WHERE {1} AND (state IN {2} OR state IN {3}) GROUP BY run_id",
                         reader_.From("cache_event"), reader_.Live(question_), StatesThat(IsHit),
                         StatesThat(IsMiss)),
             [](TrendRun& run, const std::vector<std::string>& row) {
               run.hit_rate = std::strtod(row[1].c_str(), nullptr);
             }));
    return std::move(runs_);
  }

 private:
  Result<void> ReadRuns() {
    ASSIGN_OR_RETURN(
        const auto rows,
        reader_.Rows(fmt::format("SELECT toString(run_id) AS run, "
                                 "toString(day) AS d, min(run_name), toString(sum(ranks)), "
                                 "toString(min(start_us)) "
                                 "FROM {} WHERE state = 1 AND {} GROUP BY job, day, run_id "
                                 "ORDER BY d DESC, min(start_us) DESC, run LIMIT {}",
                                 reader_.From("push"), reader_.Live(question_), question_.limit),
                     5));
    for (const auto& row : rows) {
      TrendRun& run = runs_.emplace_back();
      run.run_id = row[0];
      run.day = row[1];
      run.run_name = row[2];
      run.ranks = Integer(row[3]);
      run.start_us = Integer(row[4]);
    }
    std::reverse(runs_.begin(), runs_.end());
    for (std::size_t i = 0; i < runs_.size(); ++i) index_[runs_[i].run_id] = i;
    return {};
  }

  // Rows of two columns, run_id first.
  Result<void> Fill(const std::string& sql,
                    void (*set)(TrendRun&, const std::vector<std::string>&)) {
    ASSIGN_OR_RETURN(const auto rows, reader_.Rows(sql, 2));
    for (const auto& row : rows)
      if (const auto run = index_.find(row[0]); run != index_.end()) set(runs_[run->second], row);
    return {};
  }

  FleetReader& reader_;
  const FleetQuestion& question_;
  std::vector<TrendRun> runs_;
  std::map<std::string, std::size_t> index_;
};

}  // namespace

Result<std::vector<TrendRun>> ReadTrend(FleetReader& reader, const FleetQuestion& question) {
  return TrendReader(reader, question).Run();
}

}  // namespace tlparse
