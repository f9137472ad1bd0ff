#include "facts/job/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/plural.h"
#include "facts/job/participants.h"
#include "queries/facts/job/status.h"

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
  std::map<std::int64_t, std::int64_t> readable_bytes;
  FOR_EACH_ROW(const ReadableBytesOfLog& row,
               Query<ReadableBytesOfLog>(database, {.run_id = run_id}))
    readable_bytes.emplace(row.log_file_id, row.readable_bytes);
  return readable_bytes;
}

// Without the name and the readable bytes.
ProcessStatus StatusFrom(const StatusOfProcess& row) {
  ProcessStatus status;
  status.launch = row.launch;
  status.rank = row.rank;
  status.pid = row.pid;
  status.state = StateOf(row.state);
  status.compile = row.compile;
  status.function = row.function;
  status.phase = row.phase;
  status.since_us = row.since_us;
  status.first_record_us = row.first_record_us;
  status.last_record_us = row.last_record_us;
  status.compiles_done = row.compiles_done;
  status.process_id = row.process_id;
  status.compile_id = row.compile_id;
  status.log_path = row.path;
  status.is_backward = row.is_backward;
  status.open_record_id = row.open_record_id;
  return status;
}

// "3 recorder dumps of ranks 0-2"; without ranks "1 profile".
std::string FilesText(const StatusAnswer::OtherFiles& files) {
  std::string noun = files.kind;
  std::replace(noun.begin(), noun.end(), '_', ' ');
  if (files.kind == "kineto") noun = "profile";
  if (files.kind == "flight_recorder") noun = "recorder dump";
  std::string text = Count(static_cast<std::size_t>(files.count),
                           noun == "profile" || noun.ends_with("dump") || noun.ends_with("snapshot")
                               ? noun
                               : noun + " file");
  if (!files.ranks.empty())
    text += fmt::format(" of {} {}", files.ranks.size() == 1 ? "rank" : "ranks",
                        FormatRankRanges(files.ranks));
  return text;
}

}  // namespace

std::string_view Name(RankState state) { return kStateNames[static_cast<std::size_t>(state)]; }

std::string StatusAnswer::Contents() const {
  if (!rows.empty() || !empty_logs.empty() || other_files.empty())
    return Count(rows.size(), "process");
  std::string text = "no log";
  for (const StatusAnswer::OtherFiles& files : other_files) text += ", " + FilesText(files);
  return text;
}

std::string ProcessStatus::Title() const {
  return (is_backward ? "the backward of " : "") + compile +
         (function.empty() ? "" : " " + function);
}

Result<StatusAnswer> AnalyzeStatus(Database& database, const StatusOptions& options) {
  ASSIGN_OR_RETURN(const ChosenLaunch chosen, ChooseLaunch(database, options.run, options.launch));
  ASSIGN_OR_RETURN(const std::vector<RunParticipant> participants,
                   LoadParticipants(database, chosen.run_id));
  return AnalyzeStatusOf(database, chosen, participants);
}

Result<StatusAnswer> AnalyzeStatusOf(Database& database, const ChosenLaunch& chosen,
                                     const std::vector<RunParticipant>& participants) {
  StatusAnswer answer;
  answer.run = chosen.run_name;
  answer.launch = chosen.ordinal;
  answer.launch_count = chosen.count;
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
  ASSIGN_OR_RETURN(const auto readable_bytes, ReadableBytes(database, chosen.run_id));
  FOR_EACH_ROW(
      const StatusOfProcess& row,
      Query<StatusOfProcess>(database, {.run_id = chosen.run_id, .launch = answer.launch})) {
    if (copies.contains(row.process_id)) continue;
    ProcessStatus status = StatusFrom(row);
    if (const auto name = names.find(status.process_id); status.rank)
      status.name = name != names.end() ? name->second : std::to_string(*status.rank);
    if (const auto end = readable_bytes.find(row.log_file_id); end != readable_bytes.end())
      status.readable_bytes = end->second;
    answer.rows.push_back(std::move(status));
  }
  FOR_EACH_ROW(const RankOfFile& row, Query<RankOfFile>(database, {.run_id = chosen.run_id})) {
    if (answer.other_files.empty() || answer.other_files.back().kind != row.kind)
      answer.other_files.push_back({std::string(row.kind), 0, {}});
    answer.other_files.back().count += row.files;
    if (row.rank) answer.other_files.back().ranks.push_back(*row.rank);
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
