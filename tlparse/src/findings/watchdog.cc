#include "findings/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
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

struct WatchedCall {
  std::string op;
  std::optional<std::int64_t> ran_ms, numel;
};
using WatchedCalls = std::map<std::pair<std::int64_t, std::int64_t>, WatchedCall>;  // rank, number

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

void AddGroup(FindingContext& context, const WatchedGroup& group, const WatchedCalls& calls) {
  const std::optional<std::int64_t> sequence = group.TimedOut();
  if (!sequence) return;
  std::vector<std::int64_t> in_it, before;
  WatchedCall call;
  for (const WatchedRank& one : group.ranks) {
    if (one.last_enqueued && *one.last_enqueued < *sequence) before.push_back(one.rank);
    if (one.sequence != sequence) continue;
    in_it.push_back(one.rank);
    const auto found = calls.find({one.rank, *sequence});
    if (found != calls.end() && call.op.empty()) call = found->second;
  }
  const std::string title = fmt::format("{} #{} of {}", call.op.empty() ? "collective" : call.op,
                                        *sequence, group.Title());
  const std::string ran =
      call.ran_ms ? fmt::format(" after {:.0f} s", static_cast<double>(*call.ran_ms) / 1e3) : "";
  Finding finding;
  finding.kind = before.empty() ? FindingKind::kStuck : FindingKind::kCollectiveNotReached;
  finding.severity = FindingSeverity::kError;
  finding.ranks = before.empty() ? in_it : before;
  finding.rank_count = finding.ranks.size();
  finding.title = before.empty() ? fmt::format("{} timed out on {}{}", title, RanksText(in_it), ran)
                                 : fmt::format("{} had not enqueued {}, which timed out on {}{}",
                                               RanksFirst(before), title, RanksText(in_it), ran);
  finding.cause = before.empty() ? "timed out" : "not enqueued";
  finding.detail = fmt::format(
      "By the text of NCCL's watchdog, last enqueued and last completed: {}.", HowFar(group));
  if (!before.empty())
    finding.detail += " A call that NCCL has not returned from counts as not enqueued.";
  if (before.empty())
    finding.detail +=
        " The ranks whose text is among the input had all enqueued it: the others are not known.";
  finding.suggestion =
      before.empty()
          ? "give tlparse the standard error of all ranks, or their recorder dumps "
            "(TORCH_FR_BUFFER_SIZE, before PyTorch 2.9 TORCH_NCCL_TRACE_BUFFER_SIZE)"
          : fmt::format("look at what {} did before it, in its stack or its recorder dump",
                        RanksText(before));
  std::string name = group.name;
  for (std::size_t at = 0; (at = name.find('\'', at)) != std::string::npos; at += 2)
    name.insert(at, "'");
  finding.query = fmt::format(
      "SELECT w.* FROM nccl_watchdog w JOIN profile p ON p.id = w.profile_id WHERE p.run_id = {} "
      "AND (w.group_name = '{}' OR w.event = 'timeout' AND w.sequence_number = {}) ORDER BY w.rank",
      context.job.run_id(), name, *sequence);
  const auto known =
      FindKnownCall(context.findings, fmt::format("#{} of {}", *sequence, group.Title()));
  if (known == context.findings.end()) {
    context.findings.push_back(std::move(finding));
    return;
  }
  known->severity = FindingSeverity::kError;
  known->evidence.push_back(std::move(finding));
}

}  // namespace

Result<void> FindInWatchdog(FindingContext& context) {
  ASSIGN_OR_RETURN(const std::vector<WatchedGroup> groups, LoadGroups(context));
  if (groups.empty()) return {};
  WatchedCalls calls;
  FOR_EACH_ROW(const WatchdogTimeout& row,
               Query<WatchdogTimeout>(context.database, {.run_id = context.job.run_id()}))
    calls[{row.rank.value_or(0), row.sequence_number}] = {std::string(row.op), row.ran_ms,
                                                          row.numel_in};
  for (const WatchedGroup& group : groups) AddGroup(context, group, calls);
  return {};
}

}  // namespace tlparse
