-- Failures, graph breaks, recompiles.

-- table: failure
SELECT f.id, f.record_id, f.compile_id, f.attempt, f.user_line, r.process_id,
  0 AS "|",
  f.kind, f.type, substr(f.reason, 1, 20000) AS reason, f.user_file
FROM failure f
  JOIN record r ON r.id = f.record_id
WHERE r.process_id IN run_process
  -- One exception may be logged twice: by Dynamo, and by the metrics of its compile.
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
