// What makes a run of a bisection bad where it is not a finding: how it differs from the good run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "answers/experiment/outcome.h"
#include "answers/experiment/output_numbers.h"
#include "base/result.h"
#include "store/database.h"

namespace tlparse {

enum class Likeness { kNumbers, kCode, kTime };
std::string_view NameOf(Likeness likeness);  // "numbers", "code", "time"

// Code that Inductor generated for one graph, without what differs in each run (paths, addresses).
struct GeneratedCode {
  std::string function, hash;
};
// By rank (-1: none), label of the compile, and "forward", "backward 2". A graph that is compiled
// again under the same label replaces the one before.
using CodeOfRun = std::map<std::tuple<std::int64_t, std::string, std::string>, GeneratedCode>;

// The time of a step, where the good and the bad run have profiled steps, else of all compiles of
// the process that took longest.
struct TimeScale {
  bool is_step = false;
  double good_us = 0, bad_us = 0;
};

class GoodRun {
 public:
  // kUsage: the two runs do not show it, or are alike in it.
  static Result<GoodRun> Load(Likeness likeness, Database& good, const RunOutcome& good_run,
                              Database& bad, const RunOutcome& bad_run);

  // Refuted: the run is as the bad one. Confirmed: as the good one.
  Result<Judgement> Judge(Database& database, const RunOutcome& run) const;

  Likeness likeness() const { return likeness_; }

 private:
  Result<void> ScaleTimes(const RunOutcome& good_run, const RunOutcome& bad_run);
  Judgement JudgeCode(const CodeOfRun& other) const;
  Judgement JudgeTime(const RunOutcome& run) const;

  Likeness likeness_ = Likeness::kNumbers;
  OutputsOfRun outputs_;
  CodeOfRun codes_;
  TimeScale scale_;
};

// "steps 3 5", where `tlparse run` profiled these steps; empty: it did not.
Result<std::string> RecordedProfile(Database& database, std::int64_t run_id);

}  // namespace tlparse
