#include "report/participant.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/tree/file_name.h"
#include "store/database.h"

namespace tlparse {
namespace {

struct LogProcess {
  ReportProcess process;
  std::optional<std::int64_t> rank;
  bool rank_in_records = false;
};

struct Log {
  std::string path;
  std::int64_t first_record_id = 0;
  std::int64_t last_record_id = -1;
  std::optional<std::int64_t> name_rank;
  std::vector<LogProcess> processes;
};

Result<std::vector<Log>> ReadLogs(Database& database, std::int64_t run_id) {
  std::vector<Log> logs;
  ASSIGN_OR_RETURN(
      Statement files,
      database.Prepare("SELECT id, path, first_record_id, last_record_id, name_rank FROM log_file "
                       "WHERE run_id = ? ORDER BY id"));
  ASSIGN_OR_RETURN(
      Statement processes,
      database.Prepare(
          "SELECT id, pid, rank, rank_source = 'record', time_shift_us, "
          "first_record_id, last_record_id FROM process WHERE log_file_id = ? ORDER BY id"));
  files.Bind(1, run_id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_file, files.Step());
    if (!has_file) return logs;
    Log log;
    log.path = files.Text(1);
    log.first_record_id = files.OptionalInt(2).value_or(0);
    log.last_record_id = files.OptionalInt(3).value_or(-1);
    log.name_rank = files.OptionalInt(4);
    processes.Bind(1, files.Int(0));
    while (true) {
      ASSIGN_OR_RETURN(const bool has_process, processes.Step());
      if (!has_process) break;
      log.processes.push_back(
          LogProcess{ReportProcess{processes.Int(0), processes.Int(1), processes.OptionalInt(4),
                                   processes.Int(5), processes.Int(6)},
                     processes.OptionalInt(2), processes.Int(3) != 0});
    }
    logs.push_back(std::move(log));
  }
}

// "trace.log.gz" → "trace": the names that logs usually have lose their usual endings.
std::string_view LogStem(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view ending : {".gz", ".zst", ".log", ".txt"}) {
    if (name.size() > ending.size() && name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return name == "-" ? "stdin" : name;
}

// What tells two logs of one rank apart: "dedicated_log_torch_trace_rank_0_ab12cd34" → "ab12cd34".
std::string_view LogSuffix(std::string_view path) {
  std::string_view stem = LogStem(path);
  constexpr std::string_view kPrefix = "dedicated_log_torch_trace_";
  if (!stem.starts_with(kPrefix)) return stem;
  stem.remove_prefix(kPrefix.size());
  constexpr std::size_t kRandomSize = 8;  // of Python's tempfile
  return stem.size() > kRandomSize ? stem.substr(stem.size() - kRandomSize) : stem;
}

std::vector<Participant> Split(const Log& log) {
  std::map<std::optional<std::int64_t>, Participant> by_rank;
  std::set<std::int64_t> ranks;
  for (const LogProcess& process : log.processes) {
    if (process.rank) ranks.insert(*process.rank);
  }
  const bool whole_log = ranks.size() <= 1;
  const std::optional<std::int64_t> only_rank =
      ranks.empty() ? log.name_rank : std::optional(*ranks.begin());
  if (log.processes.empty()) by_rank[log.name_rank].rank = log.name_rank;
  for (const LogProcess& process : log.processes) {
    const std::optional<std::int64_t> rank = whole_log ? only_rank : process.rank;
    Participant& participant = by_rank[rank];
    participant.rank = rank;
    participant.rank_in_records |= process.rank_in_records;
    participant.processes.push_back(process.process);
  }
  std::vector<Participant> participants;
  for (auto& [rank, participant] : by_rank) {
    participant.log_path = log.path;
    participant.first_record_id = log.first_record_id;
    participant.last_record_id = log.last_record_id;
    participant.whole_log = whole_log;
    participants.push_back(std::move(participant));
  }
  return participants;
}

}  // namespace

const ReportProcess* Participant::Process(std::int64_t id) const {
  for (const ReportProcess& process : processes) {
    if (process.id == id) return &process;
  }
  return nullptr;
}

Result<std::vector<Participant>> FindParticipants(Database& database, std::int64_t run_id,
                                                  bool force_directories) {
  ASSIGN_OR_RETURN(const std::vector<Log> logs, ReadLogs(database, run_id));
  std::vector<Participant> participants;
  for (const Log& log : logs) {
    for (Participant& participant : Split(log)) participants.push_back(std::move(participant));
  }
  const bool in_root = participants.size() == 1 && !force_directories;
  UniqueNames names;
  // Plain rank_<N> first, so that no suffixed name can take one.
  std::set<std::int64_t> named_ranks;
  for (Participant& participant : participants) {
    participant.title = participant.rank ? fmt::format("Rank {}", *participant.rank)
                                         : fmt::format("Log {}", LogStem(participant.log_path));
    if (in_root || !participant.rank || !named_ranks.insert(*participant.rank).second) continue;
    participant.directory = names.Next(fmt::format("rank_{}", *participant.rank), "");
  }
  for (Participant& participant : participants) {
    if (in_root || !participant.directory.empty()) continue;
    if (participant.rank) {
      const std::string_view suffix = LogSuffix(participant.log_path);
      participant.directory = names.Next(fmt::format("rank_{}_{}", *participant.rank, suffix), "");
      participant.title += fmt::format(" ({})", suffix);
    } else {
      participant.directory = names.Next(fmt::format("log_{}", LogStem(participant.log_path)), "");
    }
  }
  std::stable_sort(participants.begin(), participants.end(),
                   [](const Participant& a, const Participant& b) {
                     if (a.rank.has_value() != b.rank.has_value()) return a.rank.has_value();
                     return a.rank < b.rank;
                   });
  return participants;
}

}  // namespace tlparse
