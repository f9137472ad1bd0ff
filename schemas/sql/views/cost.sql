-- Measured time by kernel, line, node and graph. Profiles that overlap an earlier one of the same process (profile.overlaps_id) are not counted.
-- All of a profile is counted; `tlparse cost` counts its steps only.
--
-- Rule of the shares: a kernel may fuse several lines. `inclusive_us` gives all of its time to each line; `share_us` divides it by the
-- post-grad nodes that each line contributed (a node of several lines counts for each of them in equal parts), so that the shares of all lines
-- add up to the kernels' time. If the log does not have the line of every node (backward graphs), the kernel's stacks are used instead of the
-- nodes, each as often as the log lists it (kernel_source.entry_count): kernel_line.basis names which. Time of kernels without a known line
-- is in rows whose file is NULL. Nodes share a kernel's time equally.

-- Kernels: one row per kernel of a graph and process; kernels that are not joined are listed by name, with kernel_id NULL, and by what the
-- profile itself says of them: `region`, `key`, `kernel_file` (see kernel_run).
CREATE VIEW kernel_cost AS
  SELECT p.run_id, p.process_id, p.rank, s.compile_id, s.graph_id, c.label, g.direction, l.kernel_id, coalesce(k.name, t.text) AS name,
    k.debug_handle, k.code_line, r.device, count(*) AS calls, sum(r.duration_ns / 1e3) AS inclusive_us, sum(r.duration_ns / 1e3) AS share_us,
    min(r.duration_ns) / 1e3 AS min_us, max(r.duration_ns) / 1e3 AS max_us, min(d.text) AS grid, min(l.join_key) AS join_key,
    min(w.text) AS region, coalesce(min(g.cache_key), min(CASE WHEN y.kind = 0 THEN q.text END)) AS key, min(f.text) AS kernel_file
  FROM kernel_run_row r JOIN profile p ON p.id = r.profile_id AND p.overlaps_id IS NULL
  LEFT JOIN kernel_run_link_row l ON l.kernel_run_id = r.id
  LEFT JOIN compiled_slice_link_row s ON s.slice_id = l.slice_id
  LEFT JOIN compile c ON c.id = s.compile_id LEFT JOIN graph g ON g.id = s.graph_id
  LEFT JOIN kernel_row k ON k.id = l.kernel_id LEFT JOIN text_row t ON t.id = r.name_id LEFT JOIN text_row d ON d.id = r.grid_id
  LEFT JOIN compiled_slice_row y ON y.id = l.slice_id LEFT JOIN text_row q ON q.id = y.name_id
  LEFT JOIN compiled_slice_row e ON e.id = l.region_id LEFT JOIN text_row w ON w.id = e.name_id
  LEFT JOIN op_run_row o ON o.id = l.launch_op_id LEFT JOIN text_row f ON f.id = o.file_id
  GROUP BY p.run_id, p.process_id, p.rank, s.graph_id, l.kernel_id, CASE WHEN l.kernel_id IS NULL THEN r.name_id END, r.device,
    CASE WHEN l.kernel_id IS NULL THEN e.name_id END, CASE WHEN l.kernel_id IS NULL AND y.kind = 0 THEN y.name_id END,
    CASE WHEN l.kernel_id IS NULL THEN o.file_id END;

-- Python lines: the innermost frames of each kernel's stacks.
CREATE VIEW line_cost AS
  SELECT k.run_id, k.process_id, k.rank, f.text AS file, line.line, u.text AS function, c.text AS code, count(*) AS kernels,
    sum(k.calls) AS calls, sum(k.inclusive_us) AS inclusive_us, sum(k.inclusive_us * coalesce(line.part, 1)) AS share_us
  FROM kernel_cost k LEFT JOIN kernel_line_row line ON line.kernel_id = k.kernel_id
  LEFT JOIN text_row f ON f.id = line.file_id LEFT JOIN text_row u ON u.id = line.function_id LEFT JOIN text_row c ON c.id = line.code_id
  GROUP BY k.run_id, k.process_id, k.rank, line.file_id, line.line;

-- Nodes of the post-grad graphs; the time of kernels without nodes is in rows whose node is NULL.
CREATE VIEW node_cost AS
  SELECT k.run_id, k.process_id, k.rank, k.compile_id, k.graph_id, k.label, k.direction, n.post_grad_node, count(*) AS kernels,
    sum(k.calls) AS calls, sum(k.inclusive_us) AS inclusive_us,
    sum(k.inclusive_us / max(1, (SELECT count(*) FROM kernel_node_row m WHERE m.kernel_id = k.kernel_id))) AS share_us
  FROM kernel_cost k LEFT JOIN kernel_node_row n ON n.kernel_id = k.kernel_id
  GROUP BY k.run_id, k.process_id, k.rank, k.graph_id, n.post_grad_node;

-- Graphs of the log: the compile time of each and the time of its measured calls. Graphs without measured calls have calls 0. A compile makes
-- several graphs (forward and backward, the pieces of DDP) and its log has one time for those of the forward, and one for those of the
-- backward if that was measured: compile_us is in the row of the first of these graphs, NULL in the others, and adds up over the rows.
-- No log has the time of calls without the compiler; compile_time_in_calls is the compile time as a number of measured calls of all these
-- graphs.
CREATE VIEW graph_cost AS
  WITH call AS MATERIALIZED (
    SELECT l.graph_id, count(*) AS calls, sum(s.duration_ns / 1e3) AS inclusive_us, sum(l.device_ns / 1e3) AS device_us,
      min(s.start_ns) / 1e3 AS first_us, max(s.start_ns) / 1e3 AS last_us
    FROM compiled_slice_link_row l JOIN compiled_slice_row s ON s.id = l.slice_id
    JOIN profile p ON p.id = s.profile_id AND p.overlaps_id IS NULL
    WHERE l.is_call = 1 AND l.graph_id IS NOT NULL GROUP BY l.graph_id),
  timed AS (
    SELECT f.run_id, c.process_id, c.rank, g.compile_id, g.id AS graph_id, c.label, c.generation, c.function, g.direction, g.cache_key,
      g.direction IS 'backward' AS is_backward,
      CASE WHEN g.direction IS 'backward' THEN c.backward_duration_us ELSE c.duration_us END AS us,
      call.calls, call.inclusive_us, call.device_us, call.first_us, call.last_us
    FROM graph g JOIN compile c ON c.id = g.compile_id JOIN process q ON q.id = c.process_id JOIN log_file f ON f.id = q.log_file_id
    LEFT JOIN call ON call.graph_id = g.id),
  first AS (
    SELECT *, row_number() OVER (same ORDER BY graph_id) = 1 AS is_first,
      sum(inclusive_us) OVER (same) / max(calls) OVER (same) AS us_of_a_call
    FROM timed WINDOW same AS (PARTITION BY compile_id, is_backward))
  SELECT run_id, process_id, rank, compile_id, graph_id, label, generation, function, direction, cache_key,
    CASE WHEN is_first THEN us END AS compile_us, coalesce(calls, 0) AS calls, inclusive_us, inclusive_us AS share_us, device_us, first_us,
    last_us, CASE WHEN is_first THEN us / us_of_a_call END AS compile_time_in_calls,
    EXISTS (SELECT 1 FROM profile p WHERE p.process_id = first.process_id) AS is_profiled
  FROM first;
