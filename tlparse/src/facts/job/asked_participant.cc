#include "facts/job/asked_participant.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/plural.h"
#include "queries/facts/job/asked_participant.h"

namespace tlparse {
namespace {

// "41, 42"
std::string PidsText(const std::set<std::int64_t>& pids) {
  constexpr std::size_t kMost = 8;
  std::string text;
  std::size_t count = 0;
  for (const std::int64_t pid : pids) {
    if (++count > kMost) return text + fmt::format(", … ({} in all)", pids.size());
    text += fmt::format("{}{}", count > 1 ? ", " : "", pid);
  }
  return text;
}

}  // namespace

std::string AskedParticipant::Text() const {
  if (!pid) return fmt::format("rank {}", rank.value_or(0));
  return fmt::format("process {}{}", *pid, rank ? fmt::format(" of rank {}", *rank) : "");
}

std::string AskedParticipant::Only(std::size_t left_out, std::string_view what) const {
  std::string text = "only what involves " + Text();
  if (left_out > 0) text += fmt::format("; left out: {} of others", Count(left_out, what));
  return text;
}

std::vector<RankIndex> AskedParticipant::In(const Job& job) const {
  std::set<std::int64_t> of_pid;
  for (const RunParticipant& log : job.all_logs()) {
    for (const ParticipantProcess& process : log.processes)
      if (process.pid == pid) of_pid.insert(process.id);
  }
  std::vector<RankIndex> found;
  for (std::size_t i = 0; i < job.participants().size(); ++i) {
    const JobParticipant& one = job.participants()[i];
    const bool has_process =
        !pid || std::any_of(one.process_ids.begin(), one.process_ids.end(),
                            [&](std::int64_t id) { return of_pid.contains(id); });
    if ((!rank || one.rank == rank) && has_process) found.push_back(static_cast<RankIndex>(i));
  }
  return found;
}

Result<void> CheckAsked(Database& database, const AskedParticipant& asked,
                        const std::optional<std::int64_t>& run_id,
                        const std::optional<std::int64_t>& launch) {
  if (!asked.IsGiven()) return {};
  ASSIGN_OR_RETURN(const FirstRow<InputsOfAsked> found,
                   First(Query<InputsOfAsked>(database, {run_id, launch, asked.rank, asked.pid})));
  if (found->is_there) return {};
  std::set<std::int64_t> ranks, pids;
  FOR_EACH_ROW(const ParticipantOfInputs& row,
               Query<ParticipantOfInputs>(database, {run_id, launch})) {
    if (row.rank) ranks.insert(*row.rank);
    if (row.pid && (asked.pid || !row.rank)) pids.insert(*row.pid);
  }
  std::string there;
  if (!ranks.empty()) there = RanksText({ranks.begin(), ranks.end()});
  if (!pids.empty() && (asked.pid || ranks.empty()))
    there += fmt::format("{}{} {}", there.empty() ? "" : ", ",
                         pids.size() == 1 ? "process" : "processes", PidsText(pids));
  return Fail(ErrorCode::kNotFound,
              fmt::format("no input is of {}{}; there {}", asked.Text(),
                          launch ? fmt::format(" in launch {}", *launch) : "",
                          there.empty()                     ? "is none of any rank or process"
                          : ranks.size() + pids.size() == 1 ? "is " + there
                                                            : "are " + there));
}

Result<void> CheckAskedOfLaunch(Database& database, const AskedParticipant& asked,
                                std::string_view run_name,
                                const std::optional<std::int64_t>& ordinal) {
  if (!asked.IsGiven()) return {};
  ASSIGN_OR_RETURN(const ChosenLaunch chosen, ChooseLaunch(database, run_name, ordinal));
  return CheckAsked(database, asked, chosen.run_id, chosen.ordinal);
}

Result<AskedNames> NamesOfAsked(Database& database, const AskedParticipant& asked,
                                std::int64_t run_id, std::int64_t launch) {
  AskedNames names;
  if (!asked.pid) {
    if (asked.rank) names.ranks.push_back(*asked.rank);
    return names;
  }
  FOR_EACH_ROW(const RankOfPid& row,
               Query<RankOfPid>(database, {.run_id = run_id, .pid = *asked.pid})) {
    if (!asked.rank || row.rank == *asked.rank) names.ranks.push_back(row.rank);
  }
  ASSIGN_OR_RETURN(const std::vector<RunParticipant> all, LoadParticipants(database, run_id));
  for (const RunParticipant& one : all) {
    if (one.rank || one.launch != launch) continue;
    if (std::any_of(one.processes.begin(), one.processes.end(),
                    [&](const ParticipantProcess& process) { return process.pid == *asked.pid; }))
      names.logs.push_back(one.name);
  }
  return names;
}

}  // namespace tlparse
