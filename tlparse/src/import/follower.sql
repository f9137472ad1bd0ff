-- query UnfinishedLog(run_id INTEGER)
SELECT path FROM log_file WHERE run_id = :run_id AND content_hash = '';
