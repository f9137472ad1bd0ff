#include "inputs/join/join.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "inputs/join/frame_join.h"
#include "inputs/join/join_profile.h"
#include "inputs/join/module_join.h"
#include "inputs/join/phase_join.h"
#include "log/import_code.h"
#include "queries/inputs/join/join.h"

namespace tlparse {
namespace {

struct ProfileOf {
  std::int64_t id;
  std::optional<std::int64_t> rank, pid, end_us;
};
struct ProcessOf {
  std::int64_t id, pid;
  std::optional<std::int64_t> rank, start_us;
  bool is_thread_id;
};

Result<std::vector<ProfileOf>> LoadProfiles(Database& database, std::int64_t run_id) {
  std::vector<ProfileOf> profiles;
  FOR_EACH_ROW(const ProfileToJoin& row, Query<ProfileToJoin>(database, {.run_id = run_id})) {
    profiles.push_back({row.id, row.own_rank, row.pid, row.end_us});
  }
  return profiles;
}

Result<std::vector<ProcessOf>> LoadProcesses(Database& database, std::int64_t run_id) {
  std::vector<ProcessOf> processes;
  FOR_EACH_ROW(const ProcessToJoin& row, Query<ProcessToJoin>(database, {.run_id = run_id})) {
    processes.push_back({row.id, row.pid, row.rank, row.first_record_us, row.is_thread_id});
  }
  return processes;
}

// The process that a profile measured: of its rank and pid, else of its rank, else of its pid where
// one of the two does not name a rank. Of several launches the one that had begun last.
const ProcessOf* ProcessOfProfile(const std::vector<ProcessOf>& processes, const ProfileOf& profile,
                                  std::string& note) {
  const ProcessOf* best = nullptr;
  int best_grade = 0;
  for (const ProcessOf& process : processes) {
    const bool is_same_pid = profile.pid && !process.is_thread_id && process.pid == *profile.pid;
    const bool is_same_rank = profile.rank && process.rank && *process.rank == *profile.rank;
    const bool is_other_rank = profile.rank && process.rank && !is_same_rank;
    if (is_other_rank || (!is_same_pid && !is_same_rank)) continue;
    const bool has_begun =
        !process.start_us || !profile.end_us || *process.start_us <= *profile.end_us;
    const int grade = (has_begun ? 4 : 0) + (is_same_pid ? 2 : 0) + (is_same_rank ? 1 : 0);
    if (grade >= best_grade) best = &process, best_grade = grade;
  }
  if (best == nullptr) {
    const std::string pid = profile.pid ? fmt::format("pid {}", *profile.pid) : std::string();
    const std::string rank = profile.rank ? fmt::format("rank {}", *profile.rank) : std::string();
    note = processes.empty() ? "this run has no log"
           : pid.empty() && rank.empty()
               ? "the file names neither its process nor a rank"
               : fmt::format("no log of this run is of {}{}{}", pid,
                             pid.empty() || rank.empty() ? "" : " or ", rank);
    return nullptr;
  }
  note = best_grade % 4 == 3   ? "by rank and pid"
         : best_grade % 4 == 2 ? "by pid"
                               : "by rank; the pid differs";
  return best;
}

Result<void> Log(Database& database, std::int64_t run_id, std::int64_t profile_id, ImportCode code,
                 std::string_view message) {
  ASSIGN_OR_RETURN(Statement* const add,
                   database.PrepareKept("INSERT INTO import_log_row (run_id, profile_id, "
                                        "code_id, message, line_count) VALUES (?, ?, ?, ?, 0)"));
  add->Bind(1, run_id);
  add->Bind(2, profile_id);
  add->Bind(3, static_cast<std::int64_t>(code));
  add->Bind(4, message);
  return add->Run();
}

Result<void> RemoveLinks(Database& database, std::int64_t run_id) {
  const std::string profiles = fmt::format("(SELECT id FROM profile WHERE run_id = {})", run_id);
  return database.Execute(
      fmt::format("DELETE FROM kernel_module_link_row "
                  "WHERE kernel_run_id IN (SELECT id FROM kernel_run_row WHERE profile_id IN {0});"
                  "DELETE FROM module_link_row "
                  "WHERE frame_id IN (SELECT id FROM python_frame_row WHERE profile_id IN {0});"
                  "DELETE FROM compiled_slice_link_row "
                  "WHERE slice_id IN (SELECT id FROM compiled_slice_row WHERE profile_id IN {0});"
                  "DELETE FROM kernel_run_link_row "
                  "WHERE kernel_run_id IN (SELECT id FROM kernel_run_row WHERE profile_id IN {0});"
                  "DELETE FROM kernel_run_row "
                  "WHERE (op_run_id IS NOT NULL OR frame_id IS NOT NULL) AND profile_id IN {0};"
                  "DELETE FROM compiled_slice_row WHERE kind = 7 AND profile_id IN {0};"
                  "DELETE FROM op_run_link_row "
                  "WHERE op_run_id IN (SELECT id FROM op_run_row WHERE profile_id IN {0});"
                  "DELETE FROM collective_run_link_row WHERE collective_run_id IN (SELECT id "
                  "FROM collective_run_row WHERE profile_id IN {0} AND entry_id IS NULL);"
                  "DELETE FROM import_log_row WHERE run_id = {1} AND code_id IN ({2}, {3});",
                  profiles, run_id, static_cast<int>(ImportCode::kUnmatchedProfile),
                  static_cast<int>(ImportCode::kOverlappingProfiles)));
}

// A profile that begins before the latest counted one of its process has ended is not counted.
Result<void> ReportOverlaps(Database& database, std::int64_t run_id) {
  struct Counted {
    std::int64_t id = 0, end_us = 0;
    std::string path;
  };
  ASSIGN_OR_RETURN(Statement* const set,
                   database.PrepareKept("UPDATE profile SET overlaps_id = ?2 WHERE id = ?1"));
  // By process, else by pid and rank.
  std::map<std::tuple<std::optional<std::int64_t>, std::optional<std::int64_t>,
                      std::optional<std::int64_t>>,
           Counted>
      latest;
  FOR_EACH_ROW(const TimedProfile& profile, Query<TimedProfile>(database, {.run_id = run_id})) {
    const std::optional<std::int64_t> process = profile.process_id;
    Counted& counted = latest[process ? std::tuple(process, std::optional<std::int64_t>(),
                                                   std::optional<std::int64_t>())
                                      : std::tuple(process, profile.pid, profile.rank)];
    const std::int64_t id = profile.id;
    const std::string path(profile.path);
    if (counted.id == 0 || profile.start_us >= counted.end_us) {
      counted = {id, profile.end_us, path};
      continue;
    }
    set->Bind(1, id);
    set->Bind(2, counted.id);
    RETURN_IF_ERROR(set->Run());
    RETURN_IF_ERROR(Log(database, run_id, id, ImportCode::kOverlappingProfiles,
                        fmt::format("{} began before {} ended", path, counted.path)));
  }
  return {};
}

}  // namespace

Result<void> JoinRun(Database& database, std::int64_t run_id) {
  ASSIGN_OR_RETURN(const std::vector<ProfileOf> profiles, LoadProfiles(database, run_id));
  if (profiles.empty()) return {};
  RETURN_IF_ERROR(RemoveLinks(database, run_id));
  ASSIGN_OR_RETURN(const std::vector<ProcessOf> processes, LoadProcesses(database, run_id));
  ASSIGN_OR_RETURN(CompiledCode code, CompiledCode::Load(database, run_id));
  ASSIGN_OR_RETURN(Statement set,
                   database.Prepare("UPDATE profile "
                                    "SET process_id = ?2, rank = coalesce(own_rank, ?3), "
                                    "process_note = ?4, overlaps_id = NULL WHERE id = ?1"));
  for (const ProfileOf& profile : profiles) {
    std::string note;
    const ProcessOf* const process = ProcessOfProfile(processes, profile, note);
    set.Bind(1, profile.id);
    set.Bind(2, process == nullptr ? std::nullopt : std::optional(process->id));
    set.Bind(3, process == nullptr ? std::nullopt : process->rank);
    set.Bind(4, std::string_view(note));
    RETURN_IF_ERROR(set.Run());
    if (process == nullptr && !processes.empty())
      RETURN_IF_ERROR(Log(database, run_id, profile.id, ImportCode::kUnmatchedProfile, note));
    const std::optional<std::int64_t> process_id =
        process == nullptr ? std::nullopt : std::optional(process->id);
    RETURN_IF_ERROR(JoinProfile(database, code, profile.id, process_id));
    RETURN_IF_ERROR(JoinFrames(database, profile.id));
    RETURN_IF_ERROR(JoinModules(database, profile.id));
    RETURN_IF_ERROR(JoinPhases(database, code, profile.id, process_id));
  }
  return ReportOverlaps(database, run_id);
}

}  // namespace tlparse
