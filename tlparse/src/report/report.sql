-- The latest run, or the one of an id.
-- query RunToReport(run_id INTEGER?)
SELECT id FROM run WHERE :run_id IS NULL OR id = :run_id ORDER BY id DESC LIMIT 1;
