-- Whether an input is of the rank and process: a log, a profile or dump, a process that `tlparse run` saw. A file whose launch is
-- not known is of any launch.
-- query InputsOfAsked(run_id INTEGER?, launch INTEGER?, rank INTEGER?, pid INTEGER?)
WITH own(rank, pid) AS (
  SELECT p.rank, p.pid FROM process p JOIN log_file f ON f.id = p.log_file_id LEFT JOIN launch n ON n.id = p.launch_id
  WHERE (:run_id IS NULL OR f.run_id = :run_id) AND (:launch IS NULL OR coalesce(n.ordinal, 1) = :launch)
  UNION ALL SELECT f.name_rank, NULL FROM log_file f
  WHERE (:run_id IS NULL OR f.run_id = :run_id) AND NOT EXISTS (SELECT 1 FROM process p WHERE p.log_file_id = f.id)
  UNION ALL SELECT p.rank, coalesce(p.pid, q.pid) FROM profile p LEFT JOIN process q ON q.id = p.process_id
    LEFT JOIN launch n ON n.id = q.launch_id
  WHERE (:run_id IS NULL OR p.run_id = :run_id) AND (:launch IS NULL OR n.ordinal IS NULL OR n.ordinal = :launch)
  UNION ALL SELECT c.rank, c.pid FROM run_process c JOIN profile p ON p.id = c.profile_id
  WHERE :run_id IS NULL OR p.run_id = :run_id)
SELECT EXISTS (SELECT 1 FROM own WHERE (:rank IS NULL OR rank = :rank) AND (:pid IS NULL OR pid = :pid)) AS is_there /*BOOLEAN*/;

-- The ranks of a process, by logs, profiles, dumps and `tlparse run`.
-- query RankOfPid(run_id INTEGER, pid INTEGER)
SELECT DISTINCT rank /*INTEGER*/ FROM (
  SELECT coalesce(p.rank, q.rank) AS rank FROM profile p LEFT JOIN process q ON q.id = p.process_id
  WHERE p.run_id = :run_id AND coalesce(p.pid, q.pid) = :pid
  UNION ALL SELECT p.rank FROM process p JOIN log_file f ON f.id = p.log_file_id WHERE f.run_id = :run_id AND p.pid = :pid
  UNION ALL SELECT c.rank FROM run_process c JOIN profile p ON p.id = c.profile_id WHERE p.run_id = :run_id AND c.pid = :pid)
WHERE rank IS NOT NULL;

-- The ranks and processes of the same inputs.
-- query ParticipantOfInputs(run_id INTEGER?, launch INTEGER?)
WITH own(rank, pid) AS (
  SELECT p.rank, p.pid FROM process p JOIN log_file f ON f.id = p.log_file_id LEFT JOIN launch n ON n.id = p.launch_id
  WHERE (:run_id IS NULL OR f.run_id = :run_id) AND (:launch IS NULL OR coalesce(n.ordinal, 1) = :launch)
  UNION ALL SELECT f.name_rank, NULL FROM log_file f
  WHERE (:run_id IS NULL OR f.run_id = :run_id) AND NOT EXISTS (SELECT 1 FROM process p WHERE p.log_file_id = f.id)
  UNION ALL SELECT p.rank, coalesce(p.pid, q.pid) FROM profile p LEFT JOIN process q ON q.id = p.process_id
    LEFT JOIN launch n ON n.id = q.launch_id
  WHERE (:run_id IS NULL OR p.run_id = :run_id) AND (:launch IS NULL OR n.ordinal IS NULL OR n.ordinal = :launch)
  UNION ALL SELECT c.rank, c.pid FROM run_process c JOIN profile p ON p.id = c.profile_id
  WHERE :run_id IS NULL OR p.run_id = :run_id)
SELECT DISTINCT rank /*INTEGER?*/, pid /*INTEGER?*/ FROM own ORDER BY rank, pid;
