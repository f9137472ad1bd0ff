-- Failures, graph breaks, recompiles.

-- table: failure
SELECT f.id, f.record_id, f.compile_id, f.attempt, coalesce(f.user_line, e.user_line) AS user_line, r.process_id,
  0 AS "|",
  f.kind, f.type, substr(f.reason, 1, 20000) AS reason, coalesce(f.user_file, e.user_file) AS user_file
FROM failure f
  JOIN record r ON r.id = f.record_id
  -- One exception may be logged twice: by Dynamo with its line, and by the metrics of its compile.
  LEFT JOIN failure e ON f.kind = 'failure' AND f.user_file IS NULL AND e.id = (
    SELECT min(d.id)
    FROM failure d
    WHERE d.compile_id = f.compile_id
      AND coalesce(d.attempt, 0) = coalesce(f.attempt, 0)
      AND d.kind = 'dynamo_error'
      AND d.user_file IS NOT NULL)
WHERE r.process_id IN run_process
  AND NOT (f.kind = 'dynamo_error' AND (coalesce(f.compile_id, -1), coalesce(f.attempt, 0)) IN (
    SELECT coalesce(compile_id, -2), coalesce(attempt, 0) FROM failure WHERE kind = 'failure'))
ORDER BY f.id;

-- table: graph_break
SELECT record_id, compile_id, attempt, user_line,
  0 AS "|",
  substr(reason, 1, 20000) AS reason, substr(user_stack, 1, 20000) AS user_stack, user_file
FROM graph_break
WHERE compile_id IN run_compile
ORDER BY record_id;

-- table: recompile
SELECT record_id, ordinal, compile_id, prior_compile_id, user_line,
  0 AS "|",
  prior_label, substr(reason, 1, 20000) AS reason, substr(guard, 1, 20000) AS guard, user_file
FROM recompile
WHERE compile_id IN run_compile
ORDER BY record_id, ordinal;
