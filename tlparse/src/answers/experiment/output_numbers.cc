#include "answers/experiment/output_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "facts/diff/digest_difference.h"
#include "facts/text/shorten.h"
#include "queries/answers/experiment/output_numbers.h"

namespace tlparse {
namespace {

// Another order of additions moves less.
constexpr double kMostShare = 1e-3;

// "norm 2.5 → 3"; empty: they are the same but for rounding.
std::string ChangeOf(const OutputNumbers& good, const OutputNumbers& other) {
  if (good.hash == other.hash) return "";
  if (good.nan_count != other.nan_count)
    return fmt::format("{} → {} NaN", good.nan_count, other.nan_count);
  if (good.inf_count != other.inf_count)
    return fmt::format("{} → {} infinite", good.inf_count, other.inf_count);
  if (!good.norm || !other.norm) return "its content";
  const double most = std::max(std::abs(*good.norm), std::abs(*other.norm));
  if (std::abs(*good.norm - *other.norm) <= kMostShare * most) return "";
  return fmt::format("norm {:.6g} → {:.6g}", *good.norm, *other.norm);
}

}  // namespace

Result<OutputsOfRun> LoadOutputs(Database& database, std::int64_t run_id) {
  OutputsOfRun outputs;
  ASSIGN_OR_RETURN(const bool has_digests, HasDigests(database));
  if (!has_digests) return outputs;
  FOR_EACH_ROW(const OutputOfRun& row, Query<OutputOfRun>(database, {.run_id = run_id})) {
    outputs[{row.rank.value_or(-1), std::string(row.label), std::string(row.graph),
             row.call.value_or(0), std::string(row.name)}] = {
        std::string(row.function), std::string(row.hash), row.norm, row.nan_count, row.inf_count};
  }
  return outputs;
}

Judgement JudgeOutputs(const OutputsOfRun& good, const OutputsOfRun& other) {
  std::size_t compared = 0, differing = 0;
  std::string first;
  for (const auto& [place, numbers] : good) {
    const auto found = other.find(place);
    if (found == other.end()) continue;
    ++compared;
    const std::string change = ChangeOf(numbers, found->second);
    if (change.empty() || differing++ > 0) continue;
    const auto& [rank, label, graph, call, name] = place;
    first = fmt::format("output {} of the {} graph of {} {}, call {}{}: {}", name, graph, label,
                        Shorten(numbers.function, 80), call,
                        rank < 0 ? "" : fmt::format(", rank {}", rank), change);
  }
  if (compared == 0)
    return {ExperimentVerdict::kInconclusive,
            "no output of a compiled graph is there in this run and in the good one",
            {}};
  if (differing == 0)
    return {ExperimentVerdict::kConfirmed,
            fmt::format("all {} outputs are as in the good run, but for rounding", compared),
            {}};
  return {
      ExperimentVerdict::kRefuted,
      fmt::format("{} of {} outputs differ from the good run's; {}", differing, compared, first),
      {}};
}

Result<std::string> RecordedNumbers(Database& database, std::int64_t run_id) {
  ASSIGN_OR_RETURN(const bool has_digests, HasDigests(database));
  if (!has_digests) return std::string();
  ASSIGN_OR_RETURN(const FirstRow<CallsOfRun> calls,
                   First(Query<CallsOfRun>(database, {.run_id = run_id})));
  if (calls->count == 0) return std::string();
  return fmt::format("{}", std::max<std::int64_t>(calls->every, 1));
}

}  // namespace tlparse
