-- What vLLM said of its starts, file by file. Of all runs if none is given.
-- query VllmLineOfRun(run_id INTEGER?)
SELECT p.run_id, l.profile_id, p.path, l.line, l.process_name, l.pid, l.local_time, l.stage,
  l.seconds, l.text
FROM vllm_line l JOIN profile p ON p.id = l.profile_id
WHERE :run_id IS NULL OR p.run_id = :run_id
ORDER BY l.profile_id, l.line;

-- The process of a log, with the local time of day of its first record.
-- query ProcessOfPid(run_id INTEGER, pid INTEGER)
SELECT p.id, p.first_record_us /*INTEGER*/,
  (p.first_record_us / 1000000 + p.utc_offset_s) % 86400 AS first_second /*INTEGER*/
FROM process p JOIN log_file f ON f.id = p.log_file_id
WHERE f.run_id = :run_id AND p.pid = :pid AND p.utc_offset_s IS NOT NULL
  AND p.first_record_us IS NOT NULL
ORDER BY p.id LIMIT 1;

-- When `tlparse run` saw the process begin, as a time of day of the zone of all processes with logs.
-- query StartOfPid(run_id INTEGER, pid INTEGER)
SELECT (c.started_us / 1000000 + z.utc_offset_s) % 86400 AS began_s /*INTEGER*/
FROM run_process c JOIN profile p ON p.id = c.profile_id,
  (SELECT min(q.utc_offset_s) AS utc_offset_s FROM process q JOIN log_file f ON f.id = q.log_file_id
    WHERE f.run_id = :run_id HAVING min(q.utc_offset_s) = max(q.utc_offset_s)) z
WHERE p.run_id = :run_id AND c.pid = :pid AND c.started_us IS NOT NULL
ORDER BY c.started_us DESC LIMIT 1;
