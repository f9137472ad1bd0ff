-- Profiles of a process whose events have times.
-- query ProfileOfProcess(process_id INTEGER)
SELECT p.id FROM profile p JOIN profile_kind k ON k.name = p.kind AND k.has_times
WHERE p.process_id = :process_id AND p.overlaps_id IS NULL ORDER BY p.id;

-- Profiles of processes without a log, with the pid of their events.
-- query ProfileWithoutLog(run_id INTEGER, by_rank BOOLEAN)
SELECT p.id, coalesce(CASE WHEN :by_rank THEN p.rank END, p.pid, -p.id) AS pid /*INTEGER*/
FROM profile p JOIN profile_kind k ON k.name = p.kind AND k.is_of_profiler
WHERE p.run_id = :run_id AND p.process_id IS NULL AND p.overlaps_id IS NULL ORDER BY p.id;
