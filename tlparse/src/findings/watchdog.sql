-- By process group and rank: the first collective that timed out, and how far the rank had come at
-- its last line.
-- query WatchdogOfRank(run_id INTEGER)
SELECT coalesce(w.group_name, '') AS group_name /*TEXT*/, coalesce(max(w.group_description), '') AS description /*TEXT*/,
  w.rank /*INTEGER*/, min(w.sequence_number) AS sequence_number /*INTEGER?*/, max(w.last_enqueued) AS last_enqueued /*INTEGER?*/,
  max(w.last_completed) AS last_completed /*INTEGER?*/
FROM nccl_watchdog w JOIN profile p ON p.id = w.profile_id
WHERE p.run_id = :run_id AND w.rank IS NOT NULL AND w.event <> 'timeout'
GROUP BY w.group_name, w.rank ORDER BY 1, w.rank;

-- The collectives that timed out. Their lines name no group before PyTorch 2.9: it is that of the rank's status line with this number.
-- query WatchdogTimeout(run_id INTEGER)
SELECT w.rank, w.sequence_number /*INTEGER*/, coalesce(max(w.op), '') AS op /*TEXT*/, max(w.ran_ms) AS ran_ms /*INTEGER?*/,
  max(w.numel_in) AS numel_in /*INTEGER?*/
FROM nccl_watchdog w JOIN profile p ON p.id = w.profile_id
WHERE p.run_id = :run_id AND w.event = 'timeout' AND w.rank IS NOT NULL
GROUP BY w.rank, w.sequence_number ORDER BY w.rank, w.sequence_number;
