-- query HashOfLog(run_id INTEGER, path TEXT)
SELECT content_hash FROM log_file WHERE run_id = :run_id AND path = :path;

-- query FinishedLog(run_id INTEGER, path TEXT)
SELECT size_bytes, content_hash FROM log_file
WHERE run_id = :run_id AND path = :path AND content_hash <> '';
