-- The last ones, the latest first, as far as their order is known.
-- query RasReport(run_id INTEGER)
SELECT r.id, r.gpu_count, r.taken_at
FROM nccl_ras_report r JOIN profile p ON p.id = r.profile_id
WHERE p.run_id = :run_id ORDER BY coalesce(r.taken_at, '') DESC, p.path DESC, r.number DESC LIMIT 16;

-- query RasProcess(report_id INTEGER)
SELECT state, process_count, pid, coalesce(node, '') AS node /*TEXT*/, coalesce(gpus, '') AS gpus /*TEXT*/
FROM nccl_ras_process WHERE report_id = :report_id ORDER BY id;

-- query RasState(report_id INTEGER)
SELECT id, communicator, size, topic, coalesce(operation, '') AS operation /*TEXT*/, rank, rank_count,
  coalesce(launched, -1) AS launched /*INTEGER*/, coalesce(text, '') AS text /*TEXT*/, pid, coalesce(node, '') AS node /*TEXT*/
FROM nccl_ras_state WHERE report_id = :report_id ORDER BY communicator, topic, operation, launched, rank, id;
