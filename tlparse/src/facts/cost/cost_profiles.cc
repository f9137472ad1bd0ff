// The profiles that an answer counts.
#include "facts/cost/cost_profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "facts/cost/cost_queries.h"
#include "facts/cost/outside.h"
#include "inputs/join/join_notes.h"
#include "queries/facts/cost/cost_profiles.h"
#include "store/any_rows.h"

namespace tlparse {
namespace {

using Interval = std::pair<std::int64_t, std::int64_t>;

// Length of the union, in µs.
double UnionUs(std::vector<Interval>& intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::int64_t total = 0, end = INT64_MIN;
  for (const auto& [from, to] : intervals) {
    if (to <= end) continue;
    total += to - std::max(from, end);
    end = to;
  }
  return static_cast<double>(total) / 1e3;
}

// Intervals of a query, cut to the window.
template <typename Row>
Result<std::vector<Interval>> Intervals(QueryRows<Row> rows, const CostProfile& profile) {
  std::vector<Interval> intervals;
  FOR_EACH_ROW(const Row& row, std::move(rows)) {
    const std::int64_t from = std::max(row.start_ns, profile.start_ns);
    const std::int64_t to = std::min(row.end_ns, profile.end_ns);
    if (from < to) intervals.emplace_back(from, to);
  }
  return intervals;
}

std::string RangeText(std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

// Which of the wanted steps the profile holds, if not all; `first` and `last`: those that it marks.
void NoteSteps(const CostProfile& profile, const CostOptions& options,
               const std::optional<std::int64_t>& first, const std::optional<std::int64_t>& last,
               std::vector<std::string>& notes) {
  if (!first || !last) {
    notes.push_back(fmt::format("{} marks no steps and is not counted", profile.path));
    return;
  }
  const std::int64_t wanted_first = options.first_step.value_or(*first);
  const std::int64_t wanted_last = options.last_step.value_or(*last);
  if (profile.steps > 0 && *first <= wanted_first && wanted_last <= *last) return;
  const std::string wanted = RangeText(wanted_first, wanted_last),
                    marked = RangeText(*first, *last);
  notes.push_back(
      profile.steps == 0
          ? fmt::format("{} holds none of the steps {}: its steps are {}", profile.path, wanted,
                        marked)
          : fmt::format("{} holds {} only of the steps {}: its steps are {}", profile.path,
                        RangeText(*profile.first_step, *profile.last_step), wanted, marked));
}

Result<std::vector<CostProfile>> Profiles(Database& database, const CostOptions& options,
                                          std::vector<std::string>& notes) {
  const bool wants_steps = options.first_step || options.last_step;
  std::vector<CostProfile> profiles;
  FOR_EACH_ROW(const CostProfileRow& row,
               Query<CostProfileRow>(database, {.run_id = options.run_id,
                                                .rank = options.asked.rank,
                                                .pid = options.asked.pid,
                                                .first_step = options.first_step,
                                                .last_step = options.last_step,
                                                .profile_id = options.profile_id,
                                                .has_processes = !options.process_ids.empty(),
                                                .process_ids = options.process_ids})) {
    CostProfile profile;
    profile.id = row.id;
    profile.path = std::string(row.path);
    profile.rank = row.rank;
    profile.steps = row.steps;
    profile.first_step = row.first_step;
    profile.last_step = row.last_step;
    profile.process_id = row.process_id;
    profile.launch = row.launch;
    if (row.overlaps) {
      notes.push_back(
          fmt::format("{} is not counted: {}, which is, measured the same process at the same time",
                      profile.path, *row.overlaps));
      continue;
    }
    if (wants_steps) NoteSteps(profile, options, row.first_marked, row.last_marked, notes);
    if (profile.steps == 0 && wants_steps) continue;
    if (profile.steps == 0 && (!row.start_us || !row.end_us)) {
      notes.push_back(
          fmt::format("{} holds no event with a time and is not counted", profile.path));
      continue;
    }
    profile.start_ns = profile.steps > 0 ? *row.steps_start_ns : *row.start_us * 1000;
    profile.end_ns = profile.steps > 0 ? *row.steps_end_ns : (*row.end_us + 1) * 1000;
    profile.window_us = static_cast<double>(profile.end_ns - profile.start_ns) / 1e3;
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

// When the steps ran on a device, if the file marks them there.
Result<std::optional<Interval>> StepsOnDevice(Database& database, const CostProfile& profile,
                                              std::int64_t device) {
  if (profile.steps == 0) return std::optional<Interval>();
  ASSIGN_OR_RETURN(const FirstRow<StepsOfDevice> steps,
                   First(Query<StepsOfDevice>(database, {.profile_id = profile.id,
                                                         .device = device,
                                                         .first_step = *profile.first_step,
                                                         .last_step = *profile.last_step})));
  if (!steps || !steps->start_ns || !steps->end_ns) return std::optional<Interval>();
  return std::optional(Interval(*steps->start_ns, *steps->end_ns));
}

// What a device ran, in the time of its own steps, or else in that of the profile's.
Result<CostProfile::Device> DeviceIn(Database& database, const CostProfile& profile,
                                     std::int64_t index) {
  CostProfile::Device device;
  device.device = index;
  ASSIGN_OR_RETURN(const std::optional<Interval> own, StepsOnDevice(database, profile, index));
  device.has_own_steps = own.has_value();
  const auto [start_ns, end_ns] = own.value_or(Interval(profile.start_ns, profile.end_ns));
  std::vector<Interval> busy;
  FOR_EACH_ROW(const WorkOfDevice& work,
               Query<WorkOfDevice>(database, {.profile_id = profile.id, .device = index})) {
    const std::int64_t from = std::max(work.start_ns, start_ns);
    const std::int64_t to = std::min(work.end_ns, end_ns);
    if (from >= to && !(work.start_ns == work.end_ns && from == to)) continue;
    device.kernels += work.is_kernel ? 1 : 0;
    busy.emplace_back(from, to);
  }
  device.window_us = static_cast<double>(end_ns - start_ns) / 1e3;
  device.busy_us = UnionUs(busy);
  device.idle_us = device.window_us - device.busy_us;
  return device;
}

// Every device that the file has work of: one that ran nothing in the window was idle.
Result<void> FillDevices(Database& database, CostProfile& profile) {
  FOR_EACH_ROW(const DeviceOfProfile& row,
               Query<DeviceOfProfile>(database, {.profile_id = profile.id})) {
    ASSIGN_OR_RETURN(const CostProfile::Device device, DeviceIn(database, profile, row.device));
    profile.devices.push_back(device);
  }
  return {};
}

Result<void> FillTimes(Database& database, CostProfile& profile) {
  ASSIGN_OR_RETURN(
      std::vector<Interval> compiled,
      Intervals(Query<CompiledCallTime>(database, {.profile_id = profile.id}), profile));
  profile.compiled_us = UnionUs(compiled);
  ASSIGN_OR_RETURN(const std::vector<Interval> of_inductor,
                   Intervals(Query<CodeOutsideCallTime>(
                                 database, {.profile_id = profile.id, .note = kCallNotInProfile}),
                             profile));
  compiled.insert(compiled.end(), of_inductor.begin(), of_inductor.end());
  const double both_us = UnionUs(compiled);
  profile.unmarked_us = both_us - profile.compiled_us;
  profile.outside_us = profile.window_us - both_us;
  RETURN_IF_ERROR(FillOutside(database, profile, compiled));
  return FillDevices(database, profile);
}

Result<void> FillCompileTime(Database& database, CostProfile& profile) {
  if (!profile.process_id) return {};
  ASSIGN_OR_RETURN(std::vector<Interval> compiling,
                   Intervals(Query<CompilingTime>(database, {.process_id = *profile.process_id,
                                                             .start_us = profile.start_ns / 1000,
                                                             .end_us = profile.end_ns / 1000}),
                             profile));
  profile.compile_us = UnionUs(compiling);
  return {};
}

Result<void> FillWaits(Database& database, CostProfile& profile) {
  ASSIGN_OR_RETURN(const FirstRow<TensorWaitTime> wait,
                   First(Query<TensorWaitTime>(database, {.profile_id = profile.id,
                                                          .start_ns = profile.start_ns,
                                                          .end_ns = profile.end_ns})));
  if (wait) profile.wait_us = wait->us;
  return {};
}

Result<void> FillKernelTimes(Database& database, CostProfile& profile) {
  const std::string sql =
      KernelCostSql({profile}) +
      " SELECT sum(us) AS us, total(us) FILTER (WHERE kernel_id IS NOT NULL) AS joined, "
      "total(us) FILTER (WHERE device IS NOT NULL AND is_in_call) AS in_calls, "
      "total(us) FILTER (WHERE device IS NOT NULL "
      "AND NOT is_in_call AND is_unknown IS NOT 1 AND is_replay IS NOT 1) AS outside, "
      "total(us) FILTER (WHERE device IS NOT NULL AND is_unknown) AS unknown, "
      "total(us) FILTER (WHERE device IS NOT NULL AND is_replay) AS replay, "
      "total(us) FILTER (WHERE device IS NOT NULL AND is_collective) AS collective FROM cost";
  FOR_EACH_ROW(const AnyRow& row, AnyRows::Of(database, sql)) {
    profile.kernel_us = row.OptionalReal("us");
    profile.joined_kernel_us = row.Real("joined");
    profile.device_in_calls_us = row.Real("in_calls");
    profile.device_outside_us = row.Real("outside");
    profile.device_unknown_us = row.Real("unknown");
    profile.device_replay_us = row.Real("replay");
    profile.collective_us = row.Real("collective");
  }
  ASSIGN_OR_RETURN(const FirstRow<ReplayedTime> replayed,
                   First(Query<ReplayedTime>(database, {.profile_id = profile.id,
                                                        .start_ns = profile.start_ns,
                                                        .end_ns = profile.end_ns})));
  if (replayed) {
    profile.device_in_graphs_us = replayed->us;
    profile.replays = replayed->replays;
  }
  return FillWaits(database, profile);
}

// What the import found missing in the file.
Result<void> FillProblems(Database& database, CostProfile& profile) {
  FOR_EACH_ROW(const ProfileProblem& row,
               Query<ProfileProblem>(database, {.profile_id = profile.id})) {
    std::string& problem = profile.problems.emplace_back(row.message);
    if (row.count > 1) problem += fmt::format(" ({} times)", row.count);
  }
  return {};
}

Result<FirstRow<ProfilesThereAre>> CountProfiles(Database& database, const CostOptions& options) {
  return First(Query<ProfilesThereAre>(
      database, {.run_id = options.run_id, .rank = options.asked.rank, .pid = options.asked.pid}));
}

// Which of the filters left nothing, and what there is.
Result<std::string> WhyNoProfile(Database& database, const CostOptions& options) {
  ASSIGN_OR_RETURN(const FirstRow<ProfilesThereAre> there, CountProfiles(database, options));
  if (!there || there->count == 0)
    return std::string(
        "this run has no profile: ingest one beside its logs (torch.profiler's "
        "export_chrome_trace or tensorboard_trace_handler writes them)");
  if (there->asked == 0 && options.asked.IsGiven()) {
    const std::string who = options.asked.Text();
    return there->ranks ? fmt::format("no profile is of {}; there are profiles of rank {}", who,
                                      *there->ranks)
                        : fmt::format("no profile is of {}: none names its rank", who);
  }
  if (!options.first_step && !options.last_step)
    return std::string(
        "no profile of this run is counted: all overlap earlier ones, or hold no event with a "
        "time");
  const std::string of_rank =
      options.asked.IsGiven() ? " of " + options.asked.Text() : std::string();
  const std::string wanted = RangeText(options.first_step.value_or(*options.last_step),
                                       options.last_step.value_or(*options.first_step));
  return there->first_step && there->last_step
             ? fmt::format("no profile{} holds step {}; their steps are {}", of_rank, wanted,
                           RangeText(*there->first_step, *there->last_step))
             : fmt::format("no profile{} marks steps (ProfilerStep#n)", of_rank);
}

}  // namespace

Result<CostAnswer> BeginCost(Database& database, const CostOptions& options) {
  CostAnswer answer;
  ASSIGN_OR_RETURN(answer.profiles, Profiles(database, options, answer.notes));
  if (answer.profiles.empty()) {
    ASSIGN_OR_RETURN(std::string why, WhyNoProfile(database, options));
    return Fail(ErrorCode::kNotFound, std::move(why));
  }
  if (options.asked.IsGiven() && options.process_ids.empty()) {
    ASSIGN_OR_RETURN(const FirstRow<ProfilesThereAre> there, CountProfiles(database, options));
    answer.notes.push_back(
        options.asked.Only(static_cast<std::size_t>(there->count - there->asked), "profile"));
  }
  for (CostProfile& profile : answer.profiles) {
    RETURN_IF_ERROR(FillTimes(database, profile));
    RETURN_IF_ERROR(FillKernelTimes(database, profile));
    RETURN_IF_ERROR(FillCompileTime(database, profile));
    RETURN_IF_ERROR(FillProblems(database, profile));
    if (profile.unmarked_us > 0)
      answer.notes.push_back(fmt::format(
          "{}: kernels of Inductor ran where the profile shows no call of a compiled graph (an "
          "AOTInductor package, or lost events): how much of the time outside of calls is "
          "compiled code is unknown",
          profile.path));
  }
  if (answer.profiles.size() > 1) {
    std::set<std::int64_t> launches;
    for (const CostProfile& profile : answer.profiles)
      if (profile.launch) launches.insert(*profile.launch);
    answer.notes.push_back(fmt::format(
        "sums over {} profiles{}", answer.profiles.size(),
        launches.size() > 1 ? fmt::format(" of {} launches", launches.size()) : std::string()));
  }
  return answer;
}

}  // namespace tlparse
