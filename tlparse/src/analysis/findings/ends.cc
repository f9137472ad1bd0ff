// Logs that end before the others': who was first, in what.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/findings/advice.h"
#include "analysis/findings/context.h"
#include "analysis/ranks/cause.h"

namespace tlparse {
namespace {

// A participant whose log ends inside a compile, or before compiles that most others have.
struct Stop {
  RankIndex rank = 0;
  std::int32_t position = -1;  // of its last compile among the job's
  bool is_inside = true;
  std::int64_t last_us = 0;
  std::int32_t next_slot = -1;  // not inside: the compile that the others went on to
};

std::string Clock(std::int64_t us) {
  return fmt::format("{:%H:%M:%S}.{:03} UTC", fmt::gmtime(static_cast<std::time_t>(us / 1'000'000)),
                     us / 1000 % 1000);
}

class StopFinder {
 public:
  explicit StopFinder(FindingContext& context) : context_(context), job_(context.job) {}

  void Run() {
    FindInside();
    if (context_.HasRanks()) FindBehind();
    if (stops_.empty()) return;
    std::sort(stops_.begin(), stops_.end(), [](const Stop& a, const Stop& b) {
      return std::tuple(a.position, a.last_us, a.rank) < std::tuple(b.position, b.last_us, b.rank);
    });
    if (!context_.HasRanks()) {
      for (const Stop& stop : stops_) {
        Finding& finding = context_.Add(FindingKind::kStoppedFirst, FindingSeverity::kError);
        Describe(finding, {stop}, {});
      }
      return;
    }
    Report();
  }

 private:
  void FindInside();
  void FindBehind();
  void Report();
  void Describe(Finding& finding, const std::vector<Stop>& group, const std::vector<Stop>& later);
  std::string Inside(const std::vector<Stop>& group) const;
  std::string PhaseOf(const std::vector<Stop>& group) const;
  std::string LastRecords(const std::vector<Stop>& group) const;
  std::int64_t LatestRecord() const;
  bool IsRank(RankIndex one) const {
    const JobParticipant& participant = job_.participants()[static_cast<std::size_t>(one)];
    return participant.rank && !participant.is_extra_log;
  }

  FindingContext& context_;
  const Job& job_;
  std::vector<Stop> stops_;
};

void StopFinder::FindInside() {
  for (const RankIndex rank : context_.All()) {
    const ProcessStatus& status = context_.StatusOf(rank);
    const JobCompile* compile = context_.LastCompile(rank);
    if (status.state != RankState::kCompiling || compile == nullptr || compile->slot < 0 ||
        context_.ReadableBytes(rank))
      continue;
    stops_.push_back({rank, job_.SlotPosition(compile->slot), true,
                      status.last_record_us.value_or(INT64_MAX), -1});
  }
}

// Ranks that lack nothing but the last compiles that most others have, and whose log ends before
// the others'.
void StopFinder::FindBehind() {
  // A log without rank, or a further one of a rank, is of a helper of the job.
  std::vector<RankIndex> ranks = context_.All();
  std::erase_if(ranks, [&](RankIndex one) { return !IsRank(one); });
  const std::size_t count = ranks.size();
  if (count < 3) return;
  std::vector<std::size_t> having(job_.slots().size());
  for (const JobCompile& compile : job_.compiles()) {
    if (compile.slot >= 0 && !compile.is_synthetic && IsRank(compile.participant))
      ++having[static_cast<std::size_t>(compile.slot)];
  }
  std::vector<Stop> behind;
  for (const RankIndex rank : ranks) {
    const ProcessStatus& status = context_.StatusOf(rank);
    if (status.state != RankState::kBetweenCompiles || status.compile_id == 0 ||
        !status.last_record_us || context_.ReadableBytes(rank))
      continue;
    std::int32_t last = -1, missing = -1, next_slot = -1;
    bool is_prefix = true;
    for (const std::int32_t slot : job_.slot_order()) {
      const bool is_common = 2 * having[static_cast<std::size_t>(slot)] > count;
      const bool has_it = job_.CompileOf(rank, slot) >= 0;
      if (has_it) last = job_.SlotPosition(slot);
      if (is_common && !has_it && missing < 0) missing = job_.SlotPosition(slot), next_slot = slot;
      if (has_it && (!is_common || missing >= 0)) is_prefix = false;
    }
    if (is_prefix && missing >= 0)
      behind.push_back({rank, last, false, *status.last_record_us, next_slot});
  }
  std::erase_if(behind, [&](const Stop& stop) {
    // The others' next compile began after this log had ended.
    for (const JobCompile& compile : job_.compiles()) {
      if (compile.slot == stop.next_slot && compile.start_us != 0 &&
          compile.start_us + 5'000'000 < stop.last_us)
        return true;
    }
    return stop.last_us >= LatestRecord();
  });
  if (2 * behind.size() < count) stops_.insert(stops_.end(), behind.begin(), behind.end());
}

std::int64_t StopFinder::LatestRecord() const {
  std::int64_t latest = 0;
  for (const ProcessStatus& status : context_.status)
    latest = std::max(latest, status.last_record_us.value_or(0));
  return latest;
}

// With the phase, if it is that of all.
std::string StopFinder::Inside(const std::vector<Stop>& group) const {
  std::string text = context_.Title(*context_.LastCompile(group.front().rank));
  const std::string phase = PhaseOf(group);
  return phase.empty() ? text : text + ", in " + phase;
}

std::string StopFinder::PhaseOf(const std::vector<Stop>& group) const {
  const std::string& phase = context_.StatusOf(group.front().rank).phase;
  const bool is_common = std::all_of(group.begin(), group.end(), [&](const Stop& stop) {
    return context_.StatusOf(stop.rank).phase == phase;
  });
  return is_common ? phase : std::string();
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
  std::string text =
      first_us == last_us
          ? fmt::format("{} last record is of {}", group.size() == 1 ? "Its" : "Their",
                        Clock(last_us))
          : fmt::format("Their last records are of {} to {}", Clock(first_us), Clock(last_us));
  if (!context_.HasRanks() || job_.participants().size() < 2) return text + ".";
  const std::int64_t latest_us = LatestRecord();
  return text + (latest_us > first_us ? fmt::format(", {}{} before the last of all logs.",
                                                    first_us == last_us ? "" : "the first of them ",
                                                    SecondsText(latest_us - first_us))
                                      : ", the last of all logs.");
}

void StopFinder::Describe(Finding& finding, const std::vector<Stop>& group,
                          const std::vector<Stop>& later) {
  const Stop& first = group.front();
  const ProcessStatus& status = context_.StatusOf(first.rank);
  const JobCompile& compile = *context_.LastCompile(first.rank);
  std::vector<RankIndex> who;
  std::vector<std::int64_t> processes;
  for (const Stop& stop : group) {
    who.push_back(stop.rank);
    processes.push_back(context_.StatusOf(stop.rank).process_id);
  }
  std::sort(who.begin(), who.end());
  context_.SetRanks(finding, who);
  finding.since_us = status.last_record_us;
  finding.function = context_.FunctionOf(compile);
  finding.compiles = {job_.string(compile.label_id)};
  finding.query =
      fmt::format("SELECT * FROM rank_status WHERE process_id IN {}", IdList(processes));
  if (compile.file_id >= 0)
    finding.place = FindingPlace{job_.string(compile.file_id), compile.line, {}};
  const bool has_rank = std::any_of(who.begin(), who.end(), [&](RankIndex one) {
    return job_.participants()[static_cast<std::size_t>(one)].rank.has_value();
  });
  const std::string subject = !has_rank         ? context_.Who(who)
                              : who.size() == 1 ? context_.Who(who) + "'s log"
                                                : "The logs of " + context_.WhoInside(who);
  const char* ends = who.size() == 1 ? "ends" : "end";
  std::vector<RankIndex> finished;
  for (const RankIndex other : context_.Others(who)) {
    const std::int32_t index = job_.CompileOf(other, compile.slot);
    if (index >= 0 &&
        job_.string(job_.compiles()[static_cast<std::size_t>(index)].status_id) != "unfinished" &&
        context_.StatusOf(other).state != RankState::kFailed)
      finished.push_back(other);
  }
  if (first.is_inside) {
    const std::string phase = PhaseOf(group);
    finding.cause = "the log ends inside " + (phase.empty() ? std::string("the compile") : phase);
    finding.title = fmt::format("{} {} inside {}", subject, ends, Inside(group));
    if (context_.HasRanks() && !finished.empty()) {
      finding.title += fmt::format("; {} finished that compile", context_.WhoInside(finished));
    } else if (!later.empty()) {
      finding.title = fmt::format("{} {} first, inside {}", subject, ends, Inside(group));
      if (later.front().last_us > first.last_us && later.front().last_us != INT64_MAX)
        finding.title +=
            fmt::format(", {} before the next", SecondsText(later.front().last_us - first.last_us));
    }
    finding.detail =
        group.size() == 1
            ? "The log does not show whether the process died there, was ended, or hung. "
            : "The logs do not show whether the processes died there, were ended, or hung. ";
  } else {
    const JobSlot& next = job_.slots()[static_cast<std::size_t>(first.next_slot)];
    std::vector<RankIndex> went_on;
    for (const RankIndex other : context_.Others(who)) {
      if (job_.CompileOf(other, first.next_slot) >= 0) went_on.push_back(other);
    }
    finding.severity = FindingSeverity::kWarning;
    finding.cause = "the log ends before " + next.function;
    finding.title = fmt::format("{} {} after {}; {} went on to {}", subject, ends,
                                context_.Title(compile), context_.WhoInside(went_on), next.Title());
  }
  finding.detail += LastRecords(group);
  if (std::any_of(group.begin(), group.end(),
                  [&](const Stop& stop) { return context_.IsCut(stop.rank); }))
    finding.detail +=
        group.size() == 1
            ? " The log's last record is incomplete: it is cut off, or damaged."
            : " The last record of some of the logs is incomplete: cut off, or damaged.";
}

void StopFinder::Report() {
  const std::vector<RankIndex> all = context_.All();
  const auto unread = static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(), [&](RankIndex rank) { return context_.ReadableBytes(rank); }));
  const bool is_everyone = stops_.size() + unread == all.size();
  std::vector<Stop> group, later;
  for (const Stop& stop : stops_) {
    const Stop& first = stops_.front();
    // Where all end inside a compile, only the times of their last records show who was first.
    const bool is_first = stop.position == first.position && stop.is_inside == first.is_inside &&
                          (!is_everyone || stop.last_us == first.last_us);
    (is_first ? group : later).push_back(stop);
  }
  // A rank whose last compile failed before is what the others may have stopped for.
  Finding* earlier = nullptr;
  for (Finding& finding : context_.findings) {
    if (finding.kind == FindingKind::kCompileFailed && !finding.ranks.empty() && finding.since_us &&
        *finding.since_us <= stops_.front().last_us &&
        finding.detail.find("last compile in the log") != std::string::npos)
      earlier = &finding;
  }
  Finding finding;
  finding.kind = FindingKind::kStoppedFirst;
  finding.severity = FindingSeverity::kError;
  Describe(finding, group, later);
  // The others, by where they ended.
  std::map<std::pair<std::int32_t, std::string>, std::vector<Stop>> by_place;
  for (const Stop& stop : later)
    by_place[{stop.position, context_.StatusOf(stop.rank).phase}].push_back(stop);
  for (const auto& [place, stops] : by_place) {
    Finding evidence;
    evidence.kind = FindingKind::kStoppedFirst;
    evidence.severity = FindingSeverity::kNote;
    Describe(evidence, stops, {});
    evidence.severity = FindingSeverity::kNote;
    finding.evidence.push_back(std::move(evidence));
  }
  if (earlier != nullptr) {
    earlier->evidence.push_back(std::move(finding));
  } else {
    context_.findings.push_back(std::move(finding));
  }
}

}  // namespace

Result<void> FindEnds(FindingContext& context) {
  RETURN_IF_ERROR(FindFailures(context));
  if (context.live == nullptr) StopFinder(context).Run();
  return {};
}

}  // namespace tlparse
