-- The blocks of a device that hold their memory.
-- query ActiveBlock(snapshot_id INTEGER)
SELECT b.address /*INTEGER*/, b.requested_bytes, b.site_id
FROM memory_segment_row g JOIN memory_block_row b ON b.segment_id = g.id JOIN memory_block_state s ON s.id = b.state
WHERE g.snapshot_id = :snapshot_id AND s.is_active AND b.address IS NOT NULL ORDER BY b.id;
