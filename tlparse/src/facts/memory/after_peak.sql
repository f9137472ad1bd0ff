-- The first allocation behind an event; without one the number of events.
-- query NextAllocation(snapshot_id INTEGER, ordinal INTEGER)
SELECT coalesce(min(a.alloc_ordinal), max(s.event_count)) AS ordinal /*INTEGER*/, max(s.event_count) AS event_count /*INTEGER*/
FROM memory_snapshot_row s LEFT JOIN memory_allocation_row a ON a.snapshot_id = s.id AND a.alloc_ordinal > :ordinal WHERE s.id = :snapshot_id;

-- query LifeByOrdinal(snapshot_id INTEGER)
SELECT coalesce(site_id, 0) AS site_id /*INTEGER*/, size_bytes, alloc_ordinal, free_ordinal
FROM memory_allocation_row WHERE snapshot_id = :snapshot_id;
