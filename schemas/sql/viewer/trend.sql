-- Compile time of each function in each run of the database, of the latest launch; nothing where there is one run and no other database is served.

-- Of ranks the slowest. A compile that was refused at the limit is no recompile.
-- table: function_time
SELECT run_id, line, max(us) AS us, max(compiles) AS compiles, max(recompiles) AS recompiles, count(*) AS processes,
  0 AS "|",
  function, file
FROM (
  SELECT f.run_id, c.function, c.file, c.line, sum(c.duration_us + coalesce(c.backward_duration_us, 0)) AS us, count(*) AS compiles,
    sum(EXISTS (SELECT 1 FROM recompile_row r WHERE r.compile_id = c.id)
      AND NOT EXISTS (
        SELECT 1
        FROM compilation_metric m
        WHERE m.compile_id = c.id
          AND (m.fail_type GLOB '*Limit*' OR m.fail_reason GLOB '*limit exceeded*' OR m.fail_reason GLOB '*limit reached*'))) AS recompiles
  FROM compile c
    JOIN process p ON p.id = c.process_id
    JOIN log_file f ON f.id = p.log_file_id
    LEFT JOIN launch n ON n.id = p.launch_id
  WHERE (:has_others OR (SELECT count(*) FROM run) > 1)
    AND coalesce(n.ordinal, 1) = coalesce((SELECT max(ordinal) FROM launch WHERE run_id = f.run_id), 1)
    AND c.function IS NOT NULL
  GROUP BY f.run_id, c.process_id, c.function, c.file, c.line)
GROUP BY run_id, function, file, line
ORDER BY run_id, function, file, line;
