-- How much of a time the annotations of a rank's program take, without the profiler's own.
-- query AnnotationInTime(run_id INTEGER, rank INTEGER, from_ns INTEGER, to_ns INTEGER)
SELECT t.text AS name, min(a.start_ns + a.duration_ns, :to_ns) - max(a.start_ns, :from_ns) AS shared_ns /*INTEGER*/
FROM annotation_row a JOIN profile p ON p.id = a.profile_id JOIN text_row t ON t.id = a.name_id
WHERE p.run_id = :run_id AND p.rank = :rank AND a.device IS NULL AND a.step IS NULL
  AND a.start_ns < :to_ns AND a.start_ns + a.duration_ns > :from_ns
  AND t.text NOT LIKE 'gloo:%' AND t.text NOT LIKE 'nccl:%' AND t.text NOT LIKE 'c10d:%';

-- The compiles of ranks that began in a time.
-- query CompileInTime(run_id INTEGER, from_us INTEGER, to_us INTEGER)
SELECT k.rank /*INTEGER*/, k.start_time_us AS start_us /*INTEGER*/,
  coalesce(k.duration_us, 0) + coalesce(k.backward_duration_us, 0) AS compiled_us /*INTEGER*/
FROM compile k JOIN process p ON p.id = k.process_id JOIN log_file f ON f.id = p.log_file_id
WHERE f.run_id = :run_id AND k.rank IS NOT NULL AND k.start_time_us BETWEEN :from_us AND :to_us
ORDER BY k.start_time_us;
