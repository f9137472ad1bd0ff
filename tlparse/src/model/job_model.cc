#include "model/job_model.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/launches.h"
#include "model/process_tree.h"
#include "queries/model/job_model.h"

namespace tlparse {
namespace {

// What started processes, by their stacks: ranks share them.
class Origins {
 public:
  explicit Origins(PreparedQuery<ModelFrame> frames) : frames_(std::move(frames)) {}

  Result<ProcessOrigin> Of(std::int64_t stack_id) {
    const auto known = known_.find(stack_id);
    if (known != known_.end()) return known->second;
    std::vector<std::pair<std::string, std::string>> texts;
    FOR_EACH_ROW(const ModelFrame& row, frames_.Run({.stack_id = stack_id}))
      texts.emplace_back(row.file, row.function);
    std::vector<OriginFrame> frames;
    for (auto text = texts.rbegin(); text != texts.rend(); ++text)
      frames.push_back({text->first, text->second});
    return known_[stack_id] = OriginOf(frames);
  }

 private:
  PreparedQuery<ModelFrame> frames_;
  std::unordered_map<std::int64_t, ProcessOrigin> known_;
};

Result<std::vector<TreeProcess>> LoadProcesses(Database& database, std::int64_t run_id) {
  std::vector<TreeProcess> processes;
  std::unordered_map<std::int64_t, std::size_t> by_id;
  FOR_EACH_ROW(const ModelProcess& row, Query<ModelProcess>(database, {.run_id = run_id})) {
    by_id[row.id] = processes.size();
    TreeProcess& one = processes.emplace_back();
    one.id = row.id;
    one.log_file_id = row.log_file_id;
    one.pid = row.pid;
    one.is_thread_id = row.is_thread_id;
    one.rank = row.rank;
    one.start_us = row.first_record_us;
    one.end_us = row.last_record_us;
    one.first_string_number = row.first_string_number;
  }
  ASSIGN_OR_RETURN(PreparedQuery<ModelFrame> frames, PreparedQuery<ModelFrame>::Make(database));
  Origins origins(std::move(frames));
  std::unordered_map<std::int64_t, std::int64_t> first_stacks;
  FOR_EACH_ROW(const ModelFirstCompile& row,
               Query<ModelFirstCompile>(database, {.run_id = run_id})) {
    TreeProcess& one = processes[by_id.at(row.process_id)];
    if (row.frame_id && !one.first_frame_id) one.first_frame_id = row.frame_id;
    if (row.stack_id) first_stacks.try_emplace(row.process_id, *row.stack_id);
  }
  for (const auto& [process_id, stack_id] : first_stacks) {
    ASSIGN_OR_RETURN(processes[by_id.at(process_id)].origin, origins.Of(stack_id));
  }
  FOR_EACH_ROW(const StartedBy& row, Query<StartedBy>(database, {.run_id = run_id})) {
    TreeProcess& one = processes[by_id.at(row.child_id)];
    if (!one.rank) one.started_by = row.parent_id;
  }
  return processes;
}

// One life for each log and rank. Those of children do not begin launches, unless there is nothing
// else.
struct Lives {
  std::vector<LogLife> lives;
  std::vector<std::size_t> of_process;  // by process: index of its life
};

Lives LivesOf(const std::vector<TreeProcess>& processes) {
  const bool has_main = std::any_of(processes.begin(), processes.end(), [](const TreeProcess& one) {
    return one.kind == ChildKind::kNone;
  });
  Lives result;
  std::map<std::tuple<std::int64_t, std::optional<std::int64_t>>, std::size_t> index;
  for (const TreeProcess& one : processes) {
    const std::optional<std::int64_t> rank =
        has_main && one.kind != ChildKind::kNone ? std::nullopt : one.rank;
    const auto [found, is_new] = index.try_emplace({one.log_file_id, rank}, result.lives.size());
    if (is_new) result.lives.push_back({one.log_file_id, rank, {}, {}});
    result.of_process.push_back(found->second);
    LogLife& life = result.lives[found->second];
    if (one.start_us && (!life.start_us || *one.start_us < *life.start_us))
      life.start_us = one.start_us;
    if (one.end_us && (!life.end_us || *one.end_us > *life.end_us)) life.end_us = one.end_us;
  }
  return result;
}

// The launch of each process; that of a child is its parent's.
std::vector<std::int64_t> LaunchesOf(const std::vector<TreeProcess>& processes) {
  const Lives lives = LivesOf(processes);
  const std::vector<std::int64_t> of_life = AssignLaunches(lives.lives);
  std::vector<std::int64_t> launches;
  std::unordered_map<std::int64_t, std::int64_t> of_id;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    launches.push_back(of_life[lives.of_process[i]]);
    of_id[processes[i].id] = launches.back();
  }
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const auto parent = of_id.find(processes[i].parent_id);
    if (parent != of_id.end()) launches[i] = parent->second;
  }
  return launches;
}

}  // namespace

Result<void> WriteJobModel(Database& database, std::int64_t run_id) {
  RETURN_IF_ERROR(Execute<SetRanksOfRun>(database, {.run_id = run_id}));
  ASSIGN_OR_RETURN(std::vector<TreeProcess> processes, LoadProcesses(database, run_id));
  FindChildren(processes);
  const std::vector<std::int64_t> launches = LaunchesOf(processes);
  std::int64_t count = 0;
  for (const std::int64_t launch : launches) count = std::max(count, launch);
  // Ids stay where a launch is known already.
  for (std::int64_t ordinal = 1; ordinal <= count; ++ordinal)
    RETURN_IF_ERROR(Execute<AddLaunch>(database, {.run_id = run_id, .ordinal = ordinal}));
  ASSIGN_OR_RETURN(auto set, PreparedCommand<SetProcessModel>::Make(database));
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const TreeProcess& one = processes[i];
    SetProcessModel::Parameters parameters{.id = one.id, .run_id = run_id, .launch = launches[i]};
    if (one.parent_id != 0) parameters.parent_id = one.parent_id;
    if (one.kind != ChildKind::kNone) {
      parameters.child_kind = Name(one.kind);
      parameters.child_evidence = one.evidence;
    }
    RETURN_IF_ERROR(set.Run(parameters));
  }
  RETURN_IF_ERROR(Execute<SetLaunchTotals>(database, {.run_id = run_id}));
  return Execute<RemoveLaunchesAfter>(database, {.run_id = run_id, .ordinal = count});
}

}  // namespace tlparse
