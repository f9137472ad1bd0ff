-- What ran, and what it cost. Profiles that overlap an earlier one of the same process (profile.overlaps_id) are not counted.
-- All of a profile is counted: `tlparse cost` looks at its steps only.
--
-- Rule of the shares: a kernel that fuses several lines has one stack per origin (kernel_source). `inclusive_us` gives all of its time to
-- each line; `share_us` divides it by the stacks, so that a line gets as many parts as it has stacks, and the shares of all lines add up to
-- the kernels' time. Time of kernels that no line is known for stands in rows whose file is NULL. Nodes share a kernel's time alike.

-- Kernels: one row per kernel of a graph and process; kernels that are not joined stand by name, with kernel_id NULL.
CREATE VIEW kernel_cost AS
  SELECT p.run_id, p.process_id, p.rank, s.compile_id, s.graph_id, c.label, g.direction, l.kernel_id, coalesce(k.name, t.text) AS name,
    k.debug_handle, k.code_line, r.device, count(*) AS calls, sum(r.duration_ns) / 1e3 AS inclusive_us, sum(r.duration_ns) / 1e3 AS share_us,
    min(r.duration_ns) / 1e3 AS min_us, max(r.duration_ns) / 1e3 AS max_us, min(d.text) AS grid, min(l.join_key) AS join_key
  FROM kernel_run_row r JOIN profile p ON p.id = r.profile_id AND p.overlaps_id IS NULL
  LEFT JOIN kernel_run_link_row l ON l.kernel_run_id = r.id
  LEFT JOIN compiled_slice_link_row s ON s.slice_id = l.slice_id
  LEFT JOIN compile c ON c.id = s.compile_id LEFT JOIN graph g ON g.id = s.graph_id
  LEFT JOIN kernel_row k ON k.id = l.kernel_id LEFT JOIN text_row t ON t.id = r.name_id LEFT JOIN text_row d ON d.id = r.grid_id
  GROUP BY p.run_id, p.process_id, p.rank, s.graph_id, l.kernel_id, CASE WHEN l.kernel_id IS NULL THEN r.name_id END, r.device;

-- Python lines: the innermost frames of each kernel's stacks.
CREATE VIEW line_cost AS
  WITH cost AS MATERIALIZED (SELECT * FROM kernel_cost),
    last AS MATERIALIZED (
      SELECT s.kernel_id, s.stack_ordinal, max(s.frame_ordinal) AS frame_ordinal FROM kernel_source_row s
      WHERE s.kernel_id IN (SELECT kernel_id FROM cost) GROUP BY s.kernel_id, s.stack_ordinal),
    line AS MATERIALIZED (
      SELECT s.kernel_id, s.file_id, s.line, min(s.function_id) AS function_id, min(s.code_id) AS code_id, count(*) AS stacks,
        sum(count(*)) OVER (PARTITION BY s.kernel_id) AS all_stacks
      FROM last z JOIN kernel_source_row s ON s.kernel_id = z.kernel_id AND s.stack_ordinal = z.stack_ordinal
        AND s.frame_ordinal = z.frame_ordinal
      GROUP BY s.kernel_id, s.file_id, s.line)
  SELECT k.run_id, k.process_id, k.rank, f.text AS file, line.line, u.text AS function, c.text AS code, count(*) AS kernels,
    sum(k.calls) AS calls, sum(k.inclusive_us) AS inclusive_us,
    sum(k.inclusive_us * coalesce(line.stacks, 1) / coalesce(line.all_stacks, 1)) AS share_us
  FROM cost k LEFT JOIN line ON line.kernel_id = k.kernel_id
  LEFT JOIN text_row f ON f.id = line.file_id LEFT JOIN text_row u ON u.id = line.function_id LEFT JOIN text_row c ON c.id = line.code_id
  GROUP BY k.run_id, k.process_id, k.rank, line.file_id, line.line;

-- Nodes of the post-grad graphs; kernels without nodes stand in rows whose node is NULL.
CREATE VIEW node_cost AS
  SELECT k.run_id, k.process_id, k.rank, k.compile_id, k.graph_id, k.label, k.direction, n.post_grad_node, count(*) AS kernels,
    sum(k.calls) AS calls, sum(k.inclusive_us) AS inclusive_us,
    sum(k.inclusive_us / max(1, (SELECT count(*) FROM kernel_node_row m WHERE m.kernel_id = k.kernel_id))) AS share_us
  FROM kernel_cost k LEFT JOIN kernel_node_row n ON n.kernel_id = k.kernel_id
  GROUP BY k.run_id, k.process_id, k.rank, k.graph_id, n.post_grad_node;

-- Graphs of the log: what each cost to compile and what its measured calls took. Graphs that no profile saw have calls 0. What they would have
-- cost without the compiler is in no log; compile_time_in_calls says how many of its own calls the compile took as long as.
CREATE VIEW graph_cost AS
  WITH call AS MATERIALIZED (
    SELECT l.graph_id, count(*) AS calls, sum(s.duration_ns) / 1e3 AS inclusive_us, sum(l.device_ns) / 1e3 AS device_us,
      min(s.start_ns) / 1e3 AS first_us, max(s.start_ns) / 1e3 AS last_us
    FROM compiled_slice_link_row l JOIN compiled_slice_row s ON s.id = l.slice_id
    JOIN profile p ON p.id = s.profile_id AND p.overlaps_id IS NULL
    WHERE l.is_call = 1 AND l.graph_id IS NOT NULL GROUP BY l.graph_id)
  SELECT f.run_id, c.process_id, c.rank, g.compile_id, g.id AS graph_id, c.label, c.generation, c.function, g.direction, g.cache_key,
    CASE WHEN g.direction = 'backward' AND c.backward_duration_us IS NOT NULL THEN c.backward_duration_us ELSE c.duration_us END AS compile_us,
    coalesce(call.calls, 0) AS calls, call.inclusive_us, call.inclusive_us AS share_us, call.device_us, call.first_us, call.last_us,
    CASE WHEN g.direction = 'backward' AND c.backward_duration_us IS NOT NULL THEN c.backward_duration_us ELSE c.duration_us END
      / (call.inclusive_us / call.calls) AS compile_time_in_calls,
    EXISTS (SELECT 1 FROM profile p WHERE p.process_id = c.process_id) AS is_profiled
  FROM graph g JOIN compile c ON c.id = g.compile_id JOIN process q ON q.id = c.process_id JOIN log_file f ON f.id = q.log_file_id
  LEFT JOIN call ON call.graph_id = g.id;
