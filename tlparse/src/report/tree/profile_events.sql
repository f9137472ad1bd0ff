-- Profiles of a process whose events have times.
-- query ProfileOfProcess(process_id INTEGER)
SELECT p.id, p.pid FROM profile p JOIN profile_kind k ON k.name = p.kind AND k.has_times
WHERE p.process_id = :process_id AND p.overlaps_id IS NULL ORDER BY p.id;

-- Profiles of processes without a log, with the number of their events' process.
-- query ProfileWithoutLog(run_id INTEGER, by_rank BOOLEAN)
SELECT p.id, p.pid, coalesce(CASE WHEN :by_rank THEN p.rank END, p.pid, 10000000 + p.id) AS number /*INTEGER*/
FROM profile p JOIN profile_kind k ON k.name = p.kind AND k.is_of_profiler
WHERE p.run_id = :run_id AND p.process_id IS NULL AND p.overlaps_id IS NULL ORDER BY p.id;
