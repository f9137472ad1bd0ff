-- query ProfileToJoin(run_id INTEGER)
SELECT id, own_rank, pid, end_us
FROM profile WHERE run_id = :run_id AND kind IN (SELECT name FROM profile_kind WHERE is_of_profiler) ORDER BY id;

-- query ProcessToJoin(run_id INTEGER)
SELECT p.id, p.pid, coalesce(p.rank, f.name_rank) AS rank /*INTEGER?*/, p.first_record_us,
  p.is_thread_id
FROM process p JOIN log_file f ON f.id = p.log_file_id WHERE f.run_id = :run_id
ORDER BY p.first_record_us, p.id;

-- query TimedProfile(run_id INTEGER)
SELECT id, path, start_us /*INTEGER*/, end_us /*INTEGER*/, process_id, pid, rank
FROM profile
WHERE run_id = :run_id AND kind = 'kineto' AND start_us IS NOT NULL AND end_us IS NOT NULL
  AND (process_id IS NOT NULL OR pid IS NOT NULL)
ORDER BY start_us, id;
