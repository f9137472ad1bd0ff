-- query TotalsOfRun(run_id INTEGER)
SELECT total(record_count) AS record_count /*INTEGER*/, total(size_bytes) AS size_bytes /*INTEGER*/
FROM log_file WHERE run_id = :run_id;

-- query ProblemsOfRun(run_id INTEGER)
SELECT severity /*TEXT*/, count(*) AS count /*INTEGER*/ FROM import_log
WHERE run_id = :run_id GROUP BY severity;
