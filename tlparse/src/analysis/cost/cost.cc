#include "analysis/cost/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/cost/estimates.h"

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
          "max(a.step) "
          "FROM profile p LEFT JOIN annotation_row a ON a.profile_id = p.id AND a.step IS NOT NULL "
          "AND a.device IS NULL AND (?3 IS NULL OR a.step >= ?3) AND (?4 IS NULL OR a.step <= ?4) "
          "WHERE p.run_id = ?1 AND p.kind IN ('kineto', 'nsys', 'libtrace') AND (?2 IS NULL OR "
          "p.rank = ?2) AND (?5 IS NULL OR p.id = ?5) GROUP BY p.id ORDER BY p.rank, p.start_us"));
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
    if (rows.Int(8) != 0) {
      notes.push_back(
          fmt::format("{} overlaps an earlier profile of the same process and is not "
                      "counted",
                      profile.path));
      continue;
    }
    if (profile.steps == 0 && wants_steps) continue;
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

// The windows as a common table expression, and in it the kernels' costs.
std::string WindowSql(const std::vector<CostProfile>& profiles) {
  std::string values;
  for (const CostProfile& profile : profiles)
    values += fmt::format("{}({},{},{})", values.empty() ? "" : ",", profile.id, profile.start_ns,
                          profile.end_ns);
  return "WITH win(profile_id, start_ns, end_ns) AS (VALUES " + values + ")";
}

// Work of a device counts where it was queued.
constexpr char kKernelSql[] =
    ", cost AS MATERIALIZED ("
    "SELECT l.kernel_id, s.graph_id, s.compile_id, r.name_id, r.device, count(*) AS calls, "
    "sum(r.duration_ns) / 1e3 AS us, min(r.grid_id) AS grid_id, min(r.block_id) AS block_id, "
    "min(l.note_id) AS note_id "
    "FROM win w JOIN kernel_run_row r ON r.profile_id = w.profile_id "
    "LEFT JOIN kernel_run_link_row l ON l.kernel_run_id = r.id "
    "LEFT JOIN compiled_slice_link_row s ON s.slice_id = l.slice_id "
    "WHERE coalesce(l.enqueued_ns, r.start_ns) >= w.start_ns AND coalesce(l.enqueued_ns, "
    "r.start_ns) < w.end_ns "
    "GROUP BY l.kernel_id, s.graph_id, CASE WHEN l.kernel_id IS NULL THEN r.name_id END, r.device)";

constexpr char kByKernel[] =
    " SELECT coalesce(k.name, t.text) AS name, c.label, g.direction, k.id AS kernel_id, "
    "v.graph_id, k.debug_handle, v.calls, v.us AS inclusive_us, v.us AS share_us, d.text AS grid, "
    "b.text AS block, "
    "(SELECT group_concat(DISTINCT f.text || ':' || s.line) FROM kernel_source_row s JOIN text_row "
    "f ON f.id = s.file_id WHERE s.kernel_id = k.id AND s.frame_ordinal = (SELECT "
    "max(z.frame_ordinal) FROM kernel_source_row z WHERE z.kernel_id = k.id AND z.stack_ordinal = "
    "s.stack_ordinal)) AS lines, n.text AS join_note "
    "FROM cost v LEFT JOIN kernel_row k ON k.id = v.kernel_id LEFT JOIN compile c ON c.id = "
    "v.compile_id LEFT JOIN graph g ON g.id = v.graph_id LEFT JOIN text_row t ON t.id = v.name_id "
    "LEFT JOIN text_row d ON d.id = v.grid_id LEFT JOIN text_row b ON b.id = v.block_id LEFT JOIN "
    "text_row n ON n.id = v.note_id "
    "ORDER BY share_us DESC, name";

constexpr char kByLine[] =
    ", last AS MATERIALIZED (SELECT s.kernel_id, s.stack_ordinal, max(s.frame_ordinal) AS "
    "frame_ordinal FROM kernel_source_row s WHERE s.kernel_id IN (SELECT kernel_id FROM cost) "
    "GROUP "
    "BY s.kernel_id, s.stack_ordinal), "
    "line AS MATERIALIZED (SELECT s.kernel_id, s.file_id, s.line, min(s.function_id) AS "
    "function_id, min(s.code_id) AS code_id, count(*) AS stacks, sum(count(*)) OVER (PARTITION BY "
    "s.kernel_id) AS all_stacks FROM last z JOIN kernel_source_row s ON s.kernel_id = z.kernel_id "
    "AND s.stack_ordinal = z.stack_ordinal AND s.frame_ordinal = z.frame_ordinal GROUP BY "
    "s.kernel_id, s.file_id, s.line) "
    "SELECT c.text AS name, f.text AS file, line.line, u.text AS function, sum(v.calls) AS calls, "
    "sum(v.us) AS inclusive_us, sum(v.us * coalesce(line.stacks, 1) / coalesce(line.all_stacks, "
    "1)) AS share_us FROM cost v LEFT JOIN line ON line.kernel_id = v.kernel_id "
    "LEFT JOIN text_row f ON f.id = line.file_id LEFT JOIN text_row u ON u.id = line.function_id "
    "LEFT JOIN text_row c ON c.id = line.code_id GROUP BY line.file_id, line.line "
    "ORDER BY share_us DESC, file, line.line";

constexpr char kByNode[] =
    " SELECT n.post_grad_node AS name, c.label, g.direction, v.graph_id, sum(v.calls) AS calls, "
    "sum(v.us) AS inclusive_us, sum(v.us / max(1, (SELECT count(*) FROM kernel_node_row m WHERE "
    "m.kernel_id = v.kernel_id))) AS share_us "
    "FROM cost v LEFT JOIN kernel_node_row n ON n.kernel_id = v.kernel_id LEFT JOIN compile c ON "
    "c.id = v.compile_id LEFT JOIN graph g ON g.id = v.graph_id "
    "GROUP BY CASE WHEN n.post_grad_node IS NOT NULL THEN v.graph_id END, n.post_grad_node "
    "ORDER BY share_us DESC, name";

constexpr char kByGraph[] =
    " SELECT c.function AS name, coalesce(c.label, CASE WHEN s.kind = 1 THEN t.text END) AS label, "
    "g.direction, l.graph_id, count(*) AS calls, sum(s.duration_ns) / 1e3 AS inclusive_us, "
    "sum(s.duration_ns) / 1e3 AS share_us, sum(l.device_ns) / 1e3 AS device_us, "
    "CASE WHEN g.direction = 'backward' AND c.backward_duration_us IS NOT NULL THEN "
    "c.backward_duration_us ELSE c.duration_us END AS compile_us, n.text AS join_note "
    "FROM win w JOIN compiled_slice_row s ON s.profile_id = w.profile_id AND s.start_ns >= "
    "w.start_ns AND s.start_ns < w.end_ns JOIN compiled_slice_link_row l ON l.slice_id = s.id AND "
    "l.is_call = 1 LEFT JOIN graph g ON g.id = l.graph_id LEFT JOIN compile c ON c.id = "
    "l.compile_id LEFT JOIN text_row t ON t.id = s.name_id LEFT JOIN text_row n ON n.id = "
    "l.note_id "
    "GROUP BY l.compile_id, l.graph_id, CASE WHEN l.graph_id IS NULL THEN s.name_id END "
    "ORDER BY share_us DESC, label";

constexpr char kByOp[] =
    " SELECT t.text AS name, count(*) AS calls, sum(o.duration_ns) / 1e3 AS inclusive_us, "
    "sum(l.self_ns) / 1e3 AS share_us, sum(l.device_ns) / 1e3 AS device_us "
    "FROM win w JOIN op_run_row o ON o.profile_id = w.profile_id AND o.start_ns >= w.start_ns AND "
    "o.start_ns < w.end_ns LEFT JOIN op_run_link_row l ON l.op_run_id = o.id JOIN text_row t ON "
    "t.id = o.name_id GROUP BY o.name_id ORDER BY coalesce(sum(l.device_ns), 0) DESC, share_us "
    "DESC, "
    "name";

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
    row.compile_us = real("compile_us");
    row.join_note = text("join_note");
    result.push_back(std::move(row));
  }
}

Result<void> FillKernelTimes(Database& database, CostProfile& profile) {
  ASSIGN_OR_RETURN(
      Statement rows,
      database.Prepare(WindowSql({profile}) + kKernelSql +
                       " SELECT total(us), total(CASE WHEN kernel_id IS NOT NULL THEN us END) FROM "
                       "cost"));
  ASSIGN_OR_RETURN(const bool has_row, rows.Step());
  if (!has_row) return {};
  profile.kernel_us = rows.Real(0);
  profile.joined_kernel_us = rows.Real(1);
  return {};
}

std::string SqlFor(CostBy by) {
  switch (by) {
    case CostBy::kLine:
      return std::string(kKernelSql) + kByLine;
    case CostBy::kKernel:
      return std::string(kKernelSql) + kByKernel;
    case CostBy::kNode:
      return std::string(kKernelSql) + kByNode;
    case CostBy::kGraph:
      return kByGraph;
    case CostBy::kOp:
      break;
  }
  return kByOp;
}

}  // namespace

Result<CostAnswer> Cost(Database& database, const CostOptions& options) {
  CostAnswer answer;
  ASSIGN_OR_RETURN(answer.profiles, Profiles(database, options, answer.notes));
  if (answer.profiles.empty()) {
    const bool is_filtered =
        options.rank || options.profile_id || options.first_step || options.last_step;
    return Fail(ErrorCode::kNotFound,
                is_filtered
                    ? "no profile of this run is of that rank and holds those steps"
                    : "this run has no profile: ingest one beside its logs (torch.profiler's "
                      "export_chrome_trace or tensorboard_trace_handler writes them)");
  }
  for (CostProfile& profile : answer.profiles) {
    RETURN_IF_ERROR(FillTimes(database, profile));
    RETURN_IF_ERROR(FillKernelTimes(database, profile));
  }
  ASSIGN_OR_RETURN(Statement rows,
                   database.Prepare(WindowSql(answer.profiles) + SqlFor(options.by)));
  ASSIGN_OR_RETURN(answer.rows, ReadRows(rows));
  double total_us = 0;
  for (const CostRow& row : answer.rows) total_us += row.share_us;
  for (CostRow& row : answer.rows) row.share = total_us > 0 ? row.share_us / total_us : 0;
  if (options.by == CostBy::kKernel) {
    ASSIGN_OR_RETURN(const auto estimates,
                     KernelEstimates(database, options.run_id, options.profile_id));
    for (CostRow& row : answer.rows) {
      if (!row.graph_id || !row.kernel_id) continue;
      const auto found = estimates.find({*row.graph_id, *row.kernel_id});
      if (found != estimates.end()) row.estimated_us = found->second / 1e3;
    }
  }
  if (answer.profiles.size() > 1)
    answer.notes.push_back(fmt::format("sums over {} profiles", answer.profiles.size()));
  return answer;
}

}  // namespace tlparse
