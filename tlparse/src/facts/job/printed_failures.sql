-- Failures as they were printed.
-- query PrintedAbortOfRun(run_id INTEGER)
SELECT a.rank, a.text, a.signal /*INTEGER?*/, coalesce(a.stopped_at, '') AS stopped_at /*TEXT*/, coalesce(a.fault_thread, '') AS fault_thread /*TEXT*/,
  (SELECT count(DISTINCT c.pid) FROM run_process c JOIN profile g ON g.id = c.profile_id
  WHERE g.run_id = :run_id AND c.signal = 6) AS aborted_count /*INTEGER*/
FROM printed_abort a JOIN profile f ON f.id = a.profile_id WHERE f.run_id = :run_id ORDER BY f.id, a.id;

-- Of vLLM with the process that said so, and the rank of its log. A worker goes on after an exception, and
-- most often the engine ends then: without such an end it is no failure.
-- query PrintedException(run_id INTEGER)
SELECT e.id, coalesce(e.rank, (SELECT min(p.rank) FROM process p JOIN log_file l ON l.id = p.log_file_id
    WHERE l.run_id = :run_id AND p.pid = v.pid AND p.child_kind IS NULL HAVING count(DISTINCT p.log_file_id) = 1)) AS rank /*INTEGER?*/,
  e.type, e.message, e.user_file, coalesce(e.user_line, 0) AS user_line /*INTEGER*/, e.traceback, f.path,
  coalesce(v.process_name, substr(v.text, 1, instr(v.text, ' ') - 1), e.process_name, '') AS process_name /*TEXT*/, v.pid /*INTEGER?*/,
  e.thread /*TEXT?*/, e.traceback GLOB '*/multiprocessing/process.py", line [0-9]*, in _bootstrap*' AS is_child /*BOOLEAN*/
FROM uncaught_exception e JOIN profile f ON f.id = e.profile_id
  LEFT JOIN vllm_line v ON v.profile_id = e.profile_id AND v.line = e.line
WHERE f.run_id = :run_id AND e.ordinal IS NULL
  AND (v.text IS NULL OR v.text <> 'WorkerProc hit an exception.' OR EXISTS (SELECT 1 FROM vllm_line w
    WHERE w.profile_id = v.profile_id AND w.line > v.line AND w.stage = v.stage AND w.text <> v.text))
ORDER BY f.id, e.line;

-- query ReportedFailure(run_id INTEGER)
SELECT l.id, l.launcher, coalesce(l.process, '') AS process /*TEXT*/, l.rank, l.local_rank, l.exit_code, l.is_out_of_memory, f.path
FROM launcher_failure l JOIN profile f ON f.id = l.profile_id
WHERE f.run_id = :run_id ORDER BY f.id, l.line;

-- query FirstPrintedFault(run_id INTEGER)
SELECT a.id, a.rank, coalesce(a.signal, 0) AS signal /*INTEGER*/, f.path FROM printed_abort a JOIN profile f ON f.id = a.profile_id
WHERE f.run_id = :run_id AND a.signal IS NOT NULL ORDER BY f.id, a.id LIMIT 1;
