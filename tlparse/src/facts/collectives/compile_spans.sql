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
