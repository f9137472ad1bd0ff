-- By time.
-- query MemoryEventOfProfile(snapshot_id INTEGER)
SELECT e.id, e.ordinal, e.address /*INTEGER*/, e.size_bytes, e.time_ns /*INTEGER*/, e.allocated_bytes, a.is_alloc
FROM memory_event_row e JOIN memory_action a ON a.id = e.action
WHERE e.snapshot_id = :snapshot_id ORDER BY e.time_ns, e.id;

-- query MostOfProfile(snapshot_id INTEGER, peak_ordinal INTEGER)
SELECT max(allocated_bytes) AS allocated_bytes /*INTEGER?*/, nullif(max(reserved_bytes), 0) AS reserved_bytes /*INTEGER?*/,
  nullif(max(CASE WHEN ordinal = :peak_ordinal THEN reserved_bytes END), 0) AS reserved_at_peak_bytes /*INTEGER?*/
FROM memory_event_row WHERE snapshot_id = :snapshot_id;
