-- The ranks of a command that `tlparse run` started and, where it has no ranks, the command itself.
-- The process of a log has the pid, and began to write while the other lived.
-- query ExitOfProcess(run_id INTEGER)
SELECT c.profile_id, c.ordinal, c.pid, c.rank, c.exit_code, c.signal, c.started_us, c.ended_us,
  r.host, (SELECT min(p.id) FROM process p JOIN log_file l ON l.id = p.log_file_id
    WHERE l.run_id = :run_id AND p.pid = c.pid
      AND p.first_record_us BETWEEN c.started_us - 1000000
        AND coalesce(c.ended_us, p.first_record_us) + 1000000) AS process_id /*INTEGER?*/
FROM run_process c JOIN run_command r ON r.profile_id = c.profile_id
  JOIN profile f ON f.id = c.profile_id
WHERE f.run_id = :run_id AND (c.rank IS NOT NULL OR c.ordinal = 0)
ORDER BY c.ended_us IS NULL, c.ended_us, c.profile_id, c.ordinal;
