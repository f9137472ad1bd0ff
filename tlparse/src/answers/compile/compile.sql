-- Compiles of a label in one launch: of ranks first, then of processes without one, then of children.
-- query CompileOfLabel(run_id INTEGER, launch INTEGER, label TEXT, rank INTEGER?, pid INTEGER?)
SELECT c.id, c.generation, c.rank /*INTEGER?*/, c.process_id, p.pid, c.status, c.function, c.file,
  c.line AS line /*INTEGER?*/, c.start_time_us, c.duration_us, c.backward_duration_us, c.stack_id,
  c.first_record_id /*INTEGER*/, f.path, p.last_record_us, r.line AS log_line /*INTEGER?*/
FROM compile c JOIN process p ON p.id = c.process_id JOIN log_file f ON f.id = p.log_file_id
  LEFT JOIN launch n ON n.id = p.launch_id LEFT JOIN record_row r ON r.id = c.first_record_id
WHERE f.run_id = :run_id AND coalesce(n.ordinal, 1) = :launch AND c.label = :label
  AND (:rank IS NULL OR c.rank = :rank) AND (:pid IS NULL OR p.pid = :pid)
ORDER BY p.child_kind IS NOT NULL, c.rank IS NULL, c.rank, c.process_id, c.generation;

-- The labels that there are instead.
-- query LabelOfCompile(run_id INTEGER, launch INTEGER, rank INTEGER?, pid INTEGER?)
SELECT DISTINCT c.label
FROM compile c JOIN process p ON p.id = c.process_id JOIN log_file f ON f.id = p.log_file_id
  LEFT JOIN launch n ON n.id = p.launch_id
WHERE f.run_id = :run_id AND coalesce(n.ordinal, 1) = :launch
  AND (:rank IS NULL OR c.rank = :rank) AND (:pid IS NULL OR p.pid = :pid)
ORDER BY c.frame_id IS NULL, c.frame_id, c.frame_compile_id LIMIT 13;


-- The frames of a stack, innermost first.
-- query CompileFrame(stack_id INTEGER)
WITH RECURSIVE frame(id, depth) AS (SELECT :stack_id, 0 UNION ALL
  SELECT s.parent_id, f.depth + 1 FROM frame f JOIN stack_frame s ON s.id = f.id)
SELECT s.file, s.line AS line /*INTEGER*/, s.function, s.code
FROM frame f JOIN stack_frame s ON s.id = f.id ORDER BY f.depth;

-- What the lookups of a compile found.
-- query LookupInCompile(compile_id INTEGER)
SELECT l.text AS layer, e.state, g.direction, k.key AS key /*TEXT*/, b.text AS bypass_reason /*TEXT*/,
  u.text AS guard /*TEXT*/, re.text AS remote_error /*TEXT*/, e.time_saved_ns
FROM cache_event_row e JOIN text_row l ON l.id = e.layer_id
  LEFT JOIN cache_key_row k ON k.id = e.key_id LEFT JOIN text_row b ON b.id = e.bypass_reason_id
  LEFT JOIN text_row u ON u.id = e.guard_expression_id
  LEFT JOIN text_row re ON re.id = e.remote_error_id LEFT JOIN graph g ON g.id = e.graph_id
WHERE e.compile_id = :compile_id ORDER BY e.record_id;

-- The exceptions of a compile and its restarts; the one of its metrics, which has the reason alone,
-- last.
-- query FailureInCompile(compile_id INTEGER)
SELECT k.text AS kind, t.text AS type /*TEXT*/, r.text AS reason /*TEXT*/,
  u.text AS user_file /*TEXT*/, f.user_line /*INTEGER?*/
FROM failure_row f JOIN text_row k ON k.id = f.kind_id LEFT JOIN text_row t ON t.id = f.type_id
  LEFT JOIN text_row r ON r.id = f.reason_id LEFT JOIN text_row u ON u.id = f.user_file_id
WHERE f.compile_id = :compile_id AND k.text <> 'make_fx_fail_partial'
ORDER BY k.text = 'failure', f.record_id;

-- query BreakInCompile(compile_id INTEGER)
SELECT c.text AS cause, f.text AS user_file /*TEXT*/, g.user_line /*INTEGER?*/
FROM graph_break_row g JOIN text_row c ON c.id = g.cause_id
  LEFT JOIN text_row f ON f.id = g.user_file_id
WHERE g.compile_id = :compile_id ORDER BY g.record_id;

-- The compile that the same process began next.
-- query NextCompile(process_id INTEGER, after_record_id INTEGER)
SELECT label, generation, function, status, start_time_us FROM compile
WHERE process_id = :process_id AND first_record_id > :after_record_id
ORDER BY first_record_id LIMIT 1;

-- query OpenBackward(process_id INTEGER, compile_id INTEGER)
SELECT count(*) > 0 AS is_open /*BOOLEAN*/ FROM rank_status
WHERE process_id = :process_id AND compile_id = :compile_id AND state = 'compiling' AND is_backward;
