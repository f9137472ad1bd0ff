-- query ProfileOfLibtrace(run_id INTEGER)
SELECT id FROM profile WHERE run_id = :run_id AND kind = 'libtrace';

-- Processes in which libtrace measured times.
-- query MeasuredProcess(run_id INTEGER, is_timed SQL)
WITH measured AS MATERIALIZED (SELECT record_id FROM graph_run_row WHERE {is_timed}
  UNION SELECT DISTINCT record_id FROM gpu_activity_row WHERE {is_timed}
  UNION SELECT DISTINCT record_id FROM issued_collective_row WHERE start_us IS NOT NULL)
SELECT DISTINCT p.id /*INTEGER*/, p.first_record_id /*INTEGER*/, p.last_record_id /*INTEGER*/
FROM measured m JOIN record_row r ON r.id = m.record_id JOIN process p ON p.id = r.process_id
  JOIN log_file f ON f.id = p.log_file_id
WHERE f.run_id = :run_id ORDER BY p.id;
