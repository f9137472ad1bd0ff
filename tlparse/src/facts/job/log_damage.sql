-- query DamageOfProcess(run_id INTEGER)
SELECT process_id /*INTEGER*/, is_damaged /*BOOLEAN*/, is_cut /*BOOLEAN*/, readable_bytes /*INTEGER?*/
FROM log_damage WHERE run_id = :run_id;
