// Compile time of a function over runs: where it jumped, and what changed there.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "analysis/ranks/cause.h"
#include "fleet/fleet_answer.h"
#include "fleet/fleet_changes.h"
#include "fleet/sql_quote.h"

namespace tlparse {
namespace {

using Kind = FleetColumnOfAnswer::Kind;

struct RunTime {
  std::string job, day, run_id;
  double median_us = 0;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Result<FleetAnswer> SlowestFunctions(FleetReader& reader, const FleetQuestion& question) {
  FleetAnswer answer;
  RETURN_IF_ERROR(reader.ReadInto(
      answer, "functions",
      {{"job"},
       {"function"},
       {"compiles", Kind::kInt},
       {"runs", Kind::kInt},
       {"median_us", Kind::kInt},
       {"p95_us", Kind::kInt},
       {"total_s", Kind::kReal}},
      fmt::format("SELECT job, ifNull(function, '') AS f, count() AS n, "
                  "uniqExact(run_id), quantileExact(0.5)(assumeNotNull(duration_us)), "
                  "quantileExact(0.95)(assumeNotNull(duration_us)), "
                  "round(sum(assumeNotNull(duration_us)) / 1e6, 6) AS total "
                  "FROM {} WHERE {} AND duration_us IS NOT NULL "
                  "GROUP BY job, f ORDER BY total DESC, n DESC, job, f LIMIT {}",
                  reader.From("compile"), reader.Live(question), question.limit)));
  return answer;
}

std::string Seconds(double us) { return fmt::format("{:.3g} s", us / 1e6); }

}  // namespace

std::optional<std::size_t> FindJump(const std::vector<double>& medians) {
  constexpr std::size_t kWindow = 5;
  constexpr double kLeastRatio = 1.1;
  std::optional<std::size_t> best;
  double best_score = 0;
  for (std::size_t k = 1; k < medians.size(); ++k) {
    const std::size_t before = std::min(kWindow, k);
    const std::size_t after = std::min(kWindow, medians.size() - k);
    const std::vector<double> left(medians.begin() + static_cast<std::ptrdiff_t>(k - before),
                                   medians.begin() + static_cast<std::ptrdiff_t>(k));
    const std::vector<double> right(medians.begin() + static_cast<std::ptrdiff_t>(k),
                                    medians.begin() + static_cast<std::ptrdiff_t>(k + after));
    double score = 0;
    for (const double value : right) score += std::log(value) / static_cast<double>(after);
    for (const double value : left) score -= std::log(value) / static_cast<double>(before);
    const double ratio = Median(right) / Median(left);
    // One run alone on a side may be an outlier, but it may be all there is.
    if (std::max(ratio, 1 / ratio) < kLeastRatio) continue;
    if (std::abs(score) > best_score) {
      best_score = std::abs(score);
      best = k;
    }
  }
  return best;
}

namespace {

Result<FleetSection> ReadRunTimes(FleetReader& reader, const FleetQuestion& question) {
  return reader.Read(
      "runs",
      {{"job"},
       {"day"},
       {"run_id"},
       {"compiles", Kind::kInt},
       {"median_us", Kind::kInt},
       {"p95_us", Kind::kInt}},
      fmt::format("SELECT job, toString(day) AS d, toString(run_id) AS run, "
                  "count(), quantileExact(0.5)(assumeNotNull(duration_us)), "
                  "quantileExact(0.95)(assumeNotNull(duration_us)) FROM {} "
                  "WHERE {} AND function = {} AND duration_us IS NOT NULL AND duration_us > 0 "
                  "GROUP BY job, day, run_id ORDER BY job, d, min(ifNull(start_time_us, 0)), run",
                  reader.From("compile"), reader.Live(question), QuoteText(question.function)));
}

}  // namespace

Result<FleetAnswer> FleetTime(FleetReader& reader, const FleetQuestion& question) {
  if (question.function.empty()) return SlowestFunctions(reader, question);
  FleetAnswer answer;
  ASSIGN_OR_RETURN(FleetSection runs, ReadRunTimes(reader, question));
  // Runs of one job follow each other.
  std::map<std::string, std::vector<RunTime>> of_job;
  for (const auto& row : runs.rows) {
    of_job[*row[0]].push_back(
        {*row[0], *row[1], *row[2], std::strtod(row[4].value_or("0").c_str(), nullptr)});
  }
  answer.sections.push_back(std::move(runs));
  FleetSection jumps{"jumps",
                     {{"job"},
                      {"day"},
                      {"run_id"},
                      {"run_before"},
                      {"ratio", Kind::kReal},
                      {"before_us", Kind::kInt},
                      {"after_us", Kind::kInt}},
                     {}};
  FleetSection changes = ChangesSection();
  for (const auto& [job, times] : of_job) {
    std::vector<double> medians;
    for (const RunTime& time : times) medians.push_back(time.median_us);
    const std::optional<std::size_t> jump = FindJump(medians);
    if (!jump) continue;
    const RunTime& before = times[*jump - 1];
    const RunTime& after = times[*jump];
    jumps.rows.push_back({job, after.day, after.run_id, before.run_id,
                          fmt::format("{:.3f}", after.median_us / before.median_us),
                          fmt::format("{:.0f}", before.median_us),
                          fmt::format("{:.0f}", after.median_us)});
    answer.notes.push_back(fmt::format("{}: {} of job {} went from {} to {} in run {}", after.day,
                                       question.function, job, Seconds(before.median_us),
                                       Seconds(after.median_us), after.run_id));
    ASSIGN_OR_RETURN(const std::size_t count,
                     AddChanges(reader, before.run_id, after.run_id, question.function, changes));
    if (count == 0)
      answer.notes.push_back(fmt::format(
          "nothing that was pushed differs between runs {} and {}: neither components of "
          "cache keys, versions nor code",
          before.run_id, after.run_id));
  }
  answer.sections.push_back(std::move(jumps));
  answer.sections.push_back(std::move(changes));
  return answer;
}

}  // namespace tlparse
