#include "inputs/join/kernel_lines.h"

namespace tlparse {
namespace {

// `line`: the lines of a kernel's stacks. `node_line`: the line of each of its post-grad nodes, from the
// comments of the pre-grad graphs. The time is divided by nodes if every node has one of these lines
// and every line has a node, else by stacks.
constexpr char kDivide[] =
    "INSERT INTO kernel_line_row (kernel_id, file_id, line, function_id, code_id, part, basis) "
    "WITH ran AS MATERIALIZED (SELECT DISTINCT l.kernel_id, s.compile_id "
    "FROM profile p JOIN kernel_run_row r ON r.profile_id = p.id "
    "JOIN kernel_run_link_row l ON l.kernel_run_id = r.id "
    "LEFT JOIN compiled_slice_link_row s ON s.slice_id = l.slice_id "
    "WHERE p.run_id = ?1 AND l.kernel_id IS NOT NULL), "
    "last AS MATERIALIZED (SELECT kernel_id, stack_ordinal, max(frame_ordinal) AS frame_ordinal "
    "FROM kernel_source_row "
    "WHERE kernel_id IN (SELECT kernel_id FROM ran) GROUP BY 1, 2), line AS MATERIALIZED ("
    "SELECT s.kernel_id, s.file_id, s.line, min(s.function_id) AS function_id, "
    "min(s.code_id) AS code_id, sum(coalesce(s.entry_count, 1)) AS stacks, "
    "sum(sum(coalesce(s.entry_count, 1))) OVER (PARTITION BY s.kernel_id) AS all_stacks, "
    "count(*) OVER (PARTITION BY s.kernel_id) AS lines FROM last z "
    "JOIN kernel_source_row s ON s.kernel_id = z.kernel_id AND s.stack_ordinal = z.stack_ordinal "
    "AND s.frame_ordinal = z.frame_ordinal GROUP BY s.kernel_id, s.file_id, s.line), "
    "origin AS MATERIALIZED (SELECT DISTINCT t.compile_id, n.name, n.file_id, n.line "
    "FROM graph_text_row t JOIN graph_node_row n ON n.content_id = t.content_id "
    "WHERE t.compile_id IN (SELECT compile_id FROM ran) AND n.line IS NOT NULL), "
    "node AS MATERIALIZED (SELECT kernel_id, count(*) AS nodes FROM kernel_node_row "
    "WHERE kernel_id IN (SELECT kernel_id FROM line WHERE lines > 1) GROUP BY kernel_id), "
    "node_line AS MATERIALIZED (SELECT DISTINCT n.kernel_id, n.post_grad_node, z.file_id, z.line "
    "FROM node CROSS JOIN ran ON ran.kernel_id = node.kernel_id "
    "CROSS JOIN kernel_row k ON k.id = node.kernel_id CROSS JOIN kernel_node_row n "
    "ON n.kernel_id = node.kernel_id CROSS JOIN node_mapping_row m ON m.content_id = k.content_id "
    "AND m.post_grad_node = n.post_grad_node CROSS JOIN origin o ON o.compile_id = ran.compile_id "
    "AND o.name = m.pre_grad_node CROSS JOIN line z ON z.kernel_id = node.kernel_id "
    "AND z.file_id = o.file_id AND z.line = o.line), part AS (SELECT kernel_id, post_grad_node, "
    "file_id, line, 1.0 / count(*) OVER (PARTITION BY kernel_id, post_grad_node) AS part "
    "FROM node_line), weight AS MATERIALIZED (SELECT kernel_id, "
    "file_id, line, sum(part) AS nodes, count(*) OVER (PARTITION BY kernel_id) AS lines, "
    "sum(sum(part)) OVER (PARTITION BY kernel_id) AS all_nodes "
    "FROM part GROUP BY kernel_id, file_id, line) "
    "SELECT z.kernel_id, z.file_id, z.line, z.function_id, z.code_id, "
    "CASE WHEN w.lines = z.lines AND round(w.all_nodes) = node.nodes THEN w.nodes / w.all_nodes "
    "ELSE 1.0 * z.stacks / z.all_stacks END, "
    "coalesce(w.lines = z.lines AND round(w.all_nodes) = node.nodes, z.lines = 1) = 0 "
    "FROM line z LEFT JOIN node ON node.kernel_id = z.kernel_id "
    "LEFT JOIN weight w ON w.kernel_id = z.kernel_id AND w.file_id = z.file_id AND w.line = z.line";

}  // namespace

Result<void> DivideKernelsAmongLines(Database& database, std::int64_t run_id) {
  RETURN_IF_ERROR(database.Execute(
      "DELETE FROM kernel_line_row WHERE kernel_id NOT IN (SELECT id FROM kernel_row)"));
  ASSIGN_OR_RETURN(
      Statement remove,
      database.Prepare("DELETE FROM kernel_line_row WHERE kernel_id IN (SELECT l.kernel_id "
                       "FROM profile p JOIN kernel_run_row r ON r.profile_id = p.id "
                       "JOIN kernel_run_link_row l ON l.kernel_run_id = r.id WHERE p.run_id = ?)"));
  remove.Bind(1, run_id);
  RETURN_IF_ERROR(remove.Run());
  ASSIGN_OR_RETURN(Statement divide, database.Prepare(kDivide));
  divide.Bind(1, run_id);
  return divide.Run();
}

}  // namespace tlparse
