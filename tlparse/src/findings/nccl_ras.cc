// What reports of NCCL's RAS tell: processes that do not answer, and ranks that are behind the others of
// a communicator. A report is a moment: ranks of a healthy job differ in it too. That they have not moved
// until the next one says more.
#include "queries/findings/nccl_ras.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/plural.h"
#include "findings/context.h"

namespace tlparse {
namespace {

struct RasHolder {  // of a rank: its process
  std::optional<std::int64_t> pid;
  std::string node, gpus;
  std::int64_t count = 1;
};

struct RankGroup {
  std::int64_t id = 0;  // of its row
  std::optional<std::int64_t> rank;
  std::int64_t count = 0, launched = 0;
  std::string text;
  RasHolder holder;

  bool operator==(const RankGroup& other) const {
    return rank == other.rank && count == other.count && launched == other.launched;
  }
};

struct RasTopic {
  std::string communicator, topic, operation;
  auto operator<=>(const RasTopic&) const = default;
};

struct RasSnapshot {
  std::int64_t id = 0;
  std::optional<std::int64_t> gpu_count;
  std::map<std::string, std::vector<RasHolder>> silent;  // by state
  std::map<RasTopic, std::vector<RankGroup>> states;
  std::map<std::string, std::optional<std::int64_t>> sizes;  // by communicator
};

Result<std::vector<RasSnapshot>> LoadReports(FindingContext& context) {
  std::vector<RasSnapshot> reports;
  FOR_EACH_ROW(const RasReport& row,
               Query<RasReport>(context.database, {.run_id = context.job.run_id()}))
    reports.push_back(
        {.id = row.id, .gpu_count = row.gpu_count, .silent = {}, .states = {}, .sizes = {}});
  std::reverse(reports.begin(), reports.end());
  for (RasSnapshot& report : reports) {
    FOR_EACH_ROW(const RasProcess& row,
                 Query<RasProcess>(context.database, {.report_id = report.id}))
      report.silent[std::string(row.state)].push_back(
          {row.pid, std::string(row.node), std::string(row.gpus), row.process_count});
    FOR_EACH_ROW(const RasState& row, Query<RasState>(context.database, {.report_id = report.id})) {
      report.sizes[std::string(row.communicator)] = row.size;
      report
          .states[{std::string(row.communicator), std::string(row.topic),
                   std::string(row.operation)}]
          .push_back({row.id,
                      row.rank,
                      row.rank_count,
                      row.launched,
                      std::string(row.text),
                      {row.pid, std::string(row.node), {}, 1}});
    }
  }
  return reports;
}

std::string RanksOf(const std::vector<RankGroup>& groups) {
  std::vector<std::int64_t> named;
  std::int64_t counted = 0;
  for (const RankGroup& one : groups) {
    if (one.rank) {
      named.push_back(*one.rank);
    } else {
      counted += one.count;
    }
  }
  if (named.empty()) return Count(counted, "rank");
  return counted == 0 ? RanksText(named) : fmt::format("{} and {} more", RanksText(named), counted);
}

// "process 3487984 on node 172.16.64.213 (GPU 5)", "3 processes, the first 3487984 …"
std::string ProcessesOf(const std::vector<RasHolder>& holders) {
  std::int64_t count = 0;
  const RasHolder* named = nullptr;
  for (const RasHolder& one : holders) {
    count += one.count;
    if (named == nullptr && one.pid) named = &one;
  }
  std::string text = count == 1 ? "process" : Count(count, "process");
  if (named == nullptr) return text;
  text +=
      fmt::format("{}{} on node {}", count == 1 ? " " : ", the first ", *named->pid, named->node);
  return named->gpus.empty() ? text : fmt::format("{} (GPU {})", text, named->gpus);
}

// Ranks of a communicator of all GPUs of the job are those of the job.
void SetRasRanks(const RasSnapshot& report, const std::string& communicator,
                 const std::vector<RankGroup>& groups, Finding& finding) {
  const auto size = report.sizes.find(communicator);
  const bool is_of_all =
      size != report.sizes.end() && size->second && size->second == report.gpu_count;
  for (const RankGroup& one : groups) {
    finding.rank_count += static_cast<std::size_t>(one.count);
    if (is_of_all && one.rank) finding.ranks.push_back(*one.rank);
  }
  std::sort(finding.ranks.begin(), finding.ranks.end());
}

// The rows of one topic of a communicator.
std::string QueryOf(const std::vector<RankGroup>& groups) {
  return fmt::format(
      "SELECT s.* FROM nccl_ras_state s JOIN nccl_ras_state o ON o.report_id = s.report_id "
      "AND o.communicator = s.communicator AND o.topic = s.topic AND o.operation IS s.operation "
      "WHERE o.id = {}",
      groups.front().id);
}

// In how many reports, the last one and those just before it, this was the same.
template <typename Same>
std::size_t CountSame(const std::vector<RasSnapshot>& reports, const Same& same) {
  std::size_t count = 1;
  while (count < reports.size() && same(reports[reports.size() - 1 - count])) ++count;
  return count;
}

std::string InReports(std::size_t count) {
  return count < 2 ? "" : fmt::format(", the same in the last {} reports", count);
}

// The missing ranks of these processes. Those whose process is not named are of them if there are no
// others.
std::vector<RankGroup> RanksOfProcesses(const std::vector<RankGroup>& missing,
                                        const std::vector<RasHolder>& holders, bool are_all) {
  std::set<std::pair<std::int64_t, std::string_view>> processes;
  for (const RasHolder& one : holders) {
    if (one.pid) processes.emplace(*one.pid, one.node);
  }
  std::vector<RankGroup> own;
  for (const RankGroup& one : missing) {
    const RasHolder& of = one.holder;
    if (of.pid ? processes.contains({*of.pid, std::string_view(of.node)}) : are_all)
      own.push_back(one);
  }
  return own;
}

void AddSilent(FindingContext& context, const std::vector<RasSnapshot>& reports,
               const std::string& state, const std::vector<RasHolder>& holders) {
  const RasSnapshot& last = reports.back();
  const bool is_dead = state == "dead";
  const std::size_t times = CountSame(reports, [&](const RasSnapshot& other) {
    const auto found = other.silent.find(state);
    return found != other.silent.end() && found->second.size() == holders.size() &&
           std::equal(holders.begin(), holders.end(), found->second.begin(),
                      [](const RasHolder& a, const RasHolder& b) { return a.pid == b.pid; });
  });
  Finding finding;
  finding.kind = FindingKind::kCrashed;
  finding.severity = is_dead ? FindingSeverity::kError : FindingSeverity::kWarning;
  finding.title = is_dead ? fmt::format("NCCL's RAS holds {} for dead", ProcessesOf(holders))
                          : fmt::format("NCCL's RAS got no data from {}{}", ProcessesOf(holders),
                                        InReports(times));
  for (const auto& [topic, all] : last.states) {
    if (topic.topic != "missing" || finding.detail.size() > 200) continue;
    const std::vector<RankGroup> groups = RanksOfProcesses(all, holders, last.silent.size() == 1);
    if (groups.empty()) continue;
    finding.detail +=
        fmt::format("{}{} of communicator {}", finding.detail.empty() ? "Missing: " : "; ",
                    RanksOf(groups), topic.communicator);
    if (finding.ranks.empty()) {
      finding.rank_count = 0;
      SetRasRanks(last, topic.communicator, groups, finding);
    }
  }
  if (!finding.detail.empty()) finding.detail += ". ";
  finding.detail +=
      is_dead
          ? "It could not be reached for a minute: it ended, was stopped, or its network is cut."
          : "It ended, was stopped, or had not answered in time.";
  finding.cause = state;
  finding.suggestion = "look at the end of what that process printed, and whether it still runs";
  finding.needs_no_role = true;
  finding.query =
      fmt::format("SELECT p.* FROM nccl_ras_process p WHERE p.report_id = {} AND p.state = '{}'",
                  last.id, state);
  context.findings.push_back(std::move(finding));
}

// Ranks of a communicator that have launched fewer operations of a kind than others of it.
struct Behind {
  const RasTopic* topic = nullptr;
  const std::vector<RankGroup>* groups = nullptr;
  std::int64_t least = 0, most = 0;
  std::size_t times = 1;  // reports that say the same
};

std::vector<Behind> FindBehind(const std::vector<RasSnapshot>& reports) {
  std::vector<Behind> all;
  for (const auto& [topic, groups] : reports.back().states) {
    if (topic.topic != "launched") continue;
    const auto [least, most] = std::minmax_element(
        groups.begin(), groups.end(),
        [](const RankGroup& a, const RankGroup& b) { return a.launched < b.launched; });
    if (least->launched == most->launched) continue;
    const std::size_t times = CountSame(reports, [&key = topic, &now = groups](const auto& other) {
      const auto found = other.states.find(key);
      return found != other.states.end() && found->second == now;
    });
    all.push_back({&topic, &groups, least->launched, most->launched, times});
  }
  return all;
}

// One finding for all communicators: of the one whose numbers have stayed the same for longest, then of
// the one that differs most.
void AddBehind(FindingContext& context, const std::vector<RasSnapshot>& reports) {
  const std::vector<Behind> all = FindBehind(reports);
  if (all.empty()) return;
  const Behind& worst =
      *std::max_element(all.begin(), all.end(), [](const Behind& a, const Behind& b) {
        return std::pair(a.times, a.most - a.least) < std::pair(b.times, b.most - b.least);
      });
  std::vector<RankGroup> behind, ahead;
  for (const RankGroup& one : *worst.groups) {
    if (one.launched == worst.least) behind.push_back(one);
    if (one.launched == worst.most) ahead.push_back(one);
  }
  Finding finding;
  finding.kind = FindingKind::kCollectiveNotReached;
  finding.severity = worst.times > 1 ? FindingSeverity::kWarning : FindingSeverity::kNote;
  finding.title = fmt::format(
      "{} of communicator {} had launched {} {} operations, {} {}{}", RanksOf(behind),
      worst.topic->communicator, worst.least == 0 ? "no" : fmt::format("{}", worst.least),
      worst.topic->operation, RanksOf(ahead), worst.most, InReports(worst.times));
  if (finding.title[0] == 'r') finding.title[0] = 'R';
  finding.detail =
      worst.times > 1
          ? "By NCCL's RAS: none of them launched another one between these reports."
          : "By one report of NCCL's RAS: ranks of a healthy job differ for a moment too.";
  if (all.size() > 1)
    finding.detail += fmt::format(" Ranks differ in {} more, by communicator and operation.",
                                  Count(all.size() - 1, "number"));
  const RasHolder& holder = behind.front().holder;
  finding.suggestion =
      worst.times < 2
          ? "ask once more: numbers that have not changed are of a communicator that is stuck"
      : holder.pid ? fmt::format("look at what process {} on node {} does: py-spy dump --pid {}",
                                 *holder.pid, holder.node, *holder.pid)
                   : "ask with ncclras -v, which names more ranks";
  finding.cause = worst.topic->operation;
  finding.needs_no_role = true;
  SetRasRanks(reports.back(), worst.topic->communicator, behind, finding);
  finding.query = QueryOf(*worst.groups);
  context.findings.push_back(std::move(finding));
}

void AddErrors(FindingContext& context, const RasSnapshot& report) {
  const RasTopic* first = nullptr;
  std::size_t count = 0;
  for (const auto& [topic, groups] : report.states) {
    if (topic.topic != "error") continue;
    if (count++ == 0) first = &topic;
  }
  if (first == nullptr) return;
  const std::vector<RankGroup>& groups = report.states.at(*first);
  Finding finding;
  finding.kind = FindingKind::kCrashed;
  finding.severity = FindingSeverity::kError;
  finding.title = fmt::format("NCCL reports an error on {} of communicator {}: {}", RanksOf(groups),
                              first->communicator, groups.front().text);
  if (count > 1)
    finding.detail = fmt::format("{} more had errors.", Count(count - 1, "communicator"));
  finding.cause = groups.front().text;
  finding.suggestion = "NCCL_DEBUG=WARN prints where NCCL met it";
  finding.needs_no_role = true;
  SetRasRanks(report, first->communicator, groups, finding);
  finding.query = QueryOf(groups);
  context.findings.push_back(std::move(finding));
}

}  // namespace

Result<void> FindInRas(FindingContext& context) {
  ASSIGN_OR_RETURN(const std::vector<RasSnapshot> reports, LoadReports(context));
  if (reports.empty()) return {};
  for (const auto& [state, holders] : reports.back().silent)
    AddSilent(context, reports, state, holders);
  AddBehind(context, reports);
  AddErrors(context, reports.back());
  return {};
}

}  // namespace tlparse
