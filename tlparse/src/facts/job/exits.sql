-- Processes of a command that `tlparse run` started: its ranks, itself, and others that have a log, that
-- raised an exception, or that it started itself, as a script does that runs programs.
-- The process of a log has the pid, and began to write while the other lived.
-- query ExitOfProcess(run_id INTEGER)
SELECT c.profile_id, c.ordinal, c.pid, c.rank, c.command, c.exit_code, c.signal, c.stopped_at, c.fault_thread, c.started_us, c.ended_us,
  e.id AS exception_id /*INTEGER?*/, e.type, e.message, e.user_file, coalesce(e.user_line, 0) AS user_line /*INTEGER*/,
  e.raised_us, e.traceback /*TEXT*/, f.path, r.host, (SELECT min(p.id) FROM process p JOIN log_file l ON l.id = p.log_file_id
    WHERE l.run_id = :run_id AND p.pid = c.pid
      AND p.first_record_us BETWEEN c.started_us - 1000000
        AND coalesce(c.ended_us, p.first_record_us) + 1000000) AS process_id /*INTEGER?*/
FROM run_process c JOIN run_command r ON r.profile_id = c.profile_id
  JOIN profile f ON f.id = c.profile_id
  LEFT JOIN uncaught_exception e ON e.profile_id = c.profile_id AND e.ordinal = c.ordinal AND e.thread IS NULL
WHERE f.run_id = :run_id AND (c.rank IS NOT NULL OR c.ordinal = 0 OR e.id IS NOT NULL
  OR c.parent_pid IN (SELECT o.pid FROM run_process o WHERE o.profile_id = c.profile_id AND o.ordinal = 0)
  OR EXISTS (SELECT 1 FROM process p JOIN log_file l ON l.id = p.log_file_id WHERE l.run_id = :run_id
    AND p.pid = c.pid AND p.first_record_us BETWEEN c.started_us - 1000000
      AND coalesce(c.ended_us, p.first_record_us) + 1000000))
-- Ends are seen some time after they came, exceptions at once. Of ends that were seen together those of
-- a launcher's signals (INT, TERM) followed.
ORDER BY coalesce(e.raised_us, c.ended_us) IS NULL, coalesce(e.raised_us + 200000, c.ended_us),
  coalesce(c.signal IN (2, 15), 0), c.profile_id, c.ordinal;

-- query TracebackOf(id INTEGER)
SELECT traceback FROM uncaught_exception WHERE id = :id;

-- The graphs of which a kernel of this name was made, as AOTAutograd left them.
-- query GraphOfKernel(run_id INTEGER, name TEXT)
SELECT p.content
FROM kernel k JOIN graph_text_row t ON t.compile_id = k.compile_id JOIN text_row s ON s.id = t.stage_id
  JOIN record_row r ON r.id = t.record_id JOIN payload_row p ON p.id = r.payload_id
  JOIN process o ON o.id = r.process_id JOIN log_file f ON f.id = o.log_file_id
WHERE f.run_id = :run_id AND k.name = :name AND s.text IN ('aot_forward_graph', 'aot_backward_graph', 'aot_inference_graph');
