-- The steps whose end the recording holds.
-- query StepOfMemory(snapshot_id INTEGER)
SELECT m.step /*INTEGER*/, m.end_ns /*INTEGER*/ FROM memory_step m JOIN memory_snapshot_row s ON s.id = m.snapshot_id
WHERE m.snapshot_id = :snapshot_id AND m.end_ns >= s.start_ns AND m.end_ns <= s.taken_ns ORDER BY m.end_ns, m.step;

-- query LifeOfAllocation(snapshot_id INTEGER)
SELECT coalesce(site_id, 0) AS site_id /*INTEGER*/, size_bytes, alloc_ns, free_ns
FROM memory_allocation_row WHERE snapshot_id = :snapshot_id;

-- The last event before the end of a step.
-- query OrdinalOfTime(snapshot_id INTEGER, end_ns INTEGER)
SELECT coalesce(max(ordinal), -1) AS ordinal /*INTEGER*/ FROM memory_event_row WHERE snapshot_id = :snapshot_id AND time_ns <= :end_ns;
