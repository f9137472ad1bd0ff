-- The first compiles of a run, or of a rank of it, that have metrics.
-- query CompileWithMetrics(run_id INTEGER, rank INTEGER?)
SELECT DISTINCT c.id AS compile_id FROM compilation_metric_row m JOIN compile c ON c.id = m.compile_id
  JOIN process p ON p.id = c.process_id JOIN log_file f ON f.id = p.log_file_id
WHERE f.run_id = :run_id AND (:rank IS NULL OR p.rank = :rank) ORDER BY c.id LIMIT 20;
