-- The versions of PyTorch that wrote the logs of a run, or of all runs.
-- query VersionOfLogs(run_id INTEGER?)
SELECT DISTINCT p.torch_version /*TEXT?*/
FROM process p JOIN log_file f ON f.id = p.log_file_id
WHERE (:run_id IS NULL OR f.run_id = :run_id)
  -- Logs of libtrace.
  AND NOT EXISTS (SELECT 1 FROM trace_writer w
    WHERE w.record_id BETWEEN p.first_record_id AND p.last_record_id)
ORDER BY 1;
