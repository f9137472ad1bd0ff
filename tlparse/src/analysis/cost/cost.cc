#include "analysis/cost/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "analysis/cost/cost_queries.h"
#include "analysis/cost/estimates.h"
#include "log/import_code.h"

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

Result<std::vector<CostProfile>> Profiles(Database& database, const CostOptions& options,
                                          std::vector<std::string>& notes) {
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT p.id, p.path, p.rank, count(a.id), min(a.start_ns), max(a.start_ns + "
          "a.duration_ns), p.start_us, p.end_us, p.overlaps_id IS NOT NULL, min(a.step), "
          "max(a.step), p.process_id FROM profile p LEFT JOIN annotation_row a ON a.profile_id = "
          "p.id AND a.step IS NOT NULL AND a.device IS NULL AND (?3 IS NULL OR a.step >= ?3) AND "
          "(?4 IS NULL OR a.step <= ?4) WHERE p.run_id = ?1 AND p.kind IN ('kineto', 'nsys', "
          "'libtrace') AND (?2 IS NULL OR p.rank = ?2) AND (?5 IS NULL OR p.id = ?5) GROUP BY p.id "
          "ORDER BY p.rank, p.start_us"));
  rows.Bind(1, options.run_id);
  rows.Bind(2, options.rank);
  rows.Bind(3, options.first_step);
  rows.Bind(4, options.last_step);
  rows.Bind(5, options.profile_id);
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
    if (rows.Int(8) != 0) {
      notes.push_back(
          fmt::format("{} overlaps an earlier profile of the same process and is not "
                      "counted",
                      profile.path));
      continue;
    }
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

Result<void> FillTimes(Database& database, CostProfile& profile) {
  ASSIGN_OR_RETURN(
      Statement calls,
      database.Prepare(
          "SELECT s.start_ns, s.start_ns + s.duration_ns FROM compiled_slice_row s "
          "JOIN compiled_slice_link_row l ON l.slice_id = s.id AND l.is_call = 1 WHERE "
          "s.profile_id = ?"));
  calls.Bind(1, profile.id);
  ASSIGN_OR_RETURN(std::vector<Interval> compiled, Intervals(calls, profile));
  profile.compiled_us = UnionUs(compiled);
  profile.outside_us = profile.window_us - profile.compiled_us;
  ASSIGN_OR_RETURN(
      Statement devices,
      database.Prepare("SELECT device, count(*) FROM kernel_run_row WHERE profile_id = "
                       "?1 AND device IS NOT NULL AND start_ns BETWEEN ?2 AND ?3 GROUP "
                       "BY device"));
  devices.Bind(1, profile.id);
  devices.Bind(2, profile.start_ns);
  devices.Bind(3, profile.end_ns);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, devices.Step());
    if (!has_row) return {};
    CostProfile::Device device;
    device.device = devices.Int(0);
    device.kernels = devices.Int(1);
    ASSIGN_OR_RETURN(
        Statement work,
        database.Prepare("SELECT start_ns, start_ns + duration_ns FROM kernel_run_row WHERE "
                         "profile_id = ?1 AND device = ?2 UNION ALL SELECT start_ns, start_ns + "
                         "duration_ns FROM device_copy_row WHERE profile_id = ?1 AND device = ?2"));
    work.Bind(1, profile.id);
    work.Bind(2, device.device);
    ASSIGN_OR_RETURN(std::vector<Interval> busy, Intervals(work, profile));
    device.busy_us = UnionUs(busy);
    device.idle_us = profile.window_us - device.busy_us;
    profile.devices.push_back(device);
  }
}

// Compiles of the measured process, and the phases of them that have times: a lazy backward is
// compiled later than its forward.
Result<void> FillCompileTime(Database& database, CostProfile& profile) {
  if (!profile.process_id) return {};
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT start_time_us * 1000, (start_time_us + duration_us) * 1000 FROM compile WHERE "
          "process_id = ?1 AND start_time_us IS NOT NULL AND duration_us IS NOT NULL UNION ALL "
          "SELECT CAST(e.start_us AS INTEGER) * 1000, CAST(e.start_us + e.duration_us AS INTEGER) "
          "* 1000 FROM process p JOIN chromium_event_row e ON e.record_id BETWEEN "
          "p.first_record_id AND p.last_record_id JOIN compile c ON c.id = e.compile_id AND "
          "c.process_id = p.id WHERE p.id = ?1 AND e.start_us < ?3 AND e.start_us + e.duration_us "
          "> ?2"));
  rows.Bind(1, *profile.process_id);
  rows.Bind(2, profile.start_ns / 1000);
  rows.Bind(3, profile.end_ns / 1000);
  ASSIGN_OR_RETURN(std::vector<Interval> compiling, Intervals(rows, profile));
  profile.compile_us = UnionUs(compiling);
  return {};
}

Result<std::vector<CostRow>> ReadRows(Statement& rows) {
  std::map<std::string, int, std::less<>> columns;
  for (int column = 0; column < rows.column_count(); ++column)
    columns.emplace(std::string(rows.ColumnName(column)), column);
  const auto at = [&](std::string_view name) {
    const auto found = columns.find(name);
    return found == columns.end() ? -1 : found->second;
  };
  const auto text = [&](std::string_view name) {
    const int column = at(name);
    return column < 0 ? std::string() : std::string(rows.Text(column));
  };
  const auto integer = [&](std::string_view name) {
    const int column = at(name);
    return column < 0 ? std::nullopt : rows.OptionalInt(column);
  };
  const auto real = [&](std::string_view name) {
    const int column = at(name);
    return column < 0 ? std::nullopt : rows.OptionalReal(column);
  };
  std::vector<CostRow> result;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return result;
    CostRow row;
    row.name = text("name");
    row.label = text("label");
    row.generation = integer("generation");
    row.rank = integer("rank");
    row.key = text("key");
    row.direction = text("direction");
    row.file = text("file");
    row.line = integer("line");
    row.function = text("function");
    row.kernel_id = integer("kernel_id");
    row.graph_id = integer("graph_id");
    row.debug_handle = integer("debug_handle");
    row.lines = text("lines");
    row.grid = text("grid");
    row.block = text("block");
    row.calls = integer("calls").value_or(0);
    row.inclusive_us = real("inclusive_us").value_or(0);
    row.share_us = real("share_us").value_or(0);
    row.device_us = real("device_us");
    row.cpu_us = real("cpu_us");
    row.compile_us = real("compile_us");
    row.join_note = text("join_note");
    result.push_back(std::move(row));
  }
}

Result<void> FillKernelTimes(Database& database, CostProfile& profile) {
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(KernelCostSql({profile}) +
                       " SELECT sum(us), total(us) FILTER (WHERE kernel_id IS NOT NULL), total(us) "
                       "FILTER (WHERE device IS NOT NULL AND is_in_call), total(us) FILTER (WHERE "
                       "device IS NOT NULL AND NOT is_in_call AND is_unknown IS NOT 1), total(us) "
                       "FILTER (WHERE device IS NOT NULL AND is_unknown) FROM cost"));
  ASSIGN_OR_RETURN(const bool has_row, rows.Step());
  if (!has_row) return {};
  profile.kernel_us = rows.OptionalReal(0);
  profile.joined_kernel_us = rows.Real(1);
  profile.device_in_calls_us = rows.Real(2);
  profile.device_outside_us = rows.Real(3);
  profile.device_unknown_us = rows.Real(4);
  return {};
}

// What the import found missing in the file.
Result<void> FillProblems(Database& database, CostProfile& profile) {
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(fmt::format(
          "SELECT message FROM import_log_row WHERE profile_id = ? AND code_id IN "
          "({}, {}, {}, {}) ORDER BY id LIMIT 5",
          static_cast<int>(ImportCode::kCutProfile), static_cast<int>(ImportCode::kDamagedInput),
          static_cast<int>(ImportCode::kBadProfileEvent),
          static_cast<int>(ImportCode::kProfileEventTooLarge))));
  rows.Bind(1, profile.id);
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return {};
    profile.problems.emplace_back(rows.Text(0));
  }
}

CostTime TimeOf(CostBy by, const std::vector<CostRow>& rows) {
  if (by == CostBy::kGraph) return CostTime::kCallsOnCpu;
  const bool has_device_work =
      std::any_of(rows.begin(), rows.end(), [](const CostRow& row) { return !!row.device_us; });
  if (by == CostBy::kModule) return has_device_work ? CostTime::kKernels : CostTime::kModulesOnCpu;
  if (by != CostBy::kOp) return CostTime::kKernels;
  return has_device_work ? CostTime::kOpsOnDevice : CostTime::kOpsOnCpu;
}

// The time of a module with all modules inside it.
void AddInnerModules(std::vector<CostRow>& rows) {
  std::unordered_map<std::string_view, CostRow*> by_path;
  for (CostRow& row : rows) by_path.emplace(row.name, &row);
  for (const CostRow& row : rows) {
    std::string_view path = row.name;
    while (true) {
      const auto found = by_path.find(path);
      if (found != by_path.end()) found->second->inclusive_us += row.share_us;
      const std::size_t slash = path.rfind('/');
      if (slash == path.npos) break;
      path = path.substr(0, slash);
    }
  }
}

std::string RangeText(std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

// Which of the filters left nothing, and what there is.
Result<std::string> WhyNoProfile(Database& database, const CostOptions& options) {
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(
          "SELECT count(*), count(*) FILTER (WHERE ?2 IS NULL OR p.rank = ?2), (SELECT "
          "group_concat(rank, ', ') FROM (SELECT DISTINCT rank FROM profile WHERE run_id = ?1 AND "
          "kind IN ('kineto', 'nsys', 'libtrace') AND rank IS NOT NULL ORDER BY rank LIMIT 20)), "
          "(SELECT min(a.step) FROM annotation_row a JOIN profile q ON q.id = a.profile_id WHERE "
          "q.run_id = ?1 AND (?2 IS NULL OR q.rank = ?2)), (SELECT max(a.step) FROM annotation_row "
          "a JOIN profile q ON q.id = a.profile_id WHERE q.run_id = ?1 AND (?2 IS NULL OR q.rank = "
          "?2)) FROM profile p WHERE p.run_id = ?1 AND p.kind IN ('kineto', 'nsys', 'libtrace')"));
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

// The answer without rows.
Result<CostAnswer> Begin(Database& database, const CostOptions& options) {
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
  }
  if (answer.profiles.size() > 1)
    answer.notes.push_back(fmt::format("sums over {} profiles", answer.profiles.size()));
  return answer;
}

Result<bool> HasModuleTable(Database& database) {
  ASSIGN_OR_RETURN(
      const std::int64_t tables,
      database.QueryInt("SELECT count(*) FROM sqlite_schema WHERE name = 'module_link_row'"));
  return tables > 0;
}

Result<void> CheckModules(Database& database, const std::vector<CostProfile>& profiles) {
  for (const CostProfile& profile : profiles) {
    ASSIGN_OR_RETURN(const bool has_modules, HasModules(database, profile.id));
    if (has_modules) return {};
  }
  ASSIGN_OR_RETURN(const bool has_table, HasModuleTable(database));
  return Fail(ErrorCode::kNotFound,
              has_table
                  ? "no profile of this answer names modules (Python frames 'nn.Module: …'): "
                    "torch.profiler.profile(with_stack=True) records them"
                  : "an earlier tlparse wrote this database, without modules: ingest its profiles "
                    "again");
}

Result<void> FillRows(Database& database, const CostOptions& options, CostBy by,
                      CostAnswer& answer) {
  if (by == CostBy::kModule) RETURN_IF_ERROR(CheckModules(database, answer.profiles));
  ASSIGN_OR_RETURN(Statement rows, database.Prepare(CostSql(by, answer.profiles)));
  ASSIGN_OR_RETURN(answer.rows, ReadRows(rows));
  answer.time = TimeOf(by, answer.rows);
  if (by == CostBy::kModule) AddInnerModules(answer.rows);
  double total_us = 0;
  for (const CostRow& row : answer.rows) total_us += row.share_us;
  for (CostRow& row : answer.rows) row.share = total_us > 0 ? row.share_us / total_us : 0;
  if (by == CostBy::kKernel) {
    ASSIGN_OR_RETURN(const auto estimates,
                     KernelEstimates(database, options.run_id, options.profile_id));
    for (CostRow& row : answer.rows) {
      if (!row.graph_id || !row.kernel_id) continue;
      const auto found = estimates.find({*row.graph_id, *row.kernel_id});
      if (found != estimates.end()) row.estimated_us = found->second / 1e3;
    }
  }
  return {};
}

}  // namespace

Result<bool> HasModules(Database& database, std::int64_t profile_id) {
  ASSIGN_OR_RETURN(const bool has_table, HasModuleTable(database));
  if (!has_table) return false;
  ASSIGN_OR_RETURN(
      const std::int64_t has_modules,
      database.QueryInt(fmt::format("SELECT EXISTS (SELECT 1 FROM python_frame_row y JOIN "
                                    "module_link_row m ON m.frame_id = y.id WHERE y.profile_id = "
                                    "{})",
                                    profile_id)));
  return has_modules != 0;
}

Result<std::vector<CostAnswer>> Costs(Database& database, const CostOptions& options,
                                      std::span<const CostBy> questions) {
  ASSIGN_OR_RETURN(const CostAnswer begun, Begin(database, options));
  std::vector<CostAnswer> answers(questions.size(), begun);
  for (std::size_t i = 0; i < questions.size(); ++i)
    RETURN_IF_ERROR(FillRows(database, options, questions[i], answers[i]));
  return answers;
}

Result<CostAnswer> Cost(Database& database, const CostOptions& options) {
  ASSIGN_OR_RETURN(CostAnswer answer, Begin(database, options));
  RETURN_IF_ERROR(FillRows(database, options, options.by, answer));
  return answer;
}

}  // namespace tlparse
