#include "facts/job/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "facts/job/participants.h"

namespace tlparse {
namespace {

constexpr std::array<std::string_view, 3> kStateNames = {"compiling", "between_compiles", "failed"};

RankState StateOf(std::string_view name) {
  for (std::size_t i = 0; i < kStateNames.size(); ++i) {
    if (kStateNames[i] == name) return static_cast<RankState>(i);
  }
  return RankState::kBetweenCompiles;
}

// By log file: the bytes before the first that cannot be read.
Result<std::map<std::int64_t, std::int64_t>> ReadableBytes(Database& database,
                                                           std::int64_t run_id) {
  ASSIGN_OR_RETURN(
      Statement ends,
      database.Prepare("SELECT log_file_id, min(coalesce(byte_offset, 0)) FROM import_log "
                       "WHERE run_id = ? AND code = 'damaged_input' AND log_file_id IS NOT NULL "
                       "GROUP BY log_file_id"));
  ends.Bind(1, run_id);
  std::map<std::int64_t, std::int64_t> readable_bytes;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, ends.Step());
    if (!has_row) return readable_bytes;
    readable_bytes.emplace(ends.Int(0), ends.Int(1));
  }
}

// Without the name and the readable bytes.
ProcessStatus RowOf(const Statement& rows) {
  ProcessStatus row;
  row.launch = rows.Int(0);
  row.rank = rows.OptionalInt(1);
  row.pid = rows.Int(2);
  row.state = StateOf(rows.Text(3));
  row.compile = rows.Text(4);
  row.function = rows.Text(5);
  row.phase = rows.Text(6);
  row.since_us = rows.OptionalInt(7);
  row.first_record_us = rows.OptionalInt(8);
  row.last_record_us = rows.OptionalInt(9);
  row.compiles_done = rows.Int(10);
  row.process_id = rows.Int(11);
  row.compile_id = rows.Int(12);
  row.log_path = rows.Text(13);
  row.is_backward = rows.Int(15) != 0;
  row.open_record_id = rows.OptionalInt(16).value_or(0);
  return row;
}

}  // namespace

std::string_view Name(RankState state) { return kStateNames[static_cast<std::size_t>(state)]; }

std::string ProcessStatus::Title() const {
  return (is_backward ? "the backward of " : "") + compile +
         (function.empty() ? "" : " " + function);
}

Result<StatusAnswer> AnalyzeStatus(Database& database, const StatusOptions& options) {
  StatusAnswer answer;
  ASSIGN_OR_RETURN(const std::int64_t run_id, FindRun(database, options.run));
  ASSIGN_OR_RETURN(answer.launch, FindLaunch(database, run_id, options.launch));
  ASSIGN_OR_RETURN(answer.run,
                   database.QueryText(fmt::format("SELECT name FROM run WHERE id = {}", run_id)));
  ASSIGN_OR_RETURN(answer.launch_count,
                   database.QueryInt(fmt::format(
                       "SELECT max(1, count(*)) FROM launch WHERE run_id = {}", run_id)));
  ASSIGN_OR_RETURN(const std::vector<RunParticipant> participants,
                   LoadParticipants(database, run_id));
  std::map<std::int64_t, std::string> names;
  std::map<std::int64_t, std::size_t> order;  // of the processes of ranks
  std::set<std::int64_t> copies;
  for (const RunParticipant& one : participants) {
    if (one.launch == answer.launch && one.processes.empty())
      answer.empty_logs.push_back({one.rank, one.log_path});
    for (const ParticipantProcess& process : one.processes) {
      if (!one.copy_of.empty()) copies.insert(process.id);
    }
    if (!one.rank) continue;
    for (const ParticipantProcess& process : one.processes) order.emplace(process.id, order.size());
    for (const ParticipantProcess& process : one.processes) names[process.id] = one.name;
  }
  ASSIGN_OR_RETURN(const auto readable_bytes, ReadableBytes(database, run_id));
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare("SELECT s.launch, s.rank, s.pid, s.state, s.compile, s.function, "
                       "s.phase, s.since_us, s.first_record_us, s.last_record_us, s.compiles_done, "
                       "s.process_id, s.compile_id, f.path, f.id, s.is_backward, s.open_record_id "
                       "FROM rank_status s JOIN log_file f ON f.id = s.log_file_id "
                       "WHERE s.run_id = ? AND s.launch = ? AND s.process_id NOT IN (" +
                       std::string(kStrayProcesses) +
                       ") ORDER BY s.rank IS NULL, s.rank, s.process_id"));
  rows.Bind(1, run_id);
  rows.Bind(2, answer.launch);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) break;
    if (copies.contains(rows.Int(11))) continue;
    ProcessStatus row = RowOf(rows);
    if (const auto name = names.find(row.process_id); row.rank)
      row.name = name != names.end() ? name->second : std::to_string(*row.rank);
    if (const auto end = readable_bytes.find(rows.Int(14)); end != readable_bytes.end())
      row.readable_bytes = end->second;
    answer.rows.push_back(std::move(row));
  }
  const auto place = [&](const ProcessStatus& row) {
    const auto found = order.find(row.process_id);
    return found == order.end() ? order.size() : found->second;
  };
  std::stable_sort(
      answer.rows.begin(), answer.rows.end(),
      [&](const ProcessStatus& a, const ProcessStatus& b) { return place(a) < place(b); });
  return answer;
}

}  // namespace tlparse
