-- The run, its files and processes, counts, what to look at first.

-- table: run
SELECT id, id = :run AS is_current, 0 AS "|", name, created_at, tool_version
FROM run
ORDER BY id;

-- table: log_file
SELECT id, size_bytes, record_count, line_count, name_rank, 0 AS "|", path, compression
FROM log_file
WHERE run_id = :run
ORDER BY id;

-- table: process
SELECT id, log_file_id, pid, rank, is_thread_id, utc_offset_s, 0 AS "|", torch_version, python_version, time_basis
FROM process
WHERE id IN run_process
ORDER BY rank IS NULL, rank, id;

-- table: count
SELECT value, 0 AS "|", name
FROM (
  SELECT 'records' AS name, (SELECT sum(record_count) FROM log_file WHERE run_id = :run) AS value
  UNION ALL SELECT 'bytes', (SELECT sum(size_bytes) FROM log_file WHERE run_id = :run)
  UNION ALL SELECT 'compiles', (SELECT count(*) FROM compile WHERE process_id IN run_process)
  UNION ALL SELECT 'graphs', (SELECT count(*) FROM graph WHERE compile_id IN run_compile)
  UNION ALL SELECT 'graph_breaks', (SELECT count(*) FROM graph_break WHERE compile_id IN run_compile)
  UNION ALL SELECT 'recompiles', (SELECT count(DISTINCT compile_id) FROM recompile WHERE compile_id IN run_compile)
  UNION ALL SELECT 'import_log', (SELECT count(*) FROM import_log WHERE run_id = :run)
  UNION ALL SELECT 'import_log_first', (SELECT min(id) FROM import_log WHERE run_id = :run)
  UNION ALL SELECT 'import_log_last', (SELECT max(id) FROM import_log WHERE run_id = :run)
  UNION ALL SELECT 'provenance_graphs', (
    SELECT count(*)
    FROM graph
    WHERE provenance_content_id IS NOT NULL
      AND compile_id IN run_compile)
  UNION ALL SELECT 'collectives', (SELECT count(DISTINCT content_id) FROM collective WHERE process_id IN run_process)
  UNION ALL SELECT 'executions', (SELECT count(*) FROM graph_execution WHERE process_id IN run_process));

-- table: cache_state
SELECT count(*) AS events, count(DISTINCT process_id) AS processes, 0 AS "|", layer, state
FROM cache_event
WHERE process_id IN run_process
GROUP BY layer, state
ORDER BY layer, state;

-- table: import_code
SELECT count(*) AS entries, 0 AS "|", severity, code
FROM import_log
WHERE run_id = :run
GROUP BY severity, code
ORDER BY severity, code;

-- table: failure_group
SELECT count(*) AS failures, count(DISTINCT r.process_id) AS processes, min(f.compile_id) AS compile_id, f.user_line,
  0 AS "|",
  f.kind, f.type, substr(f.reason, 1, 2000) AS reason, f.user_file
FROM failure f
  JOIN record r ON r.id = f.record_id
WHERE r.process_id IN run_process
GROUP BY f.kind, f.type, f.reason, f.user_file, f.user_line
ORDER BY count(*) DESC LIMIT 100;

-- table: graph_break_group
SELECT count(*) AS breaks, min(compile_id) AS compile_id, user_line,
  0 AS "|",
  substr(reason, 1, 2000) AS reason, user_file
FROM graph_break
WHERE compile_id IN run_compile
GROUP BY reason, user_file, user_line
ORDER BY count(*) DESC LIMIT 100;

-- table: recompile_group
SELECT count(*) AS recompiles, max(m.compile_id) AS compile_id, m.user_line, c.line,
  0 AS "|",
  substr(m.guard, 1, 2000) AS guard, substr(min(m.reason), 1, 2000) AS reason, m.user_file, c.function, c.file
FROM recompile m
  JOIN compile c ON c.id = m.compile_id
WHERE m.ordinal = 0
  AND c.process_id IN run_process
GROUP BY m.guard, m.user_file, m.user_line, c.function, c.file, c.line
ORDER BY count(*) DESC LIMIT 100;
