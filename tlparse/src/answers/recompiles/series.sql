-- Why compiles were made again: of each the earlier compiles that were tried, the newest first.
-- query ReasonOfCompile(rank INTEGER?, run_id INTEGER?, launch INTEGER?, pid INTEGER?)
SELECT r.id AS run_id /*INTEGER*/, r.name AS run, n.ordinal AS launch /*INTEGER?*/, c.rank /*INTEGER?*/,
  p.pid, c.process_id, c.label || iif(c.generation > 0, '#' || (c.generation + 1), '') AS label /*TEXT*/,
  c.function, c.file, c.line AS line /*INTEGER*/,
  coalesce(g.text, t.text) AS guard /*TEXT*/, t.text AS reason, u.text AS user_file /*TEXT*/,
  m.user_line /*INTEGER*/, c.duration_us + coalesce(c.backward_duration_us, 0) AS lost_us /*INTEGER?*/,
  c.id AS compile_id, c.start_time_us AS start_us /*INTEGER?*/, coalesce(c.duration_us, 0) AS duration_us /*INTEGER*/
FROM recompile_row m JOIN compile c ON c.id = m.compile_id JOIN process p ON p.id = c.process_id
  JOIN log_file o ON o.id = p.log_file_id JOIN run r ON r.id = o.run_id
  LEFT JOIN launch n ON n.id = p.launch_id JOIN text_row t ON t.id = m.reason_id
  LEFT JOIN text_row g ON g.id = m.guard_id LEFT JOIN text_row u ON u.id = m.user_file_id
WHERE (:rank IS NULL OR c.rank = :rank) AND (:run_id IS NULL OR r.id = :run_id)
  AND (:launch IS NULL OR n.ordinal = :launch) AND (:pid IS NULL OR p.pid = :pid)
ORDER BY r.id, c.rank IS NULL, c.rank, c.process_id, m.record_id, m.ordinal;

-- When other ranks waited for a rank in collectives, by recorder dumps: until it came.
-- query AwaitedInCollective(run_id INTEGER?)
SELECT run_id /*INTEGER*/, launch /*INTEGER?*/, last_rank AS rank /*INTEGER*/,
  CAST(max(iif(rank = last_rank, start_us, 0)) - max(wait_us) AS INTEGER) AS from_us /*INTEGER*/,
  CAST(max(iif(rank = last_rank, start_us, 0)) AS INTEGER) AS to_us /*INTEGER*/
FROM collective_wait
WHERE (:run_id IS NULL OR run_id = :run_id) AND kind = 'flight_recorder' AND last_rank IS NOT NULL
  AND EXISTS (SELECT 1 FROM profile p WHERE p.run_id = collective_wait.run_id AND p.kind = 'flight_recorder')
GROUP BY run_id, launch, group_name, reset_count, sequence_number HAVING max(wait_us) > 0;

-- The exceptions of compiles, of which one may be that of the limit.
-- query ExceptionOfCompile(rank INTEGER?, run_id INTEGER?, launch INTEGER?, pid INTEGER?)
SELECT DISTINCT f.compile_id /*INTEGER*/, t.text AS type, e.text AS reason /*TEXT*/, r.id AS run_id /*INTEGER*/,
  n.ordinal AS launch /*INTEGER?*/, c.function, c.file, c.line AS line /*INTEGER*/, c.process_id
FROM failure_row f JOIN text_row t ON t.id = f.type_id LEFT JOIN text_row e ON e.id = f.reason_id
  JOIN compile c ON c.id = f.compile_id JOIN process p ON p.id = c.process_id
  JOIN log_file o ON o.id = p.log_file_id JOIN run r ON r.id = o.run_id
  LEFT JOIN launch n ON n.id = p.launch_id
WHERE (:rank IS NULL OR c.rank = :rank) AND (:run_id IS NULL OR r.id = :run_id)
  AND (:launch IS NULL OR n.ordinal = :launch) AND (:pid IS NULL OR p.pid = :pid);

-- Those of text of TORCH_LOGS whose process has no structured trace.
-- query ReasonInText(rank INTEGER?, run_id INTEGER?)
SELECT r.id AS run_id /*INTEGER*/, r.name AS run, t.rank /*INTEGER?*/, t.profile_id /*INTEGER*/, t.label /*TEXT*/,
  t.function /*TEXT*/, t.file /*TEXT*/, t.function_line /*INTEGER*/, t.guard /*TEXT*/, t.reason /*TEXT*/,
  t.is_refused /*BOOLEAN*/
FROM torch_log_recompile t JOIN profile p ON p.id = t.profile_id JOIN run r ON r.id = p.run_id
WHERE t.process_id IS NULL AND (:rank IS NULL OR t.rank = :rank)
  AND (:run_id IS NULL OR r.id = :run_id)
ORDER BY r.id, t.rank, t.profile_id, t.line;

-- How many compiles were made again, by structured traces.
-- query SizeOfRecompiles(rank INTEGER?, run_id INTEGER?, launch INTEGER?, pid INTEGER?)
SELECT count(DISTINCT m.compile_id) AS recompiles /*INTEGER*/
FROM recompile_row m JOIN compile c ON c.id = m.compile_id JOIN process p ON p.id = c.process_id
  JOIN log_file o ON o.id = p.log_file_id LEFT JOIN launch n ON n.id = p.launch_id
WHERE (:rank IS NULL OR c.rank = :rank) AND (:run_id IS NULL OR o.run_id = :run_id)
  AND (:launch IS NULL OR n.ordinal = :launch) AND (:pid IS NULL OR p.pid = :pid);

-- Every earlier compile that was tried: of structured traces, and of text of TORCH_LOGS whose
-- process has none.
-- query RecompileTried(rank INTEGER?, run_id INTEGER?, launch INTEGER?, pid INTEGER?)
SELECT run /*TEXT*/, rank /*INTEGER?*/, label /*TEXT?*/, function /*TEXT?*/, file /*TEXT?*/,
  line /*INTEGER?*/, prior_label /*TEXT?*/, ordinal /*INTEGER*/, guard /*TEXT?*/, reason /*TEXT*/,
  user_file /*TEXT?*/, user_line /*INTEGER?*/, status /*TEXT?*/, compile_id /*INTEGER?*/,
  prior_compile_id /*INTEGER?*/, record_id /*INTEGER?*/, launch /*INTEGER?*/, source /*TEXT*/
FROM (SELECT r.name AS run, c.rank,
    c.label || iif(c.generation > 0, '#' || (c.generation + 1), '') AS label,
    c.function, c.file, c.line,
    m.prior_label || iif(z.generation > 0, '#' || (z.generation + 1), '') AS prior_label, m.ordinal,
    m.guard, m.reason, m.user_file, m.user_line, c.status, m.compile_id, m.prior_compile_id,
    m.record_id, n.ordinal AS launch, 'structured_trace' AS source, f.run_id, c.process_id,
    c.frame_id, c.frame_compile_id
  FROM recompile m JOIN compile c ON c.id = m.compile_id JOIN process p ON p.id = c.process_id
    LEFT JOIN compile z ON z.id = m.prior_compile_id
    JOIN log_file f ON f.id = p.log_file_id JOIN run r ON r.id = f.run_id
    LEFT JOIN launch n ON n.id = p.launch_id
  WHERE (:rank IS NULL OR c.rank = :rank) AND (:run_id IS NULL OR r.id = :run_id)
    AND (:launch IS NULL OR n.ordinal = :launch) AND (:pid IS NULL OR p.pid = :pid)
  UNION ALL
  SELECT r.name, t.rank, t.label, t.function, t.file, t.function_line, t.prior_label, 0, t.guard,
    t.reason, NULL, NULL, CASE WHEN t.is_refused THEN 'refused' END, NULL, NULL, t.line, NULL,
    'torch_logs', r.id, t.profile_id, 0, 0
  FROM torch_log_recompile t JOIN profile p ON p.id = t.profile_id JOIN run r ON r.id = p.run_id
  WHERE t.process_id IS NULL AND (:rank IS NULL OR t.rank = :rank)
    AND (:run_id IS NULL OR r.id = :run_id) AND :launch IS NULL AND :pid IS NULL)
ORDER BY run_id, rank, process_id, frame_id, frame_compile_id, record_id, ordinal;

-- Compiles whose code was loaded.
-- query LoadedCompile(run_id INTEGER?)
SELECT count(*) AS loaded_count /*INTEGER*/
FROM compile c JOIN process p ON p.id = c.process_id JOIN log_file f ON f.id = p.log_file_id
WHERE c.status = 'loaded' AND (:run_id IS NULL OR f.run_id = :run_id);
