// Ranks that issued a collective long after the others.
#include "queries/facts/collectives/issued_late.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/median.h"
#include "facts/collectives/compile_spans.h"
#include "facts/collectives/issued_group.h"
#include "facts/collectives/issued_lines.h"
#include "facts/text/compile_label.h"

namespace tlparse {
namespace {

constexpr std::size_t kMostFindings = 8;

struct Arrival {
  std::size_t rank = 0;  // index into IssuedJob::ranks
  const IssuedCollective* call = nullptr;
  std::int64_t time_ns = 0;  // of the call, on one clock
  std::int64_t next_ns = 0;  // of the rank's next call in the group; 0: none
};
struct Line {
  const IssuedGroup* group = nullptr;
  std::vector<Arrival> arrivals;
};

// The ranks that came last, with the delay from the last of the others to the first of them.
struct Delay {
  const Line* line = nullptr;
  std::vector<std::size_t> late, early;
  Arrival first;  // of the late ones
  std::int64_t delay_ns = 0;
  std::size_t lines = 0;      // in which the same ranks came late
  std::int64_t least_ns = 0;  // of these
};

bool IsSentToOne(const IssuedCollective& call) {
  return call.plain_op == "reduce" || call.plain_op == "gather";
}

// The collectives that several ranks issued as one call, and in which some wait for the last; none after one
// that timed out.
std::vector<Line> LinesOf(const IssuedGroup& group) {
  std::map<std::int64_t, Line> by_sequence;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    const std::vector<IssuedCollective>& own = group.issued[i];
    for (std::size_t j = 0; j < own.size(); ++j) {
      std::vector<Arrival>& arrivals = by_sequence[own[j].sequence].arrivals;
      if (arrivals.empty() || arrivals.back().rank != group.ranks[i])
        arrivals.push_back({group.ranks[i], &own[j], own[j].start_ns,
                            j + 1 < own.size() ? own[j + 1].start_ns : 0});
    }
  }
  std::vector<Line> lines;
  for (auto& [sequence, line] : by_sequence) {
    const IssuedCollective& first = *line.arrivals.front().call;
    std::int64_t first_ns = first.start_ns, last_ns = first.start_ns;
    bool is_one_call = true;
    for (const Arrival& one : line.arrivals) {
      is_one_call = is_one_call && first.MayBeCallOf(*one.call);
      first_ns = std::min(first_ns, one.call->start_ns);
      last_ns = std::max(last_ns, one.call->start_ns);
    }
    if (first.timeout_ms > 0 && last_ns - first_ns > first.timeout_ms * 1'000'000) break;
    // In a reduce or gather the target waits. In a broadcast a rank that is late delays those to which it
    // passes the data on, and the source continues. If all wait, they may wait for the source.
    const auto waiting = static_cast<std::size_t>(std::count_if(
        line.arrivals.begin(), line.arrivals.end(),
        [&](const Arrival& one) { return one.call->start_ns < last_ns && one.next_ns > last_ns; }));
    const bool is_waited_for =
        NeedsAllRanks(first.plain_op) ||
        (waiting > 0 && (IsSentToOne(first) || waiting + 2 == line.arrivals.size()));
    if (!is_one_call || !is_waited_for || line.arrivals.size() < 2) continue;
    line.group = &group;
    lines.push_back(std::move(line));
  }
  return lines;
}

// Times that differ by the same in most collectives of a rank come from its host's clock, or from a
// pace that all collectives have; only what is beyond that is a delay. A rank that is early in most
// waits for the others: only by what it is early in all of them may its clock be behind.
void MoveToOneClock(std::vector<Line>& lines, std::size_t rank_count) {
  std::vector<std::vector<std::int64_t>> differences(rank_count);
  for (const Line& line : lines) {
    std::vector<std::int64_t> times;
    for (const Arrival& one : line.arrivals) times.push_back(one.time_ns);
    const std::int64_t middle = LowerMedian(std::move(times));
    for (const Arrival& one : line.arrivals) differences[one.rank].push_back(one.time_ns - middle);
  }
  std::vector<std::int64_t> usual(rank_count);
  for (std::size_t rank = 0; rank < rank_count; ++rank) {
    if (differences[rank].empty()) continue;
    const std::int64_t latest =
        *std::max_element(differences[rank].begin(), differences[rank].end());
    usual[rank] = LowerMedian(std::move(differences[rank]));
    if (usual[rank] < 0) usual[rank] = std::min<std::int64_t>(0, latest);
  }
  for (Line& line : lines) {
    for (Arrival& one : line.arrivals) one.time_ns -= usual[one.rank];
    std::stable_sort(line.arrivals.begin(), line.arrivals.end(),
                     [](const Arrival& a, const Arrival& b) { return a.time_ns < b.time_ns; });
  }
}

// The last ranks of a line, at most half of all: those that came longest after the one before.
// All came at once: none.
Delay DelayOf(const Line& line) {
  Delay delay;
  delay.line = &line;
  std::size_t first = 0;
  for (std::size_t i = (line.arrivals.size() + 1) / 2; i < line.arrivals.size(); ++i) {
    const std::int64_t gap_ns = line.arrivals[i].time_ns - line.arrivals[i - 1].time_ns;
    if (gap_ns <= delay.delay_ns) continue;
    delay.delay_ns = gap_ns;
    first = i;
  }
  if (first == 0) return delay;
  delay.first = line.arrivals[first];
  for (std::size_t i = 0; i < line.arrivals.size(); ++i)
    (i < first ? delay.early : delay.late).push_back(line.arrivals[i].rank);
  std::sort(delay.early.begin(), delay.early.end());
  std::sort(delay.late.begin(), delay.late.end());
  return delay;
}

// By which delays a delay is judged: those that nine tenths of the lines of its group stay below. Of a group
// with few lines that is not known: there half of all lines.
class UsualDelays {
 public:
  explicit UsualDelays(const std::vector<Delay>& delays) {
    for (const Delay& one : delays) {
      of_group_[one.line->group].push_back(one.delay_ns);
      of_all_.push_back(one.delay_ns);
    }
    for (auto& [group, own] : of_group_) std::sort(own.begin(), own.end());
    std::sort(of_all_.begin(), of_all_.end());
  }
  bool HasFewLines(const Delay& delay) const { return of_group_.at(delay.line->group).size() < 8; }
  bool IsLong(const Delay& delay, std::int64_t job_span_ns) const {
    constexpr std::int64_t kTimesUsual = 10, kTimesUsualOfAll = 3, kShareOfJob = 20,
                           kShareWithFewLines = 5;
    const auto& own = of_group_.at(delay.line->group);
    const bool are_few = HasFewLines(delay);
    const std::int64_t usual_ns = of_all_.size() == 1 ? 0
                                  : are_few           ? of_all_[(of_all_.size() - 1) / 2]
                                                      : own[(own.size() - 1) * 9 / 10];
    return delay.delay_ns >= (are_few ? kTimesUsualOfAll : kTimesUsual) * usual_ns &&
           (are_few ? kShareWithFewLines : kShareOfJob) * delay.delay_ns >= job_span_ns;
  }

 private:
  std::map<const IssuedGroup*, std::vector<std::int64_t>> of_group_;
  std::vector<std::int64_t> of_all_;
};

// Of delays that share most of their time the one that ended first: those that waited for its ranks came late
// elsewhere because of it.
void KeepFirst(std::vector<Delay>& delays) {
  std::stable_sort(delays.begin(), delays.end(), [](const Delay& a, const Delay& b) {
    return a.first.time_ns < b.first.time_ns;
  });
  std::vector<Delay> kept;
  for (Delay& one : delays) {
    const std::int64_t from_ns = one.first.time_ns - one.delay_ns;
    const bool is_behind = std::any_of(kept.begin(), kept.end(), [&](const Delay& earlier) {
      return 4 * (earlier.first.time_ns - from_ns) >= 3 * one.delay_ns;
    });
    if (!is_behind) kept.push_back(std::move(one));
  }
  delays = std::move(kept);
}

// The last collective that the rank issued before that time, on any group; nullptr: none is known.
std::pair<const IssuedGroup*, const IssuedCollective*> LastBefore(const IssuedJob& job,
                                                                  std::size_t rank,
                                                                  std::int64_t time_ns) {
  std::pair<const IssuedGroup*, const IssuedCollective*> last = {nullptr, nullptr};
  for (const IssuedGroup& group : job.groups) {
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      if (group.ranks[i] != rank) continue;
      for (const IssuedCollective& one : group.issued[i]) {
        if (one.start_ns < time_ns &&
            (last.second == nullptr || one.start_ns > last.second->start_ns))
          last = {&group, &one};
      }
    }
  }
  return last;
}

// "its log has records of that time for the compiles 0/1, 0/2"; empty: the times of its records are
// not known, or that time is too short.
Result<std::string> LogNote(Database& database, std::int64_t process_id, std::int64_t from_us,
                            std::int64_t to_us, bool& has_compiled) {
  if (to_us - from_us < kShortestTimeUs) return std::string();
  ASSIGN_OR_RETURN(const std::int64_t has_times,
                   database.QueryInt(fmt::format(
                       "SELECT time_shift_us IS NOT NULL FROM process WHERE id = {}", process_id)));
  if (has_times == 0) return std::string();
  constexpr std::size_t kMostLabels = 4;
  std::size_t labels = 0;
  std::string text, only;
  bool has_record = false;
  FOR_EACH_ROW(const LabelInTime& row,
               Query<LabelInTime>(database,
                                  {.process_id = process_id, .from_us = from_us, .to_us = to_us})) {
    has_record = true;
    if (!row.label) continue;
    if (++labels > kMostLabels) continue;
    text += (text.empty() ? "" : ", ") +
            (IsWithoutId(*row.label) ? "one without an id" : std::string(*row.label));
    only = *row.label;
  }
  has_compiled = labels > 0;
  if (!has_record) return std::string("its log has no record of that time");
  if (labels == 0) return std::string("its log has no compile in that time");
  if (labels == 1 && IsWithoutId(only))
    return fmt::format("its log has records of that time for {}", kCompileWithoutId);
  if (labels > kMostLabels) text += fmt::format(" and {} more", labels - kMostLabels);
  return "its log has records of that time for the compile" +
         std::string(labels == 1 ? " " : "s ") + text;
}

// Whether compiles may be why: a rank that slept while the others compiled, and compiled then what they
// did, came late by its sleep.
Result<std::optional<bool>> MayCompilesExplain(Database& database, const IssuedJob& job,
                                               const Delay& delay, std::int64_t from_ns) {
  const std::int64_t to_ns = delay.first.call->start_ns;
  ASSIGN_OR_RETURN(const std::vector<CompileSpan> compiles,
                   CompilesIn(database, job.run_id, from_ns, to_ns));
  const std::int64_t own_ns =
      CompiledIn(compiles, job.ranks[delay.first.rank].rank, from_ns, to_ns);
  if (own_ns == 0) return std::optional<bool>();
  std::int64_t others_ns = 0;
  for (const std::size_t other : delay.early)
    others_ns = std::max(others_ns, CompiledIn(compiles, job.ranks[other].rank, from_ns, to_ns));
  return std::optional(2 * (own_ns - others_ns) >= delay.delay_ns);
}

// Whether the rank took more than twice as long to its first call as the others, by the first record of
// their logs; and was there when they came, by its log, or since gloo makes no group without all ranks.
Result<bool> IsLateWithFirst(Database& database, const IssuedJob& job, const Delay& delay) {
  const std::int64_t from_us = (delay.first.call->start_ns - delay.delay_ns) / 1000;
  const auto first_record = [&](std::size_t rank) -> Result<std::int64_t> {
    const std::optional<std::int64_t> process = job.ranks[rank].process_id;
    if (!process) return INT64_MAX;
    return database.QueryInt(fmt::format(
        "SELECT ifnull(first_record_us, {}) FROM process WHERE id = {}", INT64_MAX, *process));
  };
  ASSIGN_OR_RETURN(std::int64_t first_us, first_record(delay.first.rank));
  if (first_us > from_us && !delay.first.call->op.starts_with("gloo:")) return false;
  for (const std::size_t other : delay.early) {
    ASSIGN_OR_RETURN(const std::int64_t of_other_us, first_record(other));
    first_us = std::min(first_us, of_other_us);
  }
  return first_us < from_us && delay.delay_ns / 1000 > from_us - first_us;
}

std::string_view WhatWaited(const IssuedCollective& call) {
  if (NeedsAllRanks(call.plain_op)) return "The others could not complete it";
  return IsSentToOne(call) ? "Its target could not complete it"
                           : "All others but its source issued no other call of the group";
}

Result<LateArrival> Describe(Database& database, const IssuedJob& job, const Delay& delay) {
  const IssuedCollective& call = *delay.first.call;
  const std::string late = RanksText(job, delay.late), early = RanksText(job, delay.early);
  const std::string delay_text = fmt::format("{:.1f} s", static_cast<double>(delay.delay_ns) / 1e9);
  LateArrival arrival;
  CollectiveFinding& finding = arrival.finding;
  finding.kind = FindingKind::kLateRank;
  // A barrier is there to wait in; and what is little of the job's time is no loss.
  constexpr std::int64_t kLeastShare = 4;
  const bool is_little =
      kLeastShare * delay.delay_ns * static_cast<std::int64_t>(delay.lines) < job.pace.span_ns;
  const bool is_barrier = call.plain_op.find("barrier") != call.plain_op.npos;
  finding.severity = is_barrier || is_little ? FindingSeverity::kNote : FindingSeverity::kWarning;
  finding.title =
      fmt::format("{} came to {} #{} of {} {} after {}", Capital(late), call.PrintedOp(),
                  call.sequence, delay.line->group->Title(), delay_text, early);
  finding.detail = fmt::format("{}. {} before that", call.Title(), WhatWaited(call));
  const std::int64_t moved_ns = delay.first.call->start_ns - delay.first.time_ns;
  if (std::abs(moved_ns) >= delay.delay_ns / 10)
    finding.detail += fmt::format(
        ". The recorded times differ by {:.1f} s more: so much does {} differ from the others "
        "in most collectives, by its clock or its pace",
        static_cast<double>(moved_ns) / 1e9, RanksText(job, {delay.first.rank}));
  if (delay.lines > 1)
    finding.detail += fmt::format(". It is the longest of {} delays of at least {:.1f} s",
                                  delay.lines, static_cast<double>(delay.least_ns) / 1e9);
  // What made it late began before the others came.
  const std::int64_t from_ns = call.start_ns - delay.delay_ns;
  const auto [group, before] = LastBefore(job, delay.first.rank, from_ns);
  const std::string one_late = RanksText(job, {delay.first.rank});
  if (before != nullptr)
    finding.detail +=
        fmt::format(". {} had issued #{} {} of {} {:.1f} s earlier", Capital(one_late),
                    before->sequence, before->Title(), group->Title(),
                    static_cast<double>(call.start_ns - before->start_ns) / 1e9);
  arrival.is_first = before == nullptr;
  if (const std::optional<std::int64_t> process = job.ranks[delay.first.rank].process_id) {
    ASSIGN_OR_RETURN(const std::string note, LogNote(database, *process, from_ns / 1000,
                                                     call.start_ns / 1000, arrival.has_compiled));
    if (arrival.has_compiled) {
      ASSIGN_OR_RETURN(
          const std::optional<bool> explain,
          MayCompilesExplain(database, job, delay, before == nullptr ? 0 : before->start_ns));
      arrival.has_compiled = explain.value_or(true);
      if (explain.value_or(false)) finding.severity = FindingSeverity::kNote;
    }
    if (!note.empty())
      finding.detail +=
          fmt::format("{}{}", before == nullptr ? ". Of " + one_late + ": " : "; ", note);
  }
  finding.ranks = delay.late;
  SetPlace(finding, *delay.line->group, call);
  finding.cause = "late at a collective";
  const std::string from = before == nullptr ? std::string() : before->Place(), to = call.Place();
  finding.advice = from.empty() || to.empty() || from == to
                       ? fmt::format("look at what {} did before it", one_late)
                       : fmt::format("look at what {} did between {} and {}", one_late, from, to);
  return arrival;
}

}  // namespace

Result<std::vector<LateArrival>> FindLateArrivals(Database& database, const IssuedJob& job) {
  std::vector<Line> lines;
  for (const IssuedGroup& group : job.groups) {
    for (Line& line : LinesOf(group)) lines.push_back(std::move(line));
  }
  MoveToOneClock(lines, job.ranks.size());
  std::vector<Delay> delays;
  for (const Line& line : lines) delays.push_back(DelayOf(line));
  const UsualDelays usual(delays);
  std::vector<Delay> long_delays;
  for (Delay& one : delays) {
    if (one.delay_ns < kShortestTimeUs * 1000 || !usual.IsLong(one, job.pace.span_ns)) continue;
    // Processes do not start at one time.
    const std::int64_t from_ns = one.first.call->start_ns - one.delay_ns;
    if (usual.HasFewLines(one) && LastBefore(job, one.first.rank, from_ns).second == nullptr) {
      ASSIGN_OR_RETURN(const bool is_late, IsLateWithFirst(database, job, one));
      if (!is_late) continue;
    }
    long_delays.push_back(std::move(one));
  }
  delays = std::move(long_delays);
  KeepFirst(delays);
  std::map<std::vector<std::size_t>, Delay> longest;  // by the late ranks
  for (Delay& delay : delays) {
    Delay& known = longest[delay.late];
    const std::size_t count = known.lines + 1;
    const std::int64_t least_ns =
        known.lines == 0 ? delay.delay_ns : std::min(known.least_ns, delay.delay_ns);
    if (delay.delay_ns > known.delay_ns) known = std::move(delay);
    known.lines = count;
    known.least_ns = least_ns;
  }
  std::vector<const Delay*> order;
  for (const auto& [ranks, delay] : longest) order.push_back(&delay);
  std::stable_sort(order.begin(), order.end(),
                   [](const Delay* a, const Delay* b) { return a->delay_ns > b->delay_ns; });
  const std::size_t left_out = order.size() - std::min(order.size(), kMostFindings);
  order.resize(order.size() - left_out);
  std::vector<LateArrival> arrivals;
  for (const Delay* delay : order) {
    ASSIGN_OR_RETURN(LateArrival arrival, Describe(database, job, *delay));
    arrivals.push_back(std::move(arrival));
  }
  if (left_out > 0)
    arrivals.back().finding.detail +=
        fmt::format(". {} more sets of ranks came late, by less", left_out);
  return arrivals;
}

Result<std::vector<CollectiveFinding>> FindAllOfIssued(Database& database, const IssuedJob& job) {
  ASSIGN_OR_RETURN(std::vector<CollectiveFinding> all, FindIssuedProblems(database, job));
  ASSIGN_OR_RETURN(std::vector<LateArrival> late, FindLateArrivals(database, job));
  for (LateArrival& arrival : late) all.push_back(std::move(arrival.finding));
  return all;
}

}  // namespace tlparse
