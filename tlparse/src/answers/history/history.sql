-- The compiles in order of time. Calls are those of the graph of the compile that was called most; a
-- profile that ended before the compile began says nothing about it. Ranges of ids, not
-- ":run_id IS NULL OR": these are searched by index, so that of a database with other runs only the
-- named one is read.
-- `most`: no more than these, without the first ones that are skipped; the view is asked for no other.
-- A log that ends inside a backward has an event that is open.
-- query CompileInHistory(rank INTEGER?, run_id INTEGER?, launch INTEGER?, pid INTEGER?, skipped INTEGER, most INTEGER?)
WITH ran AS MATERIALIZED (SELECT compile_id, max(calls) AS calls, sum(us) AS run_us,
    sum(device_us) AS device_us
  FROM (SELECT l.compile_id, l.graph_id, count(*) AS calls, sum(s.duration_ns) / 1e3 AS us,
      sum(l.device_ns) / 1e3 AS device_us
    FROM profile p JOIN compiled_slice_row s ON s.profile_id = p.id
      JOIN compiled_slice_link_row l ON l.slice_id = s.id
    WHERE p.run_id BETWEEN ifnull(:run_id, 0) AND ifnull(:run_id, 9223372036854775807)
      AND p.overlaps_id IS NULL AND l.is_call = 1 AND l.compile_id IS NOT NULL GROUP BY 1, 2)
  GROUP BY 1),
-- By run.json, of the process whose log it is.
exits AS MATERIALIZED (SELECT p.id AS process_id, c.signal, c.exit_code
  FROM run_process c JOIN profile f ON f.id = c.profile_id JOIN process p ON p.pid = c.pid
    JOIN log_file l ON l.id = p.log_file_id AND l.run_id = f.run_id
  WHERE p.first_record_us BETWEEN c.started_us - 1000000
    AND coalesce(c.ended_us, p.first_record_us) + 1000000
  GROUP BY p.id HAVING count(*) = 1),
recorded AS MATERIALIZED (SELECT compile_id, count(*) AS graphs FROM cuda_graph
  WHERE EXISTS (SELECT 1 FROM text_row WHERE text = 'CUDAGraphNode.record') GROUP BY compile_id),
open_backward AS MATERIALIZED (SELECT s.compile_id FROM rank_status s
  WHERE s.process_id IN (SELECT c.process_id FROM chromium_event_row e
      JOIN compile c ON c.id = e.compile_id WHERE e.phase = 66)
    AND s.run_id BETWEEN ifnull(:run_id, 0) AND ifnull(:run_id, 9223372036854775807)
    AND s.state = 'compiling' AND s.is_backward)
SELECT r.name AS run, h.compile_id /*INTEGER*/, h.run_id /*INTEGER*/, h.rank /*INTEGER?*/,
  h.process_id /*INTEGER*/, h.label /*TEXT*/, h.generation /*INTEGER*/, h.function /*TEXT?*/,
  h.file /*TEXT?*/, h.line /*INTEGER?*/, h.status /*TEXT*/, h.start_time_us /*INTEGER?*/,
  h.duration_us /*INTEGER?*/, h.backward_duration_us /*INTEGER?*/, h.total_us /*INTEGER?*/,
  h.dynamo_us /*INTEGER?*/, h.aot_autograd_us /*INTEGER?*/, h.inductor_us /*INTEGER?*/,
  h.code_gen_us /*INTEGER?*/, h.triton_us /*INTEGER?*/, h.before_restart_us /*INTEGER?*/,
  h.graph_breaks /*INTEGER*/, h.restarts /*INTEGER?*/, h.recompile_reason /*TEXT?*/,
  h.recompile_of /*TEXT?*/, h.caches /*TEXT?*/, h.graphs /*INTEGER*/,
  h.graph_op_count /*INTEGER?*/, h.guard_count /*INTEGER?*/, h.fail_type /*TEXT?*/,
  h.fail_reason /*TEXT?*/, h.backward_inductor_us /*INTEGER?*/, n.ordinal AS launch /*INTEGER?*/,
  p.pid /*INTEGER*/, p.child_kind /*TEXT?*/,
  CASE WHEN ran.calls IS NOT NULL
    OR (EXISTS (SELECT 1 FROM profile x WHERE x.process_id = h.process_id
        AND x.kind IN (SELECT name FROM profile_kind WHERE is_of_profiler)
        AND x.end_us >= h.start_time_us)
      AND EXISTS (SELECT 1 FROM graph g WHERE g.compile_id = h.compile_id))
    THEN coalesce(ran.calls, 0) END AS calls /*INTEGER?*/,
  ran.run_us /*REAL?*/, ran.device_us /*REAL?*/,
  (SELECT group_concat(guard, '; ') FROM (SELECT 'after ' ||
      coalesce(m.prior_label || iif(z.generation > 0, '#' || (z.generation + 1), ''), '?') || ': ' ||
      coalesce(m.guard, m.reason) AS guard
    FROM recompile m LEFT JOIN compile z ON z.id = m.prior_compile_id
    WHERE m.compile_id = h.compile_id ORDER BY m.record_id, m.ordinal))
    AS failed_guards /*TEXT?*/,
  h.compile_id IN (SELECT compile_id FROM open_backward) AS ends_in_backward /*BOOLEAN*/,
  coalesce(recorded.graphs, 0) AS cuda_graphs /*INTEGER*/,
  (SELECT m.cudagraph_skip_reason FROM compilation_metric m WHERE m.compile_id = h.compile_id
    AND m.cudagraph_skip_reason IS NOT NULL ORDER BY m.record_id LIMIT 1)
    AS cuda_graph_skip /*TEXT?*/,
  exits.signal AS process_signal /*INTEGER?*/, exits.exit_code AS process_exit_code /*INTEGER?*/
FROM compile_history h LEFT JOIN ran ON ran.compile_id = h.compile_id JOIN run r ON r.id = h.run_id
  JOIN process p ON p.id = h.process_id LEFT JOIN launch n ON n.id = p.launch_id
  LEFT JOIN recorded ON recorded.compile_id = h.compile_id
  LEFT JOIN exits ON exits.process_id = h.process_id
WHERE (:rank IS NULL OR h.rank = :rank) AND (:pid IS NULL OR p.pid = :pid)
  AND r.id BETWEEN ifnull(:run_id, 0) AND ifnull(:run_id, 9223372036854775807)
  AND (:launch IS NULL OR n.ordinal = :launch)
  AND (:most IS NULL OR h.compile_id IN (SELECT k.id FROM compile k
      JOIN process kp ON kp.id = k.process_id JOIN log_file kf ON kf.id = kp.log_file_id
      LEFT JOIN launch kn ON kn.id = kp.launch_id
    WHERE (:rank IS NULL OR k.rank = :rank) AND (:pid IS NULL OR kp.pid = :pid)
      AND kf.run_id BETWEEN ifnull(:run_id, 0) AND ifnull(:run_id, 9223372036854775807)
      AND (:launch IS NULL OR kn.ordinal = :launch)
    ORDER BY kf.run_id, k.start_time_us IS NULL, k.start_time_us, k.rank, k.id
    LIMIT ifnull(:most, -1) OFFSET :skipped))
ORDER BY h.run_id, h.start_time_us IS NULL, h.start_time_us, h.rank, h.compile_id;

-- How many compiles the query above has without `most`.
-- query SizeOfHistory(rank INTEGER?, run_id INTEGER?, launch INTEGER?, pid INTEGER?)
SELECT count(*) AS compiles /*INTEGER*/
FROM compile k JOIN process p ON p.id = k.process_id JOIN log_file f ON f.id = p.log_file_id
  LEFT JOIN launch n ON n.id = p.launch_id
WHERE (:rank IS NULL OR k.rank = :rank) AND (:pid IS NULL OR p.pid = :pid)
  AND f.run_id BETWEEN ifnull(:run_id, 0) AND ifnull(:run_id, 9223372036854775807)
  AND (:launch IS NULL OR n.ordinal = :launch);

-- Whether a run has several processes without a rank, and whether the database has profiles.
-- query InputsOfHistory
SELECT EXISTS (SELECT 1 FROM process p JOIN log_file f ON f.id = p.log_file_id WHERE p.rank IS NULL
    GROUP BY f.run_id HAVING count(*) > 1) AS has_processes /*BOOLEAN*/,
  EXISTS (SELECT 1 FROM profile p JOIN profile_kind k ON k.name = p.kind WHERE k.has_times)
    AS has_profiles /*BOOLEAN*/;
