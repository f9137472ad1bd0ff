// Logs that end before the others': who was first, in what.
#include "facts/ranks/ends.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/plural.h"
#include "facts/job/exits.h"
#include "facts/text/compile_label.h"
#include "findings/context.h"
#include "findings/damage.h"

namespace tlparse {
namespace {

class StopFinder {
 public:
  explicit StopFinder(FindingContext& context)
      : context_(context),
        job_(context.job),
        states_{.database = context.database,
                .job = context.job,
                .damage = context.ranks.damage,
                .status = context.status,
                .has_ranks = context.HasRanks()} {}

  Result<void> Run() {
    ASSIGN_OR_RETURN(chain_, FindEndChain(states_));
    ASSIGN_OR_RETURN(exits_, LoadExits(context_.database, job_.run_id()));
    stops_ = chain_.first;
    stops_.insert(stops_.end(), chain_.later.begin(), chain_.later.end());
    if (context_.HasRanks() && !stops_.empty()) Report();
    if (context_.HasRanks()) return {};
    for (const Stop& stop : stops_) {
      Finding& finding = context_.Add(FindingKind::kStoppedFirst, FindingSeverity::kError);
      const ProcessExit* const exit = ExitOf(exits_, context_.StatusOf(stop.rank).process_id);
      if (exit != nullptr && exit->WasAsked()) finding.severity = FindingSeverity::kNote;
      Describe(finding, {stop}, false);
    }
    return {};
  }

 private:
  void Report();
  void Describe(Finding& finding, const std::vector<Stop>& group, bool is_first);
  void DescribePlace(Finding& finding, const std::vector<Stop>& group, bool is_first);
  void DescribeInside(Finding& finding, const std::vector<Stop>& group, bool is_first);
  void DescribeWaiting(Finding& finding, const std::vector<Stop>& group);
  void DescribeBehind(Finding& finding, const std::vector<Stop>& group);
  void DescribeAll(Finding& finding);
  void AddOutside(Finding& finding, const std::vector<Stop>& stops,
                  const std::vector<RankIndex>& who, bool is_one_place);
  void SetPlace(Finding& finding, const std::vector<Stop>& group) const;
  void AddPlaces(Finding& finding, const std::vector<Stop>& stops);
  Finding* FailureBefore();
  bool HasRank(RankIndex one) const {
    return job_.participants()[static_cast<std::size_t>(one)].rank.has_value();
  }
  std::string Subject(const std::vector<RankIndex>& who) const;
  bool AreCut(const std::vector<Stop>& group) const {
    return std::all_of(group.begin(), group.end(),
                       [&](const Stop& stop) { return context_.IsCut(stop.rank); });
  }
  std::string LastRecords(const std::vector<Stop>& group) const;
  std::vector<RankIndex> Finished(const Stop& stop, const std::vector<RankIndex>& who) const;
  std::string HowEnded(const std::vector<Stop>& group) const;

  FindingContext& context_;
  const Job& job_;
  JobStatus states_;
  EndChain chain_;
  std::vector<Stop> stops_;  // of the chain
  std::vector<ProcessExit> exits_;
};

// What run.json knows of the ends of all of these; where it does not, or their logs are cut off, that the logs
// do not show it.
std::string StopFinder::HowEnded(const std::vector<Stop>& group) const {
  std::vector<std::int64_t> processes;
  for (const Stop& stop : group) processes.push_back(context_.StatusOf(stop.rank).process_id);
  const bool is_one = group.size() == 1;
  if (AreCut(group))
    return fmt::format(
        "What the process{} did after that is not known: {} may have ended there or gone on. ",
        is_one ? "" : "es", is_one ? "it" : "they");
  if (const std::string how = HowAllEnded(exits_, processes); !how.empty())
    return fmt::format("By run.json the process{} ended there with {}. ", is_one ? "" : "es", how);
  return is_one ? "The log does not show whether the process died there, was ended, or hung. "
                : "The logs do not show whether the processes died there, were ended, or hung. ";
}

std::vector<RankIndex> Ranks(const std::vector<Stop>& group) {
  std::vector<RankIndex> who;
  for (const Stop& stop : group) who.push_back(stop.rank);
  std::sort(who.begin(), who.end());
  return who;
}

// Where all of them end; empty: not in one phase.
std::string PhaseOf(const std::vector<Stop>& group) {
  const bool is_common = std::all_of(group.begin(), group.end(), [&](const Stop& stop) {
    return stop.phase == group.front().phase;
  });
  return is_common ? group.front().phase : std::string();
}

// "0.27 s before the last of all logs"; logs that end together are not "before".
std::string Before(std::int64_t us) {
  return us < 10'000 ? fmt::format("{} ms before the last of all logs", (us + 999) / 1000)
                     : SecondsText(us) + " before the last of all logs";
}

// When the last records were written, against the last of all logs.
std::string StopFinder::LastRecords(const std::vector<Stop>& group) const {
  std::int64_t first_us = INT64_MAX, last_us = 0;
  for (const Stop& stop : group) {
    const std::optional<std::int64_t> own_us = context_.StatusOf(stop.rank).last_record_us;
    if (!own_us) return {};
    first_us = std::min(first_us, *own_us);
    last_us = std::max(last_us, *own_us);
  }
  std::string text = first_us == last_us
                         ? fmt::format("{} last record is of {}",
                                       group.size() == 1 ? "Its" : "Their", ClockText(last_us))
                         : fmt::format("Their last records are of {} to {}", ClockText(first_us),
                                       ClockText(last_us));
  if (!context_.HasRanks() || job_.participants().size() < 2) return text + ".";
  const std::int64_t latest_us = LatestRecord(states_);
  return text + (latest_us > first_us
                     ? fmt::format(", {}{}.", first_us == last_us ? "" : "the first of them ",
                                   Before(latest_us - first_us))
                     : ", the last of all logs.");
}

// The other ranks that finished what this log ends inside: the compile, or its backward.
std::vector<RankIndex> StopFinder::Finished(const Stop& stop,
                                            const std::vector<RankIndex>& who) const {
  const JobCompile& own = *context_.LastCompile(stop.rank);
  const std::int32_t slot = own.slot;
  std::vector<RankIndex> finished;
  for (const RankIndex other : context_.Others(who)) {
    const std::int32_t index = job_.CompileOf(other, slot);
    if (index < 0) continue;
    const JobCompile& compile = job_.compiles()[static_cast<std::size_t>(index)];
    // In another program this id belongs to another function.
    if (context_.FunctionOf(compile) != context_.FunctionOf(own)) continue;
    const bool ends_there =
        context_.StatusOf(other).compile_id == compile.id &&
        (context_.StatusOf(other).state == RankState::kCompiling || context_.ReadableBytes(other));
    const bool has_same = context_.StatusOf(other).is_backward == stop.is_backward;
    const bool has_code = IsFinished(compile.status) && compile.status != CompileStatus::kSkipped &&
                          (!stop.is_backward || compile.backward_duration_us > 0);
    if (has_code && !(ends_there && has_same)) finished.push_back(other);
  }
  return finished;
}

// "Rank 2's log", "The logs of ranks 0,1", "Log a".
std::string StopFinder::Subject(const std::vector<RankIndex>& who) const {
  if (std::none_of(who.begin(), who.end(), [&](RankIndex one) { return HasRank(one); }))
    return context_.Who(who);
  return who.size() == 1 ? context_.Who(who) + "'s log" : "The logs of " + context_.WhoInside(who);
}

// The ranks, the time, and the compile that the first of them ends in.
void StopFinder::SetPlace(Finding& finding, const std::vector<Stop>& group) const {
  const Stop& first = group.front();
  const JobCompile& compile = *context_.LastCompile(first.rank);
  std::vector<std::int64_t> processes;
  for (const Stop& stop : group) processes.push_back(context_.StatusOf(stop.rank).process_id);
  context_.SetRanks(finding, Ranks(group));
  finding.since_us = context_.StatusOf(first.rank).last_record_us;
  finding.function = context_.FunctionOf(compile);
  finding.compiles = {job_.string(compile.label_id)};
  finding.query =
      fmt::format("SELECT * FROM rank_status WHERE process_id IN {}", IdList(processes));
  if (compile.file_id >= 0)
    finding.place = FindingPlace{job_.string(compile.file_id), compile.line, {}};
}

void StopFinder::Describe(Finding& finding, const std::vector<Stop>& group, bool is_first) {
  DescribePlace(finding, group, is_first);
  SayCut(context_, finding, Ranks(group));
}

void StopFinder::DescribePlace(Finding& finding, const std::vector<Stop>& group, bool is_first) {
  SetPlace(finding, group);
  if (!group.front().awaited.empty()) {
    DescribeWaiting(finding, group);
  } else if (group.front().is_inside) {
    DescribeInside(finding, group, is_first);
  } else {
    DescribeBehind(finding, group);
  }
  finding.detail += LastRecords(group);
}

void StopFinder::DescribeInside(Finding& finding, const std::vector<Stop>& group, bool is_first) {
  const Stop& first = group.front();
  const std::vector<RankIndex> who = Ranks(group);
  const std::string phase = PhaseOf(group);
  const std::string title = context_.Title(*context_.LastCompile(first.rank));
  const std::string what = first.is_backward ? "the backward of " + title : title;
  const std::vector<RankIndex> finished = Finished(first, who);
  const std::string whole = first.is_backward ? "the backward" : "the compile";
  finding.cause = "the log ends inside " + (phase.empty() ? whole : phase);
  const bool is_cut = AreCut(group);
  if (is_cut) finding.severity = FindingSeverity::kWarning;
  finding.title =
      fmt::format("{} {} {}inside {}{}", Subject(who),
                  is_cut            ? (who.size() == 1 ? "is cut off" : "are cut off")
                  : who.size() == 1 ? "ends"
                                    : "end",
                  is_first && !is_cut ? "first, " : "", what, phase.empty() ? "" : ", in " + phase);
  if (context_.HasRanks() && !finished.empty()) {
    finding.title += fmt::format("; {} finished that {}", context_.WhoInside(finished),
                                 first.is_backward ? "backward" : "compile");
  } else if (is_first) {
    std::int64_t next_us = INT64_MAX;
    std::vector<RankIndex> others;  // a rank stops once
    for (const Stop& stop : stops_) {
      if (std::binary_search(who.begin(), who.end(), stop.rank)) continue;
      next_us = std::min(next_us, stop.last_us);
      others.push_back(stop.rank);
    }
    if (next_us > first.last_us && next_us != INT64_MAX)
      finding.title +=
          fmt::format(", {} before {}", SecondsText(next_us - first.last_us),
                      others.size() == 1 ? context_.WhoInside(others) : std::string("the others"));
  }
  finding.detail = HowEnded(group);
}

// Ranks that wait for others: the cause lies there.
void StopFinder::DescribeWaiting(Finding& finding, const std::vector<Stop>& group) {
  const std::vector<RankIndex> who = Ranks(group);
  const std::vector<RankIndex>& awaited = group.front().awaited;
  finding.cause = fmt::format("{} waits for other ranks", kCompilerCollective);
  finding.title = fmt::format(
      "{} wait{} in {} of {} for {}", context_.Who(who), VerbS(who.size()), kCompilerCollective,
      context_.Title(*context_.LastCompile(group.front().rank)), context_.WhoInside(awaited));
  finding.detail =
      fmt::format("All ranks come to it before any of them compiles on, and {} did not. ",
                  context_.WhoInside(awaited));
  context_.SetRanks(finding, awaited);
}

void StopFinder::DescribeBehind(Finding& finding, const std::vector<Stop>& group) {
  const Stop& first = group.front();
  const std::vector<RankIndex> who = Ranks(group);
  const JobCompile& next = job_.compiles()[static_cast<std::size_t>(first.next_compile)];
  const std::string &function = context_.FunctionOf(next), &label = job_.string(next.label_id);
  std::vector<RankIndex> went_on;
  bool has_other_label = false;
  for (const RankIndex other : context_.Others(who)) {
    const std::int32_t index = job_.CompileOf(other, first.next_slot);
    if (index < 0) continue;
    const JobCompile& compile = job_.compiles()[static_cast<std::size_t>(index)];
    const ProcessStatus& status = context_.StatusOf(other);
    if (context_.FunctionOf(compile) != function ||
        (first.is_next_backward && compile.backward_duration_us <= 0 &&
         (status.compile_id != compile.id || !status.is_backward)))
      continue;
    went_on.push_back(other);
    has_other_label |= !IsWithoutId(label) && job_.string(compile.label_id) != label;
  }
  // Where others end inside compiles, the job ended there; where they wait for this rank, it did too.
  const bool ended_others =
      first.needs_all || std::any_of(stops_.begin(), stops_.end(), [&](const Stop& stop) {
        return stop.is_inside && !context_.IsCut(stop.rank);
      });
  finding.severity = ended_others ? FindingSeverity::kError : FindingSeverity::kWarning;
  const std::string last = context_.Title(*context_.LastCompile(first.rank));
  finding.ends_before = (first.is_next_backward ? "the backward of " : "") + function;
  finding.cause = "the log ends before " + finding.ends_before;
  finding.title =
      first.is_next_backward
          ? fmt::format("{} {} after the forward of {}; {} went on to its backward", Subject(who),
                        who.size() == 1 ? "ends" : "end", last, context_.WhoInside(went_on))
          : fmt::format("{} {} after {}; {} went on to {}", Subject(who),
                        who.size() == 1 ? "ends" : "end", last, context_.WhoInside(went_on),
                        has_other_label ? function : context_.Title(next));
}

// Logs that end inside compiles, and maybe others with them, and none shows that it was first.
void StopFinder::DescribeAll(Finding& finding) {
  std::vector<Stop> inside = stops_;
  std::erase_if(inside, [](const Stop& stop) { return !stop.is_inside; });
  SetPlace(finding, inside);
  const bool is_one_place = std::all_of(inside.begin(), inside.end(), [&](const Stop& stop) {
    return IsSamePlace(states_, stop, inside.front());
  });
  if (is_one_place) {
    DescribePlace(finding, inside, false);
  } else {
    finding.cause = "the logs end inside compiles";
    const bool is_cut = AreCut(inside);
    if (is_cut) finding.severity = FindingSeverity::kWarning;
    finding.title = fmt::format("{} {} inside compiles", Subject(Ranks(inside)),
                                is_cut ? "are cut off" : "end");
    finding.compiles.clear();
    for (const Stop& stop : inside)
      finding.compiles.push_back(job_.string(context_.LastCompile(stop.rank)->label_id));
    finding.compiles.erase(std::unique(finding.compiles.begin(), finding.compiles.end()),
                           finding.compiles.end());
    finding.detail = HowEnded(inside) + LastRecords(inside);
  }
  std::vector<RankIndex> who = Ranks(inside);
  who.insert(who.end(), chain_.outside.begin(), chain_.outside.end());
  std::sort(who.begin(), who.end());
  if (!chain_.outside.empty()) AddOutside(finding, inside, who, is_one_place);
  SayCut(context_, finding, who);
  finding.detail += " Which rank was the first to stop is not in the logs.";
}

// Those that end at the same time outside compiles are of the title as well.
void StopFinder::AddOutside(Finding& finding, const std::vector<Stop>& stops,
                            const std::vector<RankIndex>& who, bool is_one_place) {
  std::int64_t first_us = INT64_MAX;
  for (const RankIndex one : who)
    first_us = std::min(first_us, context_.StatusOf(one).last_record_us.value_or(INT64_MAX));
  const Stop& first = stops.front();
  const std::string title = context_.Title(*context_.LastCompile(first.rank));
  finding.title =
      fmt::format("{} end within {}: {} inside {}, {} outside compiles", Subject(who),
                  SecondsText(LatestRecord(states_) - first_us), context_.WhoInside(Ranks(stops)),
                  !is_one_place       ? std::string("compiles")
                  : first.is_backward ? "the backward of " + title
                                      : title,
                  context_.WhoInside(chain_.outside));
  finding.cause = "the logs end together";
  context_.SetRanks(finding, who);
}

// A finding for each place where some of the logs end.
void StopFinder::AddPlaces(Finding& finding, const std::vector<Stop>& stops) {
  std::map<std::tuple<std::int32_t, bool, bool, bool, std::string, std::string>, std::vector<Stop>>
      by_place;
  for (const Stop& stop : stops)
    by_place[{stop.position, stop.is_inside, stop.is_backward, stop.is_next_backward, stop.phase,
              context_.FunctionOf(*context_.LastCompile(stop.rank))}]
        .push_back(stop);
  for (const auto& [place, group] : by_place) {
    Finding evidence;
    evidence.kind = FindingKind::kStoppedFirst;
    Describe(evidence, group, false);
    evidence.severity = FindingSeverity::kNote;
    finding.evidence.push_back(std::move(evidence));
  }
}

// The finding about the failure after which these logs stopped; nullptr: there is none.
Finding* StopFinder::FailureBefore() {
  if (chain_.failure < 0) return nullptr;
  const FailedEnd& failure = chain_.failures[static_cast<std::size_t>(chain_.failure)];
  const auto& rank = job_.participants()[static_cast<std::size_t>(failure.rank)].rank;
  for (Finding& finding : context_.findings) {
    if (finding.kind == FindingKind::kCompileFailed && rank &&
        finding.severity == FindingSeverity::kError &&
        std::binary_search(finding.ranks.begin(), finding.ranks.end(), *rank))
      return &finding;
  }
  return nullptr;
}

void StopFinder::Report() {
  Finding* const earlier = FailureBefore();
  Finding finding;
  finding.kind = FindingKind::kStoppedFirst;
  finding.severity = FindingSeverity::kError;
  if (chain_.is_first_known) {
    Describe(finding, chain_.first, chain_.is_everyone);
    if (!chain_.waiting.empty())
      finding.detail += fmt::format(
          " {} waited after {} last record, by the dump{}: inside a collective that had not ended.",
          context_.Who(chain_.waiting), chain_.waiting.size() == 1 ? "its" : "their",
          PluralS(chain_.waiting.size()));
    AddPlaces(finding, chain_.later);
  } else {
    DescribeAll(finding);
    AddPlaces(finding, stops_);
    if (finding.evidence.size() == 1) finding.evidence.clear();
  }
  (earlier != nullptr ? earlier->evidence : context_.findings).push_back(std::move(finding));
}

}  // namespace

Result<void> FindEnds(FindingContext& context) {
  RETURN_IF_ERROR(FindFailures(context));
  RETURN_IF_ERROR(FindFailedTraces(context));
  if (context.live != nullptr) return {};
  return StopFinder(context).Run();
}

}  // namespace tlparse
