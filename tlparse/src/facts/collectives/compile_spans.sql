-- When ranks issued collectives, by their dumps, and by what Gloo notes in profiles: c10d's ops there may be traced ones.
-- query CallOfRank(run_id INTEGER)
SELECT p.rank /*INTEGER*/, c.start_ns /*INTEGER*/
FROM collective_run_row c JOIN profile p ON p.id = c.profile_id
WHERE p.run_id = :run_id AND p.kind = 'flight_recorder' AND p.rank IS NOT NULL AND c.start_ns IS NOT NULL
UNION SELECT p.rank, a.start_ns
FROM annotation_row a JOIN profile p ON p.id = a.profile_id JOIN text_row t ON t.id = a.name_id
WHERE p.run_id = :run_id AND p.kind = 'kineto' AND p.rank IS NOT NULL AND a.device IS NULL
  AND t.text LIKE 'gloo:%'
ORDER BY 1, 2;

-- The compiles of ranks in a time, and the compiles of their backwards, which may come much later.
-- query CompileInTime(run_id INTEGER, from_us INTEGER, to_us INTEGER)
WITH own AS (SELECT k.id, k.rank, k.start_time_us, k.duration_us, k.backward_duration_us
  FROM compile k JOIN process p ON p.id = k.process_id JOIN log_file f ON f.id = p.log_file_id
  WHERE f.run_id = :run_id AND k.rank IS NOT NULL AND k.start_time_us IS NOT NULL),
backward AS (SELECT compile_id, min(start_time_us) AS start_us FROM compilation_metric
  WHERE kind IN ('bwd_compilation_metrics', 'aot_autograd_backward_compilation_metrics')
  GROUP BY compile_id),
span AS (SELECT rank, start_time_us AS start_us, duration_us AS compiled_us FROM own
  UNION ALL SELECT o.rank, coalesce(b.start_us, o.start_time_us + o.duration_us), o.backward_duration_us
  FROM own o LEFT JOIN backward b ON b.compile_id = o.id)
SELECT rank /*INTEGER*/, max(start_us, :from_us) AS start_us /*INTEGER*/,
  min(start_us + compiled_us, :to_us) AS end_us /*INTEGER*/
FROM span WHERE start_us < :to_us AND start_us + compiled_us > :from_us
ORDER BY start_us;
