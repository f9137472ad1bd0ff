-- The first compiles of a run that have metrics.
-- query CompileWithMetrics(run_id INTEGER)
SELECT DISTINCT c.id AS compile_id FROM compilation_metric_row m JOIN compile c ON c.id = m.compile_id
  JOIN process p ON p.id = c.process_id JOIN log_file f ON f.id = p.log_file_id
WHERE f.run_id = :run_id ORDER BY c.id LIMIT 20;
