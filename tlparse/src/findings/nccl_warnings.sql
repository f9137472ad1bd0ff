-- The first warning of NCCL that says of no other process that it was gone; of the rank itself it is no cause of that.
-- query NcclWarningOfOther(run_id INTEGER, rank INTEGER?)
SELECT w.host, w.pid, w.rank, w.text, w.line, p.path FROM nccl_warning w JOIN profile p ON p.id = w.profile_id
WHERE p.run_id = :run_id AND NOT w.is_of_peer AND (w.rank IS NULL OR :rank IS NULL OR w.rank <> :rank)
ORDER BY p.id, w.line LIMIT 1;
