-- By process group and rank: the first collective that timed out, and how far the rank had come at
-- its last line.
-- query WatchdogOfRank(run_id INTEGER)
SELECT coalesce(w.group_name, '') AS group_name /*TEXT*/, coalesce(max(w.group_description), '') AS description /*TEXT*/,
  w.rank /*INTEGER*/, min(w.sequence_number) AS sequence_number /*INTEGER?*/, max(w.last_enqueued) AS last_enqueued /*INTEGER?*/,
  max(w.last_completed) AS last_completed /*INTEGER?*/
FROM nccl_watchdog w JOIN profile p ON p.id = w.profile_id
WHERE p.run_id = :run_id AND w.rank IS NOT NULL AND w.last_enqueued IS NOT NULL
GROUP BY w.group_name, w.rank ORDER BY 1, w.rank;

-- The collectives that timed out. Their lines name no group before PyTorch 2.9: it is that of the rank's status line with this number.
-- The rank is not known where the line names a group alone and the rank within it.
-- query WatchdogTimeout(run_id INTEGER)
SELECT w.rank, w.sequence_number /*INTEGER*/, coalesce(max(w.op), '') AS op /*TEXT*/, max(w.ran_ms) AS ran_ms /*INTEGER?*/,
  coalesce(max(w.group_name), '') AS group_name /*TEXT*/
FROM nccl_watchdog w JOIN profile p ON p.id = w.profile_id
WHERE p.run_id = :run_id AND w.event = 'timeout'
GROUP BY w.rank, w.sequence_number, iif(w.rank IS NULL, w.group_name, NULL) ORDER BY w.rank, min(w.id);

-- The ranks whose watchdogs told others of a time-out, by them or by others.
-- query WatchdogSignal(run_id INTEGER)
SELECT DISTINCT w.signal_rank /*INTEGER*/
FROM nccl_watchdog w JOIN profile p ON p.id = w.profile_id
WHERE p.run_id = :run_id AND w.event = 'dump_signal' AND w.signal_rank IS NOT NULL ORDER BY 1;

-- The ranks whose watchdogs hung.
-- query WatchdogNoProgress(run_id INTEGER)
SELECT w.rank /*INTEGER*/, max(w.ran_ms) AS ran_ms /*INTEGER?*/
FROM nccl_watchdog w JOIN profile p ON p.id = w.profile_id
WHERE p.run_id = :run_id AND w.event = 'no_progress' AND w.rank IS NOT NULL GROUP BY w.rank ORDER BY w.rank;
