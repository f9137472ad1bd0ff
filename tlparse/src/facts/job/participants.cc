#include "facts/job/participants.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/plural.h"
#include "facts/job/concurrent_logs.h"
#include "queries/facts/job/participants.h"

namespace tlparse {
namespace {

struct LogProcess {
  ParticipantProcess process;
  std::optional<std::int64_t> rank;
  bool rank_in_records = false;
  std::optional<std::int64_t> launch;
};

struct Log {
  std::string path;
  std::string content_hash;
  std::int64_t first_record_id = 0;
  std::int64_t last_record_id = -1;
  std::optional<std::int64_t> name_rank;
  std::vector<LogProcess> processes;
};

Result<std::vector<Log>> ReadLogs(Database& database, std::int64_t run_id) {
  std::map<std::int64_t, Log> logs;
  FOR_EACH_ROW(const LogOfRun& row, KeptQuery<LogOfRun>(database, {.run_id = run_id}))
    logs[row.id] = {std::string(row.path),
                    std::string(row.content_hash),
                    row.first_record_id.value_or(0),
                    row.last_record_id.value_or(-1),
                    row.name_rank,
                    {}};
  FOR_EACH_ROW(const ProcessOfLog& row, KeptQuery<ProcessOfLog>(database, {.run_id = run_id})) {
    logs[row.log_file_id].processes.push_back({{.id = row.id,
                                                .pid = row.pid,
                                                .time_shift_us = row.time_shift_us,
                                                .first_record_id = row.first_record_id,
                                                .last_record_id = row.last_record_id,
                                                .torch_version = std::string(row.torch_version),
                                                .python_version = std::string(row.python_version),
                                                .first_record_us = row.first_record_us,
                                                .child_kind = std::string(row.child_kind),
                                                .parent_process_id = row.parent_process_id},
                                               row.rank,
                                               row.is_rank_in_records,
                                               row.launch});
  }
  std::vector<Log> result;
  for (auto& [id, log] : logs) result.push_back(std::move(log));
  return result;
}

// A launch of 0: no record of the log shows it.
std::vector<RunParticipant> Split(const Log& log) {
  std::map<std::optional<std::int64_t>, RunParticipant> by_rank;
  std::set<std::int64_t> ranks;
  for (const LogProcess& process : log.processes) {
    if (process.rank) ranks.insert(*process.rank);
  }
  const bool whole_log = ranks.size() <= 1;
  const std::optional<std::int64_t> only_rank =
      ranks.empty() ? log.name_rank : std::optional(*ranks.begin());
  if (log.processes.empty()) by_rank[log.name_rank].launch = 0;
  for (const LogProcess& process : log.processes) {
    RunParticipant& participant = by_rank[whole_log ? only_rank : process.rank];
    participant.launch = process.launch.value_or(1);
    participant.rank_in_records |= process.rank_in_records;
    participant.processes.push_back(process.process);
  }
  std::vector<RunParticipant> participants;
  for (auto& [rank, participant] : by_rank) {
    participant.rank = rank;
    participant.log_path = log.path;
    participant.content_hash = log.content_hash;
    participant.first_record_id = log.first_record_id;
    participant.last_record_id = log.last_record_id;
    participant.whole_log = whole_log;
    participants.push_back(std::move(participant));
  }
  return participants;
}

// An empty log of a rank is counted to the first launch in which the rank has no other.
void PlaceEmptyLogs(std::vector<RunParticipant>& participants) {
  std::set<std::pair<std::int64_t, std::int64_t>> taken;
  std::int64_t latest = 1;
  for (const RunParticipant& participant : participants) {
    latest = std::max(latest, participant.launch);
    if (participant.rank) taken.emplace(*participant.rank, participant.launch);
  }
  for (RunParticipant& participant : participants) {
    if (participant.launch != 0) continue;
    participant.launch = 1;
    while (participant.rank && participant.launch < latest &&
           taken.contains({*participant.rank, participant.launch}))
      ++participant.launch;
    if (participant.rank) taken.emplace(*participant.rank, participant.launch);
  }
}

// "dedicated_log_torch_trace_" and what mkstemp made.
bool IsRandomName(std::string_view stem) {
  constexpr std::string_view kPrefix = "dedicated_log_torch_trace_";
  return stem.starts_with(kPrefix) && stem.size() == kPrefix.size() + 8;
}

// Marks the logs of children in launches that have other logs as well.
void MarkChildren(std::vector<RunParticipant>& participants) {
  std::set<std::int64_t> with_others;  // launches
  for (RunParticipant& one : participants) {
    one.is_child = !one.processes.empty() &&
                   std::all_of(one.processes.begin(), one.processes.end(),
                               [](const ParticipantProcess& p) { return !p.child_kind.empty(); });
    if (!one.is_child && !one.processes.empty()) with_others.insert(one.launch);
  }
  for (RunParticipant& one : participants) one.is_child &= with_others.contains(one.launch);
}

// The last part of each folder that is not common to all; empty: they do not tell the logs apart.
std::vector<std::string> DistinctFolders(const std::vector<std::string_view>& paths) {
  std::vector<std::string_view> folders;
  for (const std::string_view path : paths) {
    const std::size_t slash = path.rfind('/');
    folders.push_back(slash == std::string_view::npos ? std::string_view() : path.substr(0, slash));
  }
  const auto last = [](std::string_view folder) { return folder.substr(folder.rfind('/') + 1); };
  while (std::all_of(folders.begin(), folders.end(), [&](std::string_view folder) {
    return !folder.empty() && last(folder) == last(folders.front());
  })) {
    for (std::string_view& folder : folders) {
      const std::size_t slash = folder.rfind('/');
      folder = slash == std::string_view::npos ? std::string_view() : folder.substr(0, slash);
    }
  }
  std::vector<std::string> names;
  for (const std::string_view folder : folders) names.emplace_back(last(folder));
  const std::set<std::string> distinct(names.begin(), names.end());
  if (distinct.size() < names.size() || distinct.contains("")) names.clear();
  return names;
}

Result<void> SetStems(Database& database, std::vector<RunParticipant>& participants) {
  std::vector<RunParticipant*> random;
  std::vector<std::string_view> paths;
  for (RunParticipant& participant : participants) {
    participant.stem = LogStem(participant.log_path);
    if (participant.rank || !IsRandomName(participant.stem)) continue;
    random.push_back(&participant);
    paths.push_back(participant.log_path);
  }
  const std::vector<std::string> folders =
      random.size() < 2 ? std::vector<std::string>() : DistinctFolders(paths);
  for (std::size_t i = 0; i < folders.size(); ++i) random[i]->stem = folders[i];
  if (!folders.empty()) return {};
  constexpr std::int64_t kHighestPid = 4'194'304;  // above it: the thread ids of early logs
  for (RunParticipant* const one : random) {
    if (one->processes.empty() || one->processes.front().pid > kHighestPid) continue;
    ASSIGN_OR_RETURN(const std::string script, ScriptOf(database, one->processes.front().id));
    one->stem =
        fmt::format("{}{}pid{}", script, script.empty() ? "" : "-", one->processes.front().pid);
  }
  return {};
}

Result<void> Name(Database& database, std::vector<RunParticipant>& participants) {
  RETURN_IF_ERROR(SetStems(database, participants));
  std::set<std::pair<std::int64_t, std::string>> names;
  for (RunParticipant& participant : participants) {
    const std::string base =
        participant.rank ? std::to_string(*participant.rank) : "log:" + participant.stem;
    participant.name = base;
    for (int n = 2; !names.emplace(participant.launch, participant.name).second; ++n) {
      participant.name = fmt::format("{}#{}", base, n);
      participant.log_number = n;
    }
  }
  return {};
}

}  // namespace

const ParticipantProcess* RunParticipant::Process(std::int64_t id) const {
  for (const ParticipantProcess& process : processes) {
    if (process.id == id) return &process;
  }
  return nullptr;
}

Result<std::vector<RunParticipant>> LoadParticipants(Database& database, std::int64_t run_id) {
  ASSIGN_OR_RETURN(const std::vector<Log> logs, ReadLogs(database, run_id));
  std::vector<RunParticipant> participants;
  for (const Log& log : logs) {
    for (RunParticipant& participant : Split(log)) participants.push_back(std::move(participant));
  }
  PlaceEmptyLogs(participants);
  MarkChildren(participants);
  const auto is_before = [](const RunParticipant& a, const RunParticipant& b) {
    if (a.launch != b.launch) return a.launch < b.launch;
    if (a.is_child != b.is_child) return b.is_child;
    if (a.rank.has_value() != b.rank.has_value()) return a.rank.has_value();
    return a.rank < b.rank;
  };
  // They are large: mostly the logs are in order already.
  if (!std::is_sorted(participants.begin(), participants.end(), is_before))
    std::stable_sort(participants.begin(), participants.end(), is_before);
  for (auto begin = participants.begin(); begin != participants.end();) {
    const auto end = std::find_if(begin, participants.end(), [&](const RunParticipant& one) {
      return one.launch != begin->launch;
    });
    const auto children =
        std::find_if(begin, end, [](const RunParticipant& one) { return one.is_child; });
    RETURN_IF_ERROR(MarkCopies(database, begin, children));
    RETURN_IF_ERROR(SeparateJobs(database, begin, children));
    RETURN_IF_ERROR(MarkCopies(database, children, end));
    begin = end;
  }
  RETURN_IF_ERROR(Name(database, participants));
  return participants;
}

Result<std::vector<Launch>> LoadLaunches(Database& database, std::int64_t run_id) {
  std::vector<Launch> launches;
  FOR_EACH_ROW(const LaunchOfRun& row, KeptQuery<LaunchOfRun>(database, {.run_id = run_id}))
    launches.push_back(
        {row.id, row.ordinal, row.start_time_us, row.end_time_us, row.process_count});
  return launches;
}

Result<std::int64_t> FindLaunch(Database& database, std::int64_t run_id,
                                const std::optional<std::int64_t>& ordinal) {
  ASSIGN_OR_RETURN(const std::vector<Launch> launches, LoadLaunches(database, run_id));
  const std::int64_t latest = launches.empty() ? 1 : launches.back().ordinal;
  if (!ordinal) return latest;
  if (*ordinal >= 1 && *ordinal <= latest) return *ordinal;
  return Fail(ErrorCode::kNotFound,
              latest == 1 ? fmt::format("there is no launch {}: the run has one", *ordinal)
                          : fmt::format("there is no launch {}: the run has launches 1 to {}",
                                        *ordinal, latest));
}

Result<bool> HasExperiments(Database& database) {
  ASSIGN_OR_RETURN(const FirstRow<TableOfExperiments> found,
                   First(Query<TableOfExperiments>(database)));
  return found && found->is_there;
}

Result<std::int64_t> FindRun(Database& database, std::string_view run_name) {
  if (run_name.empty()) {
    ASSIGN_OR_RETURN(const bool has_experiments, HasExperiments(database));
    if (has_experiments) {
      ASSIGN_OR_RETURN(const FirstRow<LatestOwnRun> own, First(Query<LatestOwnRun>(database)));
      if (own && own->id) return *own->id;
    }
    ASSIGN_OR_RETURN(const FirstRow<LatestRun> latest, First(Query<LatestRun>(database)));
    if (latest && latest->id) return *latest->id;
    return Fail(ErrorCode::kNotFound,
                fmt::format("the database '{}' holds no run", database.path()));
  }
  ASSIGN_OR_RETURN(const FirstRow<RunOfName> found,
                   First(Query<RunOfName>(database, {.name = run_name})));
  if (found) return found->id;
  ASSIGN_OR_RETURN(const FirstRow<FirstRuns> others, First(Query<FirstRuns>(database)));
  return Fail(ErrorCode::kNotFound, fmt::format("no run '{}' in '{}'; there is: {}", run_name,
                                                database.path(), others->names));
}

Result<std::string> NameOfRun(Database& database, std::int64_t run_id) {
  ASSIGN_OR_RETURN(const FirstRow<RunWithName> run,
                   First(Query<RunWithName>(database, {.run_id = run_id})));
  return run ? std::string(run->name) : std::string();
}

Result<ChosenLaunch> ChooseLaunch(Database& database, std::string_view run_name,
                                  const std::optional<std::int64_t>& ordinal) {
  ChosenLaunch chosen;
  ASSIGN_OR_RETURN(chosen.run_id, FindRun(database, run_name));
  ASSIGN_OR_RETURN(chosen.run_name, NameOfRun(database, chosen.run_id));
  ASSIGN_OR_RETURN(chosen.ordinal, FindLaunch(database, chosen.run_id, ordinal));
  ASSIGN_OR_RETURN(const std::vector<Launch> launches, LoadLaunches(database, chosen.run_id));
  chosen.count = std::max<std::int64_t>(1, static_cast<std::int64_t>(launches.size()));
  return chosen;
}

std::string LogStem(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view ending : {".gz", ".zst", ".log", ".txt"}) {
    if (name.size() > ending.size() && name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return std::string(name == "-" ? "stdin" : name);
}

std::string FormatRankRanges(const std::vector<std::int64_t>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(ranks[i]);
    if (end - i == 2) text += fmt::format(",{}", ranks[end - 1]);
    if (end - i > 2) text += fmt::format("-{}", ranks[end - 1]);
    i = end;
  }
  return text;
}

std::string RanksText(const std::vector<std::int64_t>& ranks) {
  return fmt::format("rank{} {}", PluralS(ranks.size()), FormatRankRanges(ranks));
}

std::string RanksFirst(const std::vector<std::int64_t>& ranks) {
  std::string text = RanksText(ranks);
  text[0] = 'R';
  return text;
}

}  // namespace tlparse
