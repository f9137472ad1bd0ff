#include "answers/experiment/good_run.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/human_duration.h"
#include "base/plural.h"
#include "facts/text/shorten.h"
#include "queries/answers/experiment/good_run.h"

namespace tlparse {
namespace {

constexpr double kLeastSlowdown = 1.2;  // below it, two runs of one command differ by chance

Result<CodeOfRun> LoadCodes(Database& database, std::int64_t run_id) {
  CodeOfRun codes;
  std::map<std::pair<std::int64_t, std::string>, int> seen;  // in a compile, of a direction
  FOR_EACH_ROW(const CodeOfExperiment& row, Query<CodeOfExperiment>(database, {.run_id = run_id})) {
    std::string title = row.direction.empty() ? "graph" : std::string(row.direction);
    const int count = ++seen[{row.compile_id, title}];
    if (count > 1) title += fmt::format(" {}", count);
    codes[{row.rank.value_or(-1), std::string(row.label), std::move(title)}] = {
        std::string(row.function), std::string(row.hash)};
  }
  return codes;
}

std::string_view NameOfTime(bool is_step) { return is_step ? "step time" : "compile time"; }

}  // namespace

std::string_view NameOf(Likeness likeness) {
  constexpr std::string_view kNames[] = {"numbers", "code", "time"};
  return kNames[static_cast<int>(likeness)];
}

Result<GoodRun> GoodRun::Load(Likeness likeness, Database& good, const RunOutcome& good_run,
                              Database& bad, const RunOutcome& bad_run) {
  GoodRun made;
  made.likeness_ = likeness;
  if (likeness == Likeness::kNumbers) {
    ASSIGN_OR_RETURN(made.outputs_, LoadOutputs(good, good_run.run_id));
  } else if (likeness == Likeness::kCode) {
    ASSIGN_OR_RETURN(made.codes_, LoadCodes(good, good_run.run_id));
  } else {
    RETURN_IF_ERROR(made.ScaleTimes(good_run, bad_run));
  }
  ASSIGN_OR_RETURN(const Judgement judgement, made.Judge(bad, bad_run));
  if (judgement.verdict == ExperimentVerdict::kRefuted) return made;
  const bool lacks_numbers =
      likeness == Likeness::kNumbers && judgement.verdict == ExperimentVerdict::kInconclusive;
  return Fail(ErrorCode::kUsage,
              fmt::format("bisect: {}{}", judgement.reason,
                          lacks_numbers ? "; record both with 'tlparse run --numbers'" : ""));
}

Result<void> GoodRun::ScaleTimes(const RunOutcome& good_run, const RunOutcome& bad_run) {
  scale_.is_step = good_run.step_us && bad_run.step_us;
  const auto of = [&](const RunOutcome& run) {
    return static_cast<double>((scale_.is_step ? run.step_us : run.compile_us).value_or(0));
  };
  scale_.good_us = of(good_run);
  scale_.bad_us = of(bad_run);
  if (scale_.good_us <= 0 || scale_.bad_us <= 0)
    return Fail(ErrorCode::kUsage,
                "bisect: one of the runs has neither profiled steps nor compile time; record both "
                "with 'tlparse run --profile'");
  const std::int64_t hits = scale_.is_step ? 0 : good_run.cache_hits + bad_run.cache_hits;
  if (hits > 0)
    return Fail(ErrorCode::kUsage,
                fmt::format("bisect: the compile times of the runs are not to be compared: they "
                            "have {}; record both with TORCHINDUCTOR_FORCE_DISABLE_CACHES=1, or, "
                            "for the time of steps, with 'tlparse run --profile'",
                            Count(hits, "cache hit")));
  if (scale_.bad_us < kLeastSlowdown * scale_.good_us)
    return Fail(ErrorCode::kUsage,
                fmt::format("bisect: the bad run's {}, {}, is not a fifth above the good one's, {}",
                            NameOfTime(scale_.is_step), HumanMicroseconds(scale_.bad_us),
                            HumanMicroseconds(scale_.good_us)));
  return {};
}

Result<Judgement> GoodRun::Judge(Database& database, const RunOutcome& run) const {
  if (likeness_ == Likeness::kNumbers) {
    ASSIGN_OR_RETURN(const OutputsOfRun outputs, LoadOutputs(database, run.run_id));
    return JudgeOutputs(outputs_, outputs);
  }
  if (likeness_ == Likeness::kTime) return JudgeTime(run);
  ASSIGN_OR_RETURN(const CodeOfRun codes, LoadCodes(database, run.run_id));
  return JudgeCode(codes);
}

Judgement GoodRun::JudgeCode(const CodeOfRun& other) const {
  std::size_t compared = 0, differing = 0;
  std::string first;
  for (const auto& [place, code] : codes_) {
    const auto found = other.find(place);
    if (found == other.end()) continue;
    ++compared;
    if (found->second.hash == code.hash || differing++ > 0) continue;
    const auto& [rank, label, title] = place;
    first = fmt::format("{} of {} {}{}", title, label, Shorten(code.function, 80),
                        rank < 0 ? "" : fmt::format(", rank {}", rank));
  }
  if (compared == 0)
    return {ExperimentVerdict::kInconclusive,
            "no generated code of a graph is there in this run and in the good one",
            {}};
  if (differing == 0)
    return {ExperimentVerdict::kConfirmed,
            fmt::format("{} as in the good run",
                        compared == 1 ? std::string("the generated code is")
                                      : fmt::format("all {} generated codes are", compared)),
            {}};
  return {ExperimentVerdict::kRefuted,
          fmt::format("{} of {} generated codes {} from the good run's: {}{}", differing, compared,
                      differing == 1 ? "differs" : "differ", first, differing > 1 ? ", …" : ""),
          {}};
}

Judgement GoodRun::JudgeTime(const RunOutcome& run) const {
  const std::string_view name = NameOfTime(scale_.is_step);
  const auto us = static_cast<double>((scale_.is_step ? run.step_us : run.compile_us).value_or(0));
  if (us <= 0)
    return {ExperimentVerdict::kInconclusive, fmt::format("the new run has no {}", name), {}};
  if (!scale_.is_step && run.cache_hits > 0)
    return {ExperimentVerdict::kInconclusive,
            fmt::format("{} of caches made its compile time", Count(run.cache_hits, "hit")),
            {}};
  const double middle = std::sqrt(scale_.good_us) * std::sqrt(scale_.bad_us);
  const bool is_bad = us > middle;
  return {is_bad ? ExperimentVerdict::kRefuted : ExperimentVerdict::kConfirmed,
          fmt::format("{} {}: nearer to the {} run's {} than to the {} run's {}", name,
                      HumanMicroseconds(us), is_bad ? "bad" : "good",
                      HumanMicroseconds(is_bad ? scale_.bad_us : scale_.good_us),
                      is_bad ? "good" : "bad",
                      HumanMicroseconds(is_bad ? scale_.good_us : scale_.bad_us)),
          {}};
}

Result<std::string> RecordedProfile(Database& database, std::int64_t run_id) {
  ASSIGN_OR_RETURN(const FirstRow<ProfiledStepOfRun> steps,
                   First(Query<ProfiledStepOfRun>(database, {.run_id = run_id})));
  if (!steps || steps->first_step < 2) return std::string();
  return fmt::format("steps {} {}", steps->first_step, steps->last_step);
}

}  // namespace tlparse
