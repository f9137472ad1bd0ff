// Compile time of a function over runs: where it jumped, and what changed there.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/human_duration.h"
#include "fleet/fleet_answer.h"
#include "fleet/fleet_changes.h"
#include "fleet/fleet_jumps.h"
#include "fleet/sql_quote.h"

namespace tlparse {
namespace {

using Kind = FleetColumnOfAnswer::Kind;

struct RunTime {
  std::string job, day, run_id;
  double median_us = 0;
};

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

Result<FleetSection> ReadRunTimes(FleetReader& reader, const FleetQuestion& question) {
  return reader.Read(
      "runs",
      {{"job"},
       {"day"},
       {"run_id"},
       {"compiles", Kind::kInt},
       {"median_us", Kind::kInt},
       {"p95_us", Kind::kInt},
       {"start_us", Kind::kInt}},
      fmt::format("SELECT job, toString(day) AS d, toString(run_id) AS run, "
                  "count(), quantileExact(0.5)(assumeNotNull(duration_us)), "
                  "quantileExact(0.95)(assumeNotNull(duration_us)), min(start_time_us) FROM {} "
                  "WHERE {} AND function = {} AND duration_us IS NOT NULL AND duration_us > 0 "
                  "GROUP BY job, day, run_id ORDER BY job, d, min(ifNull(start_time_us, 0)), run",
                  reader.From("compile"), reader.Live(question), QuoteText(question.function)));
}

FleetSection JumpsSection() {
  return {"jumps",
          {{"job"},
           {"day"},
           {"run_id"},
           {"run_before"},
           {"ratio", Kind::kReal},
           {"before_us", Kind::kInt},
           {"after_us", Kind::kInt},
           {"first_day"},
           {"last_day"}},
          {}};
}

// "2026-09-21: layer_3 of job nightly went from 2.30 s to 3.22 s in run …"
std::string Sentence(const std::string& function, const std::vector<RunTime>& times,
                     const Jump& jump) {
  const RunTime& before = times[jump.first - 1];
  const RunTime& last = times[jump.last];
  const std::string change =
      fmt::format("{} of job {} went from {} to {} (medians of {} and {} runs)", function, last.job,
                  HumanMicroseconds(jump.before), HumanMicroseconds(jump.after), jump.runs_before,
                  jump.runs_after);
  if (jump.first < jump.last)
    return fmt::format(
        "{} to {}: {}. The runs differ too much to tell in which of {} of them, from run {} to {}",
        times[jump.first].day, last.day, change, jump.last - jump.first + 1,
        times[jump.first].run_id, last.run_id);
  const std::string gap = ParseDay(last.day) - ParseDay(before.day) > 1
                              ? "; the run before it is of " + before.day
                              : "";
  return fmt::format("{}: {} in run {}{}", last.day, change, last.run_id, gap);
}

// The runs of one job.
Result<void> AddJumps(FleetReader& reader, const FleetQuestion& question,
                      const std::vector<RunTime>& times, FleetSection& jumps, FleetSection& changes,
                      FleetAnswer& answer) {
  std::vector<double> medians;
  for (const RunTime& time : times) medians.push_back(time.median_us);
  for (const Jump& jump : FindJumps(medians)) {
    const RunTime& at = times[jump.at];
    const RunTime& before = times[jump.first - 1];
    const RunTime& last = times[jump.last];
    jumps.rows.push_back({at.job, at.day, at.run_id, before.run_id,
                          fmt::format("{:.3f}", jump.after / jump.before),
                          fmt::format("{:.0f}", jump.before), fmt::format("{:.0f}", jump.after),
                          times[jump.first].day, last.day});
    answer.notes.push_back(Sentence(question.function, times, jump));
    ASSIGN_OR_RETURN(const std::size_t count,
                     AddChanges(reader, before.run_id, last.run_id, question.function, changes));
    if (count == 0)
      answer.notes.push_back(fmt::format(
          "nothing that was pushed differs between runs {} and {}: neither components of "
          "cache keys, versions nor code",
          before.run_id, last.run_id));
  }
  return {};
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
  FleetSection jumps = JumpsSection();
  FleetSection changes = ChangesSection();
  for (const auto& [job, times] : of_job)
    RETURN_IF_ERROR(AddJumps(reader, question, times, jumps, changes, answer));
  answer.sections.push_back(std::move(jumps));
  answer.sections.push_back(std::move(changes));
  return answer;
}

}  // namespace tlparse
