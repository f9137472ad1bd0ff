-- The failures of a run, in the order of its records.
-- query FailureOfRun(run_id INTEGER)
SELECT f.record_id, r.process_id, f.compile_id, f.kind_id, f.type_id, f.reason_id, f.user_file_id,
  f.user_line
FROM failure_row f CROSS JOIN record_row r ON r.id = f.record_id
  CROSS JOIN process p ON p.id = r.process_id CROSS JOIN log_file l ON l.id = p.log_file_id
WHERE l.run_id = :run_id ORDER BY f.record_id, f.id;

-- query LabelOfFailure(id INTEGER)
SELECT label FROM compile WHERE id = :id;
