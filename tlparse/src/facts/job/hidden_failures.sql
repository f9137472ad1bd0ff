-- Exceptions that ended threads and tasks, and children that failed: of processes that went on. Whoever waits for
-- them waits in vain. The owner is the process of the thread or task, or the parent of the child.
-- query HiddenFailureOfRun(run_id INTEGER)
SELECT h.profile_id, h.ordinal, h.pid, h.owner_pid, h.owner_ordinal, h.owner_rank, h.thread /*TEXT?*/, h.is_of_task /*BOOLEAN*/, h.exit_code, h.signal, h.stopped_at, h.fault_thread, h.ended_us, h.exception_id,
  h.type, h.message, h.user_file, h.user_line, h.raised_us, h.traceback /*TEXT*/, h.path, (h.owner_rank IS NOT NULL OR EXISTS (SELECT 1 FROM process p JOIN log_file l ON l.id = p.log_file_id
    WHERE l.run_id = :run_id AND p.pid = h.owner_pid AND p.first_record_us BETWEEN h.owner_started_us - 1000000
      AND coalesce(h.owner_ended_us, p.first_record_us) + 1000000)) AS is_of_job /*BOOLEAN*/
FROM (SELECT c.profile_id, c.ordinal, c.pid, o.pid AS owner_pid, o.ordinal AS owner_ordinal, o.rank AS owner_rank, o.started_us AS owner_started_us,
    o.ended_us AS owner_ended_us, e.thread, coalesce(e.is_of_task, 0) AS is_of_task, c.exit_code, c.signal, c.stopped_at, c.fault_thread, c.ended_us, e.id AS exception_id /*INTEGER?*/, e.type, e.message,
    e.user_file, coalesce(e.user_line, 0) AS user_line /*INTEGER*/, e.raised_us, e.traceback /*TEXT*/, f.path
  FROM run_process c JOIN profile f ON f.id = c.profile_id
    LEFT JOIN uncaught_exception e ON e.profile_id = c.profile_id AND e.ordinal = c.ordinal
    JOIN run_process o ON o.profile_id = c.profile_id AND CASE WHEN e.thread IS NOT NULL THEN o.ordinal = c.ordinal
      ELSE o.pid = c.parent_pid AND o.ordinal <> c.ordinal AND o.started_us <= c.started_us
        AND coalesce(o.ended_us, c.started_us) >= c.started_us END
  WHERE f.run_id = :run_id AND (e.thread IS NOT NULL OR (c.rank IS NULL AND (c.exit_code <> 0 OR c.signal IS NOT NULL OR e.id IS NOT NULL)))) h
ORDER BY coalesce(h.raised_us, h.ended_us), h.profile_id, h.ordinal;
