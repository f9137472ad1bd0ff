-- A process without rank in its records, as of torch.distributed.rpc, has the one that `tlparse run` saw.
-- query SetRanksOfRun(run_id INTEGER)
UPDATE process SET rank = c.rank, rank_source = 'run'
FROM run_process c JOIN profile f ON f.id = c.profile_id
WHERE f.run_id = :run_id AND c.rank IS NOT NULL AND c.pid = process.pid AND process.rank IS NULL
  AND process.is_thread_id = 0 AND process.first_record_us BETWEEN c.started_us - 1000000
    AND coalesce(c.ended_us, process.first_record_us) + 1000000
  AND process.log_file_id IN (SELECT id FROM log_file WHERE run_id = :run_id AND name_rank IS NULL);

-- The processes of a run. A process without rank in a log of one rank has that rank: a child, or a
-- start before the rank was known.
-- query ModelProcess(run_id INTEGER)
SELECT p.id, p.log_file_id, p.pid, p.is_thread_id,
  coalesce(p.rank, one.rank, f.name_rank) AS rank /*INTEGER?*/, p.first_record_us, p.last_record_us,
  p.first_string_number
FROM process p JOIN log_file f ON f.id = p.log_file_id
  LEFT JOIN (SELECT log_file_id, min(rank) AS rank FROM process GROUP BY log_file_id
    HAVING min(rank) = max(rank)) one ON one.log_file_id = p.log_file_id
WHERE f.run_id = :run_id ORDER BY p.id;

-- Of processes that `tlparse run` saw without a rank: the nearest of their parents that has a rank and a log. A compiler's
-- process may be between the two.
-- query StartedBy(run_id INTEGER)
WITH RECURSIVE
seen AS (SELECT c.profile_id, c.pid, c.parent_pid, c.rank, c.started_us, c.ended_us
  FROM run_process c JOIN profile f ON f.id = c.profile_id WHERE f.run_id = :run_id),
logged AS (SELECT s.profile_id, s.pid, s.parent_pid, s.rank, s.started_us, p.id
  FROM seen s JOIN process p ON p.pid = s.pid AND p.is_thread_id = 0
    AND p.first_record_us BETWEEN s.started_us - 1000000 AND coalesce(s.ended_us, p.first_record_us) + 1000000
  WHERE p.log_file_id IN (SELECT id FROM log_file WHERE run_id = :run_id)),
up(id, profile_id, parent_pid, started_us, depth) AS (
  SELECT id, profile_id, parent_pid, started_us, 1 FROM logged WHERE rank IS NULL
  UNION ALL SELECT u.id, u.profile_id, s.parent_pid, s.started_us, u.depth + 1
  FROM up u JOIN seen s ON s.profile_id = u.profile_id AND s.pid = u.parent_pid AND s.started_us <= u.started_us
    AND coalesce(s.ended_us, u.started_us) >= u.started_us
  WHERE s.rank IS NULL AND u.depth < 20)
SELECT u.id AS child_id /*INTEGER*/, min(l.id) AS parent_id /*INTEGER*/
FROM up u JOIN logged l ON l.profile_id = u.profile_id AND l.pid = u.parent_pid AND l.rank IS NOT NULL
  AND l.started_us <= u.started_us
GROUP BY u.id;

-- Of each process the frame and the stack of its first compile that has them.
-- query ModelFirstCompile(run_id INTEGER)
SELECT c.process_id, c.frame_id, c.stack_id
FROM compile c JOIN process p ON p.id = c.process_id JOIN log_file f ON f.id = p.log_file_id
WHERE f.run_id = :run_id AND (c.frame_id IS NOT NULL OR c.stack_id IS NOT NULL)
ORDER BY c.process_id, c.first_record_id;

-- The frames of a stack, innermost first.
-- query ModelFrame(stack_id INTEGER)
WITH RECURSIVE frame(id, depth) AS (SELECT :stack_id, 0 UNION ALL
  SELECT s.parent_id, f.depth + 1 FROM frame f JOIN stack_frame s ON s.id = f.id)
SELECT s.file, s.function FROM frame f JOIN stack_frame s ON s.id = f.id ORDER BY f.depth;

-- query AddLaunch(run_id INTEGER, ordinal INTEGER)
INSERT OR IGNORE INTO launch (run_id, ordinal, process_count) VALUES (:run_id, :ordinal, 0);

-- query SetProcessModel(id INTEGER, run_id INTEGER, launch INTEGER, parent_id INTEGER?, child_kind TEXT?, child_evidence TEXT?)
UPDATE process SET parent_process_id = :parent_id, child_kind = :child_kind,
  child_evidence = :child_evidence,
  launch_id = (SELECT id FROM launch WHERE run_id = :run_id AND ordinal = :launch)
WHERE id = :id;

-- Times and counts of a run's launches, from their processes.
-- query SetLaunchTotals(run_id INTEGER)
UPDATE launch
SET start_time_us = p.first_us, end_time_us = p.last_us, process_count = p.count
FROM (SELECT launch_id, min(first_record_us) AS first_us, max(last_record_us) AS last_us,
    sum(child_kind IS NULL) AS count FROM process GROUP BY launch_id) p
WHERE p.launch_id = launch.id AND launch.run_id = :run_id;

-- query RemoveLaunchesAfter(run_id INTEGER, ordinal INTEGER)
DELETE FROM launch WHERE run_id = :run_id AND ordinal > :ordinal;
