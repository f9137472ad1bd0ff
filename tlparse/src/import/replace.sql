-- query LogOfPath(run_id INTEGER, path TEXT)
SELECT id, first_record_id, last_record_id FROM log_file WHERE run_id = :run_id AND path = :path;

-- query LogsOfRun(run_id INTEGER)
SELECT count(*) AS count /*INTEGER*/ FROM log_file WHERE run_id = :run_id;
