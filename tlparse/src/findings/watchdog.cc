#include "findings/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "queries/findings/watchdog.h"

namespace tlparse {
namespace {

struct WatchedRank {
  std::int64_t rank = 0;
  std::optional<std::int64_t> sequence, last_enqueued, last_completed;
};

struct WatchedGroup {
  std::string name, description;
  std::vector<WatchedRank> ranks;

  std::string Title() const {
    return description.empty() ? "group " + name : fmt::format("group {} ({})", description, name);
  }
  // The first that timed out; nothing: no line names one.
  std::optional<std::int64_t> TimedOut() const {
    std::optional<std::int64_t> first;
    for (const WatchedRank& one : ranks) {
      if (one.sequence && (!first || *one.sequence < *first)) first = one.sequence;
    }
    return first;
  }
};

// A collective that timed out on a rank.
struct WatchedCall {
  std::optional<std::int64_t> rank;
  std::int64_t sequence = 0;
  std::string op, group_name;  // group_name empty: the line has none
  std::optional<std::int64_t> ran_ms;

  std::string Name() const {
    return fmt::format("{} #{}", op.empty() ? "collective" : op, sequence);
  }
};

// "ALLREDUCE #1580 timed out on ranks 2,4".
struct TimedOutRanks {
  const WatchedCall* call = nullptr;
  std::vector<std::int64_t> ranks;  // empty: the line names none

  std::string Text() const {
    return fmt::format("{}{} timed out{}", call->Name(),
                       call->group_name.empty() ? "" : " of group " + call->group_name,
                       ranks.empty() ? "" : " on " + RanksText(ranks));
  }
};

constexpr std::string_view kGiveMore =
    "give tlparse the standard error of all ranks, or their recorder dumps (TORCH_FR_BUFFER_SIZE, "
    "before PyTorch 2.9 TORCH_NCCL_TRACE_BUFFER_SIZE)";
constexpr std::string_view kByText = "By the text of NCCL's watchdog";

Result<std::vector<WatchedGroup>> LoadGroups(FindingContext& context) {
  std::vector<WatchedGroup> groups;
  FOR_EACH_ROW(const WatchdogOfRank& row,
               Query<WatchdogOfRank>(context.database, {.run_id = context.job.run_id()})) {
    if (groups.empty() || groups.back().name != row.group_name)
      groups.push_back({std::string(row.group_name), {}, {}});
    WatchedGroup& group = groups.back();
    if (group.description.empty()) group.description = row.description;
    group.ranks.push_back({row.rank, row.sequence_number, row.last_enqueued, row.last_completed});
  }
  return groups;
}

std::string Number(const std::optional<std::int64_t>& number) {
  return !number ? "?" : *number < 0 ? "none" : fmt::format("#{}", *number);
}

// "rank 0: #167, #166; ranks 1,2: #166, #166": ranks that had come equally far together.
std::string HowFar(const WatchedGroup& group) {
  std::map<std::pair<std::string, std::string>, std::vector<std::int64_t>> by_state;
  for (const WatchedRank& one : group.ranks)
    by_state[{Number(one.last_enqueued), Number(one.last_completed)}].push_back(one.rank);
  std::string text;
  std::size_t count = 0;
  for (const auto& [state, ranks] : by_state) {
    if (++count > 6) return text + "; …";
    text += fmt::format("{}{}: {}, {}", text.empty() ? "" : "; ", RanksText(ranks), state.first,
                        state.second);
  }
  return text;
}

// What the dumps show of this call, or an error of theirs: it says why.
std::vector<Finding>::iterator FindKnownCall(std::vector<Finding>& findings,
                                             const std::string& call) {
  return std::find_if(findings.begin(), findings.end(), [&](const Finding& one) {
    const bool is_wait =
        one.kind == FindingKind::kCollectiveNotReached || one.kind == FindingKind::kStuck;
    return ((is_wait || one.kind == FindingKind::kCollectiveDivergence) &&
            one.severity == FindingSeverity::kError) ||
           (is_wait && one.title.find(call) != std::string::npos);
  });
}

std::string AfterSeconds(const std::optional<std::int64_t>& ran_ms) {
  return ran_ms ? fmt::format(" after {:.0f} s", static_cast<double>(*ran_ms) / 1e3) : "";
}

std::string RowsOf(const FindingContext& context, std::string_view condition) {
  return fmt::format(
      "SELECT w.* FROM nccl_watchdog w JOIN profile p ON p.id = w.profile_id "
      "WHERE p.run_id = {} AND ({}) "
      "ORDER BY w.rank",
      context.job.run_id(), condition);
}

// As evidence of what the dumps show of `call`, if they do.
void AddOrJoin(FindingContext& context, Finding finding, const std::string& call) {
  const auto known = FindKnownCall(context.findings, call);
  if (known == context.findings.end()) {
    context.findings.push_back(std::move(finding));
    return;
  }
  known->severity = FindingSeverity::kError;
  known->evidence.push_back(std::move(finding));
}

// What lines tell that say of no rank how far it had come.
struct Others {
  std::vector<TimedOutRanks>
      apart;  // one entry for each collective; the one with the most ranks first
  std::set<std::int64_t> signalled;  // ranks whose watchdogs told others of a time-out

  // A sentence on those of this collective, and on ranks that are in neither list; takes them out.
  std::string TakeOf(const WatchedCall& call, const std::vector<std::int64_t>& in_it,
                     const std::vector<std::int64_t>& before) {
    std::string text;
    const auto same = std::find_if(apart.begin(), apart.end(), [&](const TimedOutRanks& one) {
      return one.call->Name() == call.Name() && one.call->group_name.empty();
    });
    for (const std::int64_t rank : in_it) signalled.erase(rank);
    for (const std::int64_t rank : before) signalled.erase(rank);
    if (same != apart.end()) {
      text = fmt::format(" {} as well, by lines that name no group.", same->Text());
      for (const std::int64_t rank : same->ranks) signalled.erase(rank);
      apart.erase(same);
    }
    if (!signalled.empty())
      text += fmt::format(" A collective timed out on {} as well, by what {} told others.",
                          RanksText({signalled.begin(), signalled.end()}),
                          signalled.size() == 1 ? "it" : "they");
    signalled.clear();
    return text;
  }
};

void AddGroup(FindingContext& context, const WatchedGroup& group,
              const std::vector<WatchedCall>& calls, Others& others) {
  const std::optional<std::int64_t> sequence = group.TimedOut();
  if (!sequence) return;
  std::vector<std::int64_t> in_it, before;
  WatchedCall call;
  for (const WatchedRank& one : group.ranks) {
    if (one.last_enqueued && *one.last_enqueued < *sequence) before.push_back(one.rank);
    if (one.sequence != sequence) continue;
    in_it.push_back(one.rank);
    for (const WatchedCall& known : calls)
      if (known.rank == one.rank && known.sequence == *sequence && call.op.empty()) call = known;
  }
  call.sequence = *sequence;
  const std::string title = fmt::format("{} of {}", call.Name(), group.Title());
  const std::string ran = AfterSeconds(call.ran_ms);
  Finding finding;
  finding.kind = before.empty() ? FindingKind::kStuck : FindingKind::kCollectiveNotReached;
  finding.severity = FindingSeverity::kError;
  finding.ranks = before.empty() ? in_it : before;
  finding.rank_count = finding.ranks.size();
  finding.title = before.empty() ? fmt::format("{} timed out on {}{}", title, RanksText(in_it), ran)
                                 : fmt::format("{} had not enqueued {}, which timed out on {}{}",
                                               RanksFirst(before), title, RanksText(in_it), ran);
  finding.cause = before.empty() ? "timed out" : "not enqueued";
  finding.detail = fmt::format("{}, last enqueued and last completed: {}.", kByText, HowFar(group));
  if (!before.empty())
    finding.detail += " A call that NCCL has not returned from counts as not enqueued.";
  if (before.empty())
    finding.detail +=
        " The ranks whose text is among the input had all enqueued it: the others are not known.";
  finding.suggestion =
      before.empty()
          ? std::string(kGiveMore)
          : fmt::format("look at what {} did before it, in its stack or its recorder dump",
                        RanksText(before));
  std::string name = group.name;
  for (std::size_t at = 0; (at = name.find('\'', at)) != std::string::npos; at += 2)
    name.insert(at, "'");
  finding.detail += others.TakeOf(call, in_it, before);
  finding.query =
      RowsOf(context,
             fmt::format("w.group_name = '{}' OR (w.event = 'timeout' AND w.sequence_number = {})",
                         name, *sequence));
  AddOrJoin(context, std::move(finding), fmt::format("#{} of {}", *sequence, group.Title()));
}

// The first time-out of each rank that has no status line. Ranks with the same collective are one entry; the entry with
// the most ranks is the first.
std::vector<TimedOutRanks> Apart(const std::vector<WatchedCall>& calls,
                                 const std::vector<WatchedGroup>& groups) {
  std::map<std::string, TimedOutRanks> apart;
  std::set<std::int64_t> told;  // ranks: what else times out on one follows its first time-out
  for (const WatchedGroup& group : groups)
    for (const WatchedRank& one : group.ranks)
      if (one.sequence) told.insert(one.rank);
  for (const WatchedCall& call : calls) {
    if (call.rank && !told.insert(*call.rank).second) continue;
    TimedOutRanks& one = apart[call.Name() + " " + call.group_name];
    if (one.call == nullptr) one.call = &call;
    if (call.rank) one.ranks.push_back(*call.rank);
  }
  std::vector<TimedOutRanks> sorted;
  for (auto& [name, one] : apart) sorted.push_back(std::move(one));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.ranks.size() > b.ranks.size(); });
  return sorted;
}

void AddApart(FindingContext& context, const std::vector<TimedOutRanks>& apart) {
  if (apart.empty()) return;
  Finding finding;
  finding.kind = FindingKind::kStuck;
  finding.severity = FindingSeverity::kError;
  finding.ranks = apart.front().ranks;
  finding.rank_count = finding.ranks.size();
  finding.title = apart.front().Text() + AfterSeconds(apart.front().call->ran_ms);
  finding.cause = "timed out";
  finding.detail = fmt::format("{}, which does not say how far ranks had come{}.", kByText,
                               apart.front().call->group_name.empty() ? " or in which group" : "");
  constexpr std::size_t kMostOthers = 4;
  for (std::size_t i = 1; i < apart.size() && i <= kMostOthers; ++i)
    finding.detail += fmt::format(" {}.", apart[i].Text());
  if (apart.size() > kMostOthers + 1)
    finding.detail += fmt::format(" {} more timed out.", apart.size() - kMostOthers - 1);
  if (apart.size() > 1)
    finding.detail +=
        " Each group has numbers of its own: those of two calls tell who is behind only if they "
        "are "
        "of one group.";
  finding.suggestion = std::string(kGiveMore);
  finding.query = RowsOf(context, "w.event = 'timeout'");
  AddOrJoin(context, std::move(finding), apart.front().call->Name() + " ");
}

// A rank whose watchdog saw a time-out tells the others, with how far it had come in the group of all
// ranks, which need not be that of the collective.
void AddSignals(FindingContext& context, const std::vector<std::int64_t>& signalled,
                const std::vector<WatchedGroup>& groups) {
  Finding finding;
  finding.kind = FindingKind::kStuck;
  finding.severity = FindingSeverity::kError;
  finding.ranks = signalled;
  finding.rank_count = signalled.size();
  finding.title = fmt::format("A collective timed out on {}", RanksText(signalled));
  finding.cause = "timed out";
  finding.detail = fmt::format("{}, which does not name the collective.", kByText);
  for (const WatchedGroup& group : groups) {
    finding.detail +=
        fmt::format(" Last enqueued and last completed of {}: {}.", group.Title(), HowFar(group));
    const bool is_done =
        std::all_of(group.ranks.begin(), group.ranks.end(), [](const WatchedRank& one) {
          return one.last_enqueued && one.last_enqueued == one.last_completed;
        });
    if (is_done) finding.detail += " No call of these was open: it is of another group.";
  }
  finding.suggestion = std::string(kGiveMore);
  finding.query = RowsOf(context, "w.event = 'dump_signal'");
  AddOrJoin(context, std::move(finding), "#");
}

struct Hung {
  std::vector<std::int64_t> ranks;
  std::optional<std::int64_t> ran_ms;

  std::string Text() const {
    return fmt::format("NCCL's watchdog hung on {}{}", RanksText(ranks),
                       ran_ms ? fmt::format(" for {} s", *ran_ms / 1000) : "");
  }
};

// The watchdog calls CUDA and NCCL: where it hangs, one of these calls or a thread with a lock does.
void AddHung(FindingContext& context, const Hung& hung, bool is_alone) {
  if (hung.ranks.empty()) return;
  Finding finding;
  finding.kind = FindingKind::kStuck;
  finding.severity = FindingSeverity::kError;
  finding.ranks = hung.ranks;
  finding.rank_count = hung.ranks.size();
  finding.title = hung.Text();
  finding.cause = "watchdog";
  finding.detail =
      "By its text. A call of CUDA or NCCL did not return, or a thread that waits in CUDA holds "
      "the "
      "GIL; PyTorch ends such a process.";
  finding.suggestion =
      "look at the stacks of all threads (py-spy dump --native, gdb) while it hangs; "
      "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC is how long PyTorch waits for the watchdog";
  finding.query = RowsOf(context, "w.event = 'no_progress'");
  if (is_alone || context.findings.empty()) return AddOrJoin(context, std::move(finding), "#");
  context.findings.back().evidence.push_back(std::move(finding));
}

Result<std::vector<WatchedCall>> LoadCalls(FindingContext& context) {
  std::vector<WatchedCall> calls;
  FOR_EACH_ROW(const WatchdogTimeout& row,
               Query<WatchdogTimeout>(context.database, {.run_id = context.job.run_id()}))
    calls.push_back({row.rank, row.sequence_number, std::string(row.op),
                     std::string(row.group_name), row.ran_ms});
  return calls;
}

Result<std::set<std::int64_t>> LoadSignals(FindingContext& context) {
  std::set<std::int64_t> ranks;
  FOR_EACH_ROW(const WatchdogSignal& row,
               Query<WatchdogSignal>(context.database, {.run_id = context.job.run_id()}))
    ranks.insert(row.signal_rank);
  return ranks;
}

Result<Hung> LoadHung(FindingContext& context) {
  Hung hung;
  FOR_EACH_ROW(const WatchdogNoProgress& row,
               Query<WatchdogNoProgress>(context.database, {.run_id = context.job.run_id()})) {
    hung.ranks.push_back(row.rank);
    hung.ran_ms = std::max(hung.ran_ms, row.ran_ms);
  }
  return hung;
}

}  // namespace

Result<void> FindInWatchdog(FindingContext& context) {
  ASSIGN_OR_RETURN(const std::vector<WatchedGroup> groups, LoadGroups(context));
  ASSIGN_OR_RETURN(const std::vector<WatchedCall> calls, LoadCalls(context));
  ASSIGN_OR_RETURN(const Hung hung, LoadHung(context));
  ASSIGN_OR_RETURN(std::set<std::int64_t> signalled, LoadSignals(context));
  Others others{Apart(calls, groups), std::move(signalled)};
  bool is_named = !others.apart.empty();  // a collective that timed out is
  for (const WatchedGroup& group : groups) {
    is_named = is_named || group.TimedOut();
    AddGroup(context, group, calls, others);
  }
  AddApart(context, others.apart);
  const bool is_signalled = !is_named && !others.signalled.empty();
  if (is_signalled) AddSignals(context, {others.signalled.begin(), others.signalled.end()}, groups);
  AddHung(context, hung, !is_named && !is_signalled);
  return {};
}

}  // namespace tlparse
