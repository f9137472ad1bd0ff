#include "facts/cost/cost_queries.h"

#include <fmt/format.h>

#include "inputs/join/join_notes.h"

namespace tlparse {
namespace {

// Work of a device counts where it was queued. What waits for a collective on the CPU is no kernel.
// A kernel is of a collective by its name, or by the op that launched it (of symm_mem).
constexpr char kKernelSql[] =
    ", unknown AS MATERIALIZED (SELECT id FROM text_row WHERE text IN ('{}', '{}', '{}')), "
    "replay AS MATERIALIZED (SELECT id FROM text_row WHERE text = '{}'), "
    "wait AS MATERIALIZED (SELECT id FROM text_row WHERE text LIKE '%wait_tensor%'), "
    "collective AS MATERIALIZED (SELECT id FROM text_row WHERE text LIKE 'nccl%' "
    "OR text LIKE 'rccl%' UNION SELECT c.op_id FROM win w "
    "JOIN collective_run_row c ON c.profile_id = w.profile_id WHERE c.op_id IS NOT NULL), "
    "cost AS MATERIALIZED (SELECT w.rank, w.launch, l.kernel_id, s.graph_id, "
    "s.compile_id, r.name_id, r.device, count(*) AS calls, sum(r.duration_ns / 1e3) AS us, "
    "max(r.duration_ns / 1e3) AS longest_us, min(r.grid_id) AS grid_id, "
    "min(r.block_id) AS block_id, min(l.note_id) AS note_id, "
    "min(e.name_id) AS region_id, min(CASE WHEN y.kind = 0 THEN y.name_id END) AS key_id, "
    "min(o.file_id) AS file_id, r.name_id IN (SELECT id FROM collective) "
    "OR o.name_id IN (SELECT id FROM collective) AS is_collective, "
    "l.slice_id IS NOT NULL AS is_in_call, l.slice_id IS NULL "
    "AND l.note_id IN (SELECT id FROM unknown) AS is_unknown, l.slice_id IS NULL "
    "AND l.note_id IN (SELECT id FROM replay) AS is_replay "
    "FROM win w JOIN kernel_run_row r ON r.profile_id = w.profile_id "
    "LEFT JOIN kernel_run_link_row l ON l.kernel_run_id = r.id "
    "LEFT JOIN compiled_slice_link_row s ON s.slice_id = l.slice_id "
    "LEFT JOIN compiled_slice_row y ON y.id = l.slice_id "
    "LEFT JOIN compiled_slice_row e ON e.id = l.region_id "
    "LEFT JOIN op_run_row o ON o.id = l.launch_op_id "
    "WHERE coalesce(l.enqueued_ns, r.start_ns) >= w.start_ns "
    "AND coalesce(l.enqueued_ns, r.start_ns) < w.end_ns "
    "AND (r.device IS NOT NULL OR r.name_id NOT IN (SELECT id FROM wait)) "
    "GROUP BY w.rank, w.launch, l.kernel_id, s.graph_id, "
    "r.device, is_in_call, is_unknown, is_replay, is_collective, CASE WHEN l.kernel_id IS NULL "
    "THEN r.name_id "
    "END, "
    "CASE WHEN l.kernel_id IS NULL THEN l.note_id END, "
    "CASE WHEN l.kernel_id IS NULL THEN e.name_id END, CASE WHEN l.kernel_id IS NULL "
    "AND y.kind = 0 THEN y.name_id END, CASE WHEN l.kernel_id IS NULL THEN o.file_id END)";

constexpr char kByKernel[] =
    " SELECT coalesce(k.name, t.text) AS name, v.rank, v.launch, "
    "coalesce(c.label, e.text) AS label, e.text AS region, coalesce(g.cache_key, q.text) AS key, "
    "p.text AS file, c.generation, g.direction, k.id AS kernel_id, "
    "v.graph_id, k.debug_handle, v.calls, v.us AS inclusive_us, v.us AS share_us, v.longest_us, "
    "d.text AS grid, "
    "b.text AS block, (SELECT group_concat(coalesce(f.text, '?') || ':' || z.line, ', ') "
    "FROM kernel_line_row z LEFT JOIN text_row f ON f.id = z.file_id "
    "WHERE z.kernel_id = k.id) AS lines, n.text AS join_note "
    "FROM cost v LEFT JOIN kernel_row k ON k.id = v.kernel_id "
    "LEFT JOIN compile c ON c.id = v.compile_id LEFT JOIN graph g ON g.id = v.graph_id "
    "LEFT JOIN text_row t ON t.id = v.name_id LEFT JOIN text_row d ON d.id = v.grid_id "
    "LEFT JOIN text_row b ON b.id = v.block_id LEFT JOIN text_row n ON n.id = v.note_id "
    "LEFT JOIN text_row e ON e.id = v.region_id LEFT JOIN text_row q ON q.id = v.key_id "
    "LEFT JOIN text_row p ON p.id = v.file_id ORDER BY share_us DESC, name";

// Time without a line has a row for each graph, and one for each reason why a kernel is of none.
constexpr char kByLine[] =
    ", part AS (SELECT v.*, line.file_id AS line_file_id, line.line, line.part, "
    "line.function_id, line.code_id, CASE WHEN line.kernel_id IS NULL THEN c.label END AS label, "
    "CASE WHEN line.kernel_id IS NULL THEN c.generation END AS generation, "
    "CASE WHEN line.kernel_id IS NULL THEN g.direction END AS direction, "
    "CASE WHEN v.kernel_id IS NULL THEN v.note_id END AS line_note_id "
    "FROM cost v LEFT JOIN kernel_line_row line ON line.kernel_id = v.kernel_id "
    "LEFT JOIN compile c ON c.id = v.compile_id LEFT JOIN graph g ON g.id = v.graph_id) "
    "SELECT c.text AS name, f.text AS file, p.line, u.text AS function, p.label, p.generation, "
    "p.direction, n.text AS join_note, sum(p.calls) AS calls, sum(p.us) AS inclusive_us, "
    "sum(p.us * coalesce(p.part, 1)) AS share_us FROM part p "
    "LEFT JOIN text_row f ON f.id = p.line_file_id LEFT JOIN text_row u ON u.id = p.function_id "
    "LEFT JOIN text_row c ON c.id = p.code_id LEFT JOIN text_row n ON n.id = p.line_note_id "
    "GROUP BY p.line_file_id, p.line, p.label, p.generation, p.direction, p.line_note_id "
    "ORDER BY share_us DESC, file, p.line, p.label, p.direction";

constexpr char kByNode[] =
    " SELECT n.post_grad_node AS name, v.rank, v.launch, c.label, c.generation, "
    "g.direction, v.graph_id, sum(v.calls) AS calls, sum(v.us) AS inclusive_us, sum(v.us / max(1, ("
    "SELECT count(*) FROM kernel_node_row m WHERE m.kernel_id = v.kernel_id))) AS share_us "
    "FROM cost v LEFT JOIN kernel_node_row n ON n.kernel_id = v.kernel_id "
    "LEFT JOIN compile c ON c.id = v.compile_id LEFT JOIN graph g ON g.id = v.graph_id "
    "GROUP BY v.rank, v.launch, v.graph_id, n.post_grad_node ORDER BY share_us DESC, name";

// A compile has one time for the graphs of its forward and, where the log measured a lazy backward,
// one for those of the backward: each is in one row. A backward that no metric measured has none.
constexpr char kByGraph[] =
    ", call AS (SELECT coalesce(c.function, CASE WHEN s.kind = 7 THEN t.text END) AS name, "
    "w.rank, w.launch, coalesce(c.label, x.text) AS label, x.text AS region, "
    "c.generation, coalesce(g.cache_key, CASE WHEN s.kind = 0 THEN t.text END) AS key, "
    "g.direction, l.graph_id, l.compile_id, count(*) AS calls, "
    "sum(s.duration_ns / 1e3) AS inclusive_us, sum(s.duration_ns / 1e3) AS share_us, "
    "max(s.duration_ns / 1e3) AS longest_us, sum(l.device_ns / 1e3) AS device_us, "
    "g.direction IS 'backward' AS is_backward, CASE "
    "WHEN g.direction IS 'backward' THEN c.backward_duration_us ELSE c.duration_us END AS all_us, "
    "n.text AS join_note FROM win w JOIN compiled_slice_row s ON s.profile_id = w.profile_id "
    "AND s.start_ns >= w.start_ns AND s.start_ns < w.end_ns "
    "JOIN compiled_slice_link_row l ON l.slice_id = s.id AND l.is_call = 1 "
    "LEFT JOIN graph g ON g.id = l.graph_id LEFT JOIN compile c ON c.id = l.compile_id "
    "LEFT JOIN text_row t ON t.id = s.name_id LEFT JOIN text_row n ON n.id = l.note_id "
    "LEFT JOIN compiled_slice_row e ON e.id = l.region_id LEFT JOIN text_row x ON x.id = e.name_id "
    "GROUP BY w.rank, w.launch, l.compile_id, l.graph_id, CASE "
    "WHEN l.graph_id IS NULL THEN s.name_id END, CASE WHEN l.compile_id IS NULL THEN x.text END) "
    "SELECT name, "
    "rank, launch, label, region, generation, key, direction, graph_id, calls, inclusive_us, "
    "share_us, longest_us, device_us, "
    "coalesce(join_note, CASE WHEN is_backward AND compile_id IS NOT NULL "
    "AND all_us IS NULL THEN 'the log has no compile time of this backward' END) AS join_note, "
    "CASE WHEN row_number() OVER (PARTITION BY compile_id, is_backward "
    "ORDER BY direction IS NULL, share_us DESC, graph_id) = 1 THEN all_us END AS compile_us "
    "FROM call ORDER BY share_us DESC, label, graph_id";

// Ops share the time of the devices where any kernel ran there, else that of the CPU. Kernels that no
// op enqueued have a row for each reason.
constexpr char kByOp[] =
    ", replay AS MATERIALIZED (SELECT DISTINCT d.profile_id, d.correlation FROM win w "
    "JOIN device_launch_row d ON d.profile_id = w.profile_id JOIN text_row t ON t.id = d.name_id "
    "WHERE t.text LIKE '%GraphLaunch%'), "
    "ran AS MATERIALIZED (SELECT o.name_id, CASE WHEN o.id IS NOT NULL THEN NULL "
    "WHEN p.correlation IS NOT NULL THEN '{0}' WHEN n.text = '{1}' THEN n.text "
    "WHEN l.enqueued_ns IS NULL THEN '{2}' "
    "ELSE 'no op was open where it was enqueued' END AS note, "
    "count(*) AS kernels, sum(r.duration_ns / 1e3) AS us "
    "FROM win w JOIN kernel_run_row r ON r.profile_id = w.profile_id AND r.device IS NOT NULL "
    "LEFT JOIN kernel_run_link_row l ON l.kernel_run_id = r.id "
    "LEFT JOIN op_run_row o ON o.id = l.launch_op_id LEFT JOIN text_row n ON n.id = l.note_id "
    "LEFT JOIN replay p ON p.profile_id = r.profile_id AND p.correlation = r.correlation "
    "WHERE coalesce(l.enqueued_ns, r.start_ns) >= w.start_ns "
    "AND coalesce(l.enqueued_ns, r.start_ns) < w.end_ns GROUP BY 1, 2), "
    "op AS MATERIALIZED (SELECT o.name_id, count(*) AS calls, "
    "sum(o.duration_ns / 1e3) AS inclusive_us, sum(l.self_ns / 1e3) AS cpu_us "
    "FROM win w JOIN op_run_row o ON o.profile_id = w.profile_id AND o.start_ns >= w.start_ns "
    "AND o.start_ns < w.end_ns LEFT JOIN op_run_link_row l ON l.op_run_id = o.id "
    "GROUP BY o.name_id), one AS (SELECT count(*) > 0 AS has_device FROM ran) "
    "SELECT t.text AS name, op.calls, op.inclusive_us, op.cpu_us, ran.us AS device_us, "
    "CASE WHEN has_device THEN coalesce(ran.us, 0) ELSE cpu_us END AS share_us, "
    "NULL AS join_note FROM one CROSS JOIN op JOIN text_row t ON t.id = op.name_id "
    "LEFT JOIN ran ON ran.name_id = op.name_id "
    "UNION ALL SELECT t.text, ran.kernels, 0, NULL, ran.us, ran.us, ran.note "
    "FROM ran LEFT JOIN text_row t ON t.id = ran.name_id "
    "WHERE ran.name_id IS NULL OR ran.name_id NOT IN (SELECT name_id FROM op) "
    "ORDER BY share_us DESC, cpu_us DESC, name, join_note";

// The rule is in schemas/sql/inputs/module.sql.
constexpr char kByModule[] =
    ", ran AS (SELECT m.path_id, "
    "count(*) AS calls, sum(m.self_ns / 1e3) AS cpu_us, NULL AS us, 0 AS on_device FROM win w "
    "JOIN python_frame_row y ON y.profile_id = w.profile_id AND y.start_ns >= w.start_ns "
    "AND y.start_ns < w.end_ns JOIN module_link_row m ON m.frame_id = y.id GROUP BY m.path_id "
    "UNION ALL SELECT m.path_id, 0, NULL, sum(r.duration_ns / 1e3), max(r.device IS NOT NULL) "
    "FROM win w JOIN kernel_run_row r ON r.profile_id = w.profile_id "
    "LEFT JOIN kernel_run_link_row l ON l.kernel_run_id = r.id "
    "LEFT JOIN kernel_module_link_row x ON x.kernel_run_id = r.id "
    "LEFT JOIN module_link_row m ON m.frame_id = x.frame_id "
    "WHERE coalesce(l.enqueued_ns, r.start_ns) >= w.start_ns "
    "AND coalesce(l.enqueued_ns, r.start_ns) < w.end_ns GROUP BY m.path_id), "
    "module AS (SELECT path_id, sum(calls) AS calls, sum(cpu_us) AS cpu_us, sum(us) AS us FROM ran "
    "GROUP BY path_id), one AS (SELECT coalesce(max(on_device), 0) AS has_device FROM ran) "
    "SELECT t.text AS name, calls, cpu_us, CASE WHEN has_device THEN us END AS device_us, "
    "coalesce(CASE WHEN has_device THEN us ELSE cpu_us END, 0) AS share_us "
    "FROM module, one LEFT JOIN text_row t ON t.id = path_id "
    "WHERE path_id IS NOT NULL OR has_device ORDER BY share_us DESC, cpu_us DESC, name";

}  // namespace

std::string WindowSql(const std::vector<CostProfile>& profiles) {
  std::string values;
  const auto number = [](const std::optional<std::int64_t>& value) {
    return value ? fmt::format("{}", *value) : std::string("NULL");
  };
  for (const CostProfile& profile : profiles)
    values +=
        fmt::format("{}({},{},{},{},{})", values.empty() ? "" : ",", profile.id,
                    number(profile.rank), number(profile.launch), profile.start_ns, profile.end_ns);
  return "WITH win(profile_id, rank, launch, start_ns, end_ns) AS (VALUES " + values + ")";
}

std::string KernelCostSql(const std::vector<CostProfile>& profiles) {
  return WindowSql(profiles) + fmt::format(fmt::runtime(kKernelSql), kLaunchNotInProfile,
                                           kLaunchNotInLog, kCallNotInProfile, kGraphReplay);
}

std::string CostSql(CostBy by, const std::vector<CostProfile>& profiles) {
  switch (by) {
    case CostBy::kLine:
      return KernelCostSql(profiles) + kByLine;
    case CostBy::kKernel:
      return KernelCostSql(profiles) + kByKernel;
    case CostBy::kNode:
      return KernelCostSql(profiles) + kByNode;
    case CostBy::kGraph:
      return WindowSql(profiles) + kByGraph;
    case CostBy::kModule:
      return WindowSql(profiles) + kByModule;
    case CostBy::kOp:
      break;
  }
  return WindowSql(profiles) +
         fmt::format(fmt::runtime(kByOp), kGraphReplay, kLaunchNotInLog, kLaunchNotInProfile);
}

}  // namespace tlparse
