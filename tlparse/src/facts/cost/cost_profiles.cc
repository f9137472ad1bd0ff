// The profiles that an answer counts.
#include "facts/cost/cost_profiles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "facts/cost/cost_queries.h"
#include "inputs/join/join_notes.h"
#include "log/import_code.h"
#include "store/schema.h"

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

// Intervals of a query (start, end), cut to the window.
Result<std::vector<Interval>> Intervals(Statement& rows, const CostProfile& profile) {
  std::vector<Interval> intervals;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return intervals;
    const std::int64_t from = std::max(rows.Int(0), profile.start_ns);
    const std::int64_t to = std::min(rows.Int(1), profile.end_ns);
    if (from < to) intervals.emplace_back(from, to);
  }
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
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT p.id, p.path, p.rank, count(a.id), min(a.start_ns), "
          "max(a.start_ns + a.duration_ns), p.start_us, p.end_us, o.path, min(a.step), "
          "max(a.step), p.process_id, n.ordinal, (SELECT min(s.step) FROM annotation_row s "
          "WHERE s.profile_id = p.id), (SELECT max(s.step) FROM annotation_row s "
          "WHERE s.profile_id = p.id) FROM profile p LEFT JOIN profile o ON o.id = p.overlaps_id "
          "LEFT JOIN process q ON q.id = p.process_id LEFT JOIN launch n ON n.id = q.launch_id "
          "LEFT JOIN annotation_row a ON a.profile_id = p.id AND a.step IS NOT NULL "
          "AND a.device IS NULL AND (?3 IS NULL OR a.step >= ?3) AND (?4 IS NULL OR a.step <= ?4) "
          "WHERE p.run_id = ?1 AND p.kind IN ('kineto', 'nsys', 'libtrace') "
          "AND (?2 IS NULL OR p.rank = ?2) AND (?5 IS NULL OR p.id = ?5) "
          "AND (?6 IS NULL OR p.process_id IN (SELECT value FROM json_each(?6))) "
          "GROUP BY p.id ORDER BY p.rank, p.start_us"));
  rows.Bind(1, options.run_id);
  rows.Bind(2, options.rank);
  rows.Bind(3, options.first_step);
  rows.Bind(4, options.last_step);
  rows.Bind(5, options.profile_id);
  const std::string processes = fmt::format("[{}]", fmt::join(options.process_ids, ","));
  if (!options.process_ids.empty()) rows.Bind(6, processes);
  const bool wants_steps = options.first_step || options.last_step;
  std::vector<CostProfile> profiles;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return profiles;
    CostProfile profile;
    profile.id = rows.Int(0);
    profile.path = std::string(rows.Text(1));
    profile.rank = rows.OptionalInt(2);
    profile.steps = rows.Int(3);
    profile.first_step = rows.OptionalInt(9);
    profile.last_step = rows.OptionalInt(10);
    profile.process_id = rows.OptionalInt(11);
    profile.launch = rows.OptionalInt(12);
    if (!rows.IsNull(8)) {
      notes.push_back(
          fmt::format("{} is not counted: {}, which is, measured the same process at the same time",
                      profile.path, rows.Text(8)));
      continue;
    }
    if (wants_steps) NoteSteps(profile, options, rows.OptionalInt(13), rows.OptionalInt(14), notes);
    if (profile.steps == 0 && wants_steps) continue;
    if (profile.steps == 0 && (rows.IsNull(6) || rows.IsNull(7))) {
      notes.push_back(
          fmt::format("{} holds no event with a time and is not counted", profile.path));
      continue;
    }
    profile.start_ns = profile.steps > 0 ? rows.Int(4) : rows.Int(6) * 1000;
    profile.end_ns = profile.steps > 0 ? rows.Int(5) : (rows.Int(7) + 1) * 1000;
    profile.window_us = static_cast<double>(profile.end_ns - profile.start_ns) / 1e3;
    profiles.push_back(std::move(profile));
  }
}

// When the steps ran on a device, if the file marks them there.
Result<std::optional<Interval>> StepsOnDevice(Database& database, const CostProfile& profile,
                                              std::int64_t device) {
  if (profile.steps == 0) return std::optional<Interval>();
  ASSIGN_OR_RETURN(Statement steps,
                   database.Prepare("SELECT min(start_ns), max(start_ns + duration_ns) "
                                    "FROM annotation_row WHERE profile_id = ?1 AND device = ?2 "
                                    "AND step BETWEEN ?3 AND ?4"));
  steps.Bind(1, profile.id);
  steps.Bind(2, device);
  steps.Bind(3, *profile.first_step);
  steps.Bind(4, *profile.last_step);
  ASSIGN_OR_RETURN(const bool has_row, steps.Step());
  if (!has_row || steps.IsNull(0)) return std::optional<Interval>();
  return std::optional(Interval(steps.Int(0), steps.Int(1)));
}

// What a device ran, in the time of its own steps, or else in that of the profile's.
Result<CostProfile::Device> DeviceIn(Database& database, const CostProfile& profile,
                                     std::int64_t index) {
  CostProfile::Device device;
  device.device = index;
  ASSIGN_OR_RETURN(const std::optional<Interval> own, StepsOnDevice(database, profile, index));
  device.has_own_steps = own.has_value();
  const auto [start_ns, end_ns] = own.value_or(Interval(profile.start_ns, profile.end_ns));
  ASSIGN_OR_RETURN(Statement work,
                   database.Prepare("SELECT start_ns, start_ns + duration_ns, 1 "
                                    "FROM kernel_run_row WHERE profile_id = ?1 AND device = ?2 "
                                    "UNION ALL SELECT start_ns, start_ns + duration_ns, 0 "
                                    "FROM device_copy_row WHERE profile_id = ?1 AND device = ?2"));
  work.Bind(1, profile.id);
  work.Bind(2, index);
  std::vector<Interval> busy;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, work.Step());
    if (!has_row) break;
    const std::int64_t from = std::max(work.Int(0), start_ns), to = std::min(work.Int(1), end_ns);
    if (from >= to && !(work.Int(0) == work.Int(1) && from == to)) continue;
    device.kernels += work.Int(2);
    busy.emplace_back(from, to);
  }
  device.window_us = static_cast<double>(end_ns - start_ns) / 1e3;
  device.busy_us = UnionUs(busy);
  device.idle_us = device.window_us - device.busy_us;
  return device;
}

// Every device that the file has work of: one that ran nothing in the window was idle.
Result<void> FillDevices(Database& database, CostProfile& profile) {
  ASSIGN_OR_RETURN(
      Statement devices,
      database.Prepare("SELECT device FROM kernel_run_row WHERE profile_id = ?1 "
                       "AND device IS NOT NULL UNION SELECT device FROM device_copy_row "
                       "WHERE profile_id = ?1 AND device IS NOT NULL ORDER BY 1"));
  devices.Bind(1, profile.id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, devices.Step());
    if (!has_row) return {};
    ASSIGN_OR_RETURN(const CostProfile::Device device, DeviceIn(database, profile, devices.Int(0)));
    profile.devices.push_back(device);
  }
}

Result<void> FillTimes(Database& database, CostProfile& profile) {
  ASSIGN_OR_RETURN(
      Statement calls,
      database.Prepare("SELECT s.start_ns, s.start_ns + s.duration_ns FROM compiled_slice_row s "
                       "JOIN compiled_slice_link_row l ON l.slice_id = s.id AND l.is_call = 1 "
                       "WHERE s.profile_id = ?"));
  calls.Bind(1, profile.id);
  ASSIGN_OR_RETURN(std::vector<Interval> compiled, Intervals(calls, profile));
  profile.compiled_us = UnionUs(compiled);
  ASSIGN_OR_RETURN(
      Statement unmarked,
      database.Prepare(
          "SELECT r.start_ns, r.start_ns + r.duration_ns "
          "FROM kernel_run_row r JOIN kernel_run_link_row l ON l.kernel_run_id = r.id "
          "WHERE r.profile_id = ?1 AND r.device IS NULL AND l.note_id = (SELECT min(id) "
          "FROM text_row WHERE text = ?2) UNION ALL SELECT o.start_ns, o.start_ns + o.duration_ns "
          "FROM op_run_row o LEFT JOIN op_run_link_row l ON l.op_run_id = o.id "
          "WHERE o.profile_id = ?1 "
          "AND l.slice_id IS NULL AND (o.file_id IS NOT NULL OR o.name_id IN (SELECT id "
          "FROM text_row WHERE text LIKE 'aoti\\_torch\\_%' ESCAPE '\\'))"));
  unmarked.Bind(1, profile.id);
  unmarked.Bind(2, kCallNotInProfile);
  ASSIGN_OR_RETURN(const std::vector<Interval> of_inductor, Intervals(unmarked, profile));
  compiled.insert(compiled.end(), of_inductor.begin(), of_inductor.end());
  const double both_us = UnionUs(compiled);
  profile.unmarked_us = both_us - profile.compiled_us;
  profile.outside_us = profile.window_us - both_us;
  return FillDevices(database, profile);
}

// Compiles of the measured process, and the phases of them that have times: a lazy backward is
// compiled later than its forward.
Result<void> FillCompileTime(Database& database, CostProfile& profile) {
  if (!profile.process_id) return {};
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT start_time_us * 1000, (start_time_us + duration_us) * 1000 FROM compile "
          "WHERE process_id = ?1 AND start_time_us IS NOT NULL AND duration_us IS NOT NULL "
          "UNION ALL SELECT CAST(e.start_us AS INTEGER) * 1000, "
          "CAST(e.start_us + e.duration_us AS INTEGER) * 1000 FROM process p "
          "JOIN chromium_event_row e ON e.record_id BETWEEN p.first_record_id AND p.last_record_id "
          "JOIN compile c ON c.id = e.compile_id AND c.process_id = p.id "
          "WHERE p.id = ?1 AND e.start_us < ?3 AND e.start_us + e.duration_us > ?2"));
  rows.Bind(1, *profile.process_id);
  rows.Bind(2, profile.start_ns / 1000);
  rows.Bind(3, profile.end_ns / 1000);
  ASSIGN_OR_RETURN(std::vector<Interval> compiling, Intervals(rows, profile));
  profile.compile_us = UnionUs(compiling);
  return {};
}

// Waits on the CPU in which another thread's collective ends; they are ops, and in generated code
// external kernels.
Result<void> FillWaits(Database& database, CostProfile& profile) {
  ASSIGN_OR_RETURN(Statement rows,
                   database.Prepare("SELECT total(o.duration_ns) / 1e3 FROM op_run_row o "
                                    "JOIN text_row t ON t.id = o.name_id "
                                    "WHERE o.profile_id = ?1 AND o.start_ns >= ?2 "
                                    "AND o.start_ns < ?3 AND t.text LIKE '%::wait_tensor'"));
  rows.Bind(1, profile.id);
  rows.Bind(2, profile.start_ns);
  rows.Bind(3, profile.end_ns);
  ASSIGN_OR_RETURN(const bool has_row, rows.Step());
  if (has_row) profile.wait_us = rows.Real(0);
  return {};
}

Result<void> FillKernelTimes(Database& database, CostProfile& profile) {
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(KernelCostSql({profile}) +
                       " SELECT sum(us), total(us) FILTER (WHERE kernel_id IS NOT NULL), "
                       "total(us) FILTER (WHERE device IS NOT NULL AND is_in_call), "
                       "total(us) FILTER (WHERE device IS NOT NULL "
                       "AND NOT is_in_call AND is_unknown IS NOT 1 AND is_replay IS NOT 1), "
                       "total(us) FILTER (WHERE device IS NOT NULL AND is_unknown), "
                       "total(us) FILTER (WHERE device IS NOT NULL AND is_replay), "
                       "total(us) FILTER (WHERE device IS NOT NULL AND (t.text LIKE 'nccl%' "
                       "OR t.text LIKE 'rccl%')) FROM cost JOIN text_row t ON t.id = name_id"));
  ASSIGN_OR_RETURN(const bool has_row, rows.Step());
  if (!has_row) return {};
  profile.kernel_us = rows.OptionalReal(0);
  profile.joined_kernel_us = rows.Real(1);
  profile.device_in_calls_us = rows.Real(2);
  profile.device_outside_us = rows.Real(3);
  profile.device_unknown_us = rows.Real(4);
  profile.device_replay_us = rows.Real(5);
  profile.collective_us = rows.Real(6);
  return FillWaits(database, profile);
}

// What the import found missing in the file.
Result<void> FillProblems(Database& database, CostProfile& profile) {
  ASSIGN_OR_RETURN(Statement rows, database.Prepare(fmt::format(
                                       "SELECT message, count(*) FROM import_log_row "
                                       "WHERE profile_id = ? AND code_id IN ({}, {}, {}, {}) "
                                       "GROUP BY message ORDER BY min(id) LIMIT 5",
                                       static_cast<int>(ImportCode::kCutProfile),
                                       static_cast<int>(ImportCode::kDamagedInput),
                                       static_cast<int>(ImportCode::kBadProfileEvent),
                                       static_cast<int>(ImportCode::kProfileEventTooLarge))));
  rows.Bind(1, profile.id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    std::string& problem = profile.problems.emplace_back(rows.Text(0));
    if (rows.Int(1) > 1) problem += fmt::format(" ({} times)", rows.Int(1));
  }
}

// Which of the filters left nothing, and what there is.
Result<std::string> WhyNoProfile(Database& database, const CostOptions& options) {
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT count(*), count(*) FILTER (WHERE ?2 IS NULL OR p.rank = ?2), "
          "(SELECT group_concat(rank, ', ') FROM (SELECT DISTINCT rank FROM profile "
          "WHERE run_id = ?1 AND kind IN ('kineto', 'nsys', 'libtrace') AND rank IS NOT NULL "
          "ORDER BY rank LIMIT 20)), (SELECT min(a.step) "
          "FROM annotation_row a JOIN profile q ON q.id = a.profile_id "
          "WHERE q.run_id = ?1 AND q.overlaps_id IS NULL AND (?2 IS NULL OR q.rank = ?2)), "
          "(SELECT max(a.step) FROM annotation_row a JOIN profile q ON q.id = a.profile_id "
          "WHERE q.run_id = ?1 AND q.overlaps_id IS NULL AND (?2 IS NULL OR q.rank = ?2)) "
          "FROM profile p WHERE p.run_id = ?1 AND p.kind IN ('kineto', 'nsys', 'libtrace')"));
  rows.Bind(1, options.run_id);
  rows.Bind(2, options.rank);
  ASSIGN_OR_RETURN(const bool has_row, rows.Step());
  if (!has_row || rows.Int(0) == 0)
    return std::string(
        "this run has no profile: ingest one beside its logs (torch.profiler's "
        "export_chrome_trace or tensorboard_trace_handler writes them)");
  if (rows.Int(1) == 0 && options.rank) {
    return rows.IsNull(2)
               ? fmt::format("no profile is of rank {}: none names its rank", *options.rank)
               : fmt::format("no profile is of rank {}; there are profiles of rank {}",
                             *options.rank, rows.Text(2));
  }
  if (!options.first_step && !options.last_step)
    return std::string(
        "no profile of this run is counted: all overlap earlier ones, or hold no event with a "
        "time");
  const std::string of_rank =
      options.rank ? fmt::format(" of rank {}", *options.rank) : std::string();
  const std::string wanted = RangeText(options.first_step.value_or(*options.last_step),
                                       options.last_step.value_or(*options.first_step));
  return rows.IsNull(3) ? fmt::format("no profile{} marks steps (ProfilerStep#n)", of_rank)
                        : fmt::format("no profile{} holds step {}; their steps are {}", of_rank,
                                      wanted, RangeText(rows.Int(3), rows.Int(4)));
}

// An earlier tlparse of the same schema version wrote databases without this column.
Result<void> CheckColumns(Database& database) {
  ASSIGN_OR_RETURN(
      const std::int64_t is_there,
      database.QueryInt("SELECT count(*) FROM pragma_table_info('kernel_run_link_row') "
                        "WHERE name = 'launch_op_id'"));
  return is_there > 0 ? Result<void>() : CheckIsComplete(database);
}

}  // namespace

Result<CostAnswer> BeginCost(Database& database, const CostOptions& options) {
  RETURN_IF_ERROR(CheckColumns(database));
  CostAnswer answer;
  ASSIGN_OR_RETURN(answer.profiles, Profiles(database, options, answer.notes));
  if (answer.profiles.empty()) {
    ASSIGN_OR_RETURN(std::string why, WhyNoProfile(database, options));
    return Fail(ErrorCode::kNotFound, std::move(why));
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
