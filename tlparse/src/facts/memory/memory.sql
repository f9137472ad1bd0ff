-- query MemoryDeviceRow(run_id INTEGER, rank INTEGER?, pid INTEGER?)
SELECT s.id, s.path, s.kind, s.source, s.device, s.rank, s.event_count, s.base_bytes, s.peak_bytes, s.peak_ordinal,
  s.peak_us /*INTEGER?*/, s.start_us /*INTEGER?*/, s.taken_us /*INTEGER?*/, s.end_bytes, s.reserved_at_peak_bytes, s.end_reserved_bytes, s.oom_ordinal
FROM memory_snapshot s JOIN profile p ON p.id = s.profile_id LEFT JOIN process q ON q.id = p.process_id
WHERE s.run_id = :run_id AND (:rank IS NULL OR s.rank = :rank) AND (:pid IS NULL OR coalesce(p.pid, q.pid) = :pid)
  AND (s.event_count > 0 OR s.end_bytes > 0 OR s.end_reserved_bytes > 0) ORDER BY s.rank, s.path, s.id;

-- How many of these are not of the rank or process.
-- query MemoryOfOthers(run_id INTEGER, rank INTEGER?, pid INTEGER?)
SELECT count(*) AS count /*INTEGER*/
FROM memory_snapshot s JOIN profile p ON p.id = s.profile_id LEFT JOIN process q ON q.id = p.process_id
WHERE s.run_id = :run_id AND (s.event_count > 0 OR s.end_bytes > 0 OR s.end_reserved_bytes > 0)
  AND ((:rank IS NULL OR s.rank = :rank) AND (:pid IS NULL OR coalesce(p.pid, q.pid) = :pid)) IS NOT 1;

-- What the import found missing in the files of recordings.
-- query RecordingProblem(run_id INTEGER, rank INTEGER?, pid INTEGER?)
SELECT p.path, i.message, max(i.is_cut) = 1 AS is_cut /*BOOLEAN*/
FROM import_log i JOIN profile p ON p.id = i.profile_id LEFT JOIN process q ON q.id = p.process_id
WHERE p.run_id = :run_id AND i.severity = 'error' AND (:rank IS NULL OR p.rank = :rank) AND (:pid IS NULL OR coalesce(p.pid, q.pid) = :pid)
  AND p.id IN (SELECT profile_id FROM memory_snapshot_row)
GROUP BY p.path, i.message ORDER BY min(i.id) LIMIT 5;

-- What is alive after an event, by site.
-- query HeldBySite(snapshot_id INTEGER, ordinal INTEGER)
SELECT coalesce(site_id, 0) AS site_id /*INTEGER*/, site_id IS NULL AND alloc_ordinal IS NULL AS is_before /*BOOLEAN*/,
  sum(size_bytes) AS size_bytes /*INTEGER*/, count(*) AS allocations /*INTEGER*/
FROM memory_allocation_row
WHERE snapshot_id = :snapshot_id AND (alloc_ordinal IS NULL OR alloc_ordinal <= :ordinal) AND (free_ordinal IS NULL OR free_ordinal > :ordinal)
GROUP BY 1, 2;

-- query SiteOfMemory(site_id INTEGER)
SELECT coalesce(s.stack_id, 0) AS stack_id /*INTEGER*/, s.op, s.annotation, s.category, s.file, s.line, s.function, s.join_note,
  coalesce(c.label || iif(c.generation > 0, '#' || (c.generation + 1), ''), CASE WHEN s.compile_context LIKE 'Torch-Compiled Region: %' THEN substr(s.compile_context, 24) END,
    (SELECT t.text FROM memory_site_row r JOIN compiled_slice_row z ON z.id = r.slice_id JOIN compiled_slice_kind k ON k.id = z.kind
    JOIN text_row t ON t.id = z.name_id WHERE r.id = s.id AND k.name = 'region'), '') AS label /*TEXT*/,
  coalesce(g.direction, '') AS direction /*TEXT*/, s.code_line, s.compile_id, s.graph_id,
  coalesce(k.name || coalesce(':' || k.debug_handle, ''), '') AS kernel /*TEXT*/,
  (SELECT group_concat(n.post_grad_node, ', ') FROM kernel_node_row n WHERE n.kernel_id = k.id) AS nodes /*TEXT*/
FROM memory_site s LEFT JOIN compile c ON c.id = s.compile_id LEFT JOIN graph g ON g.id = s.graph_id
LEFT JOIN kernel_row k ON k.id = s.kernel_id WHERE s.id = :site_id;

-- query FrameOfMemory(stack_id INTEGER)
WITH RECURSIVE chain(id, parent_id, file, line, function, depth) AS (SELECT id, parent_id, file, line, function, 0
  FROM stack_frame WHERE id = :stack_id UNION ALL
  SELECT f.id, f.parent_id, f.file, f.line, f.function, depth + 1 FROM chain c
  JOIN stack_frame f ON f.id = c.parent_id WHERE depth < 1024)
SELECT coalesce(file, '') AS file /*TEXT*/, coalesce(line, 0) AS line /*INTEGER*/, coalesce(function, '') AS function /*TEXT*/ FROM chain ORDER BY depth;

-- query SegmentsOfMemory(snapshot_id INTEGER)
WITH segment AS (SELECT g.id, g.total_bytes, coalesce(sum(CASE WHEN t.is_active THEN b.size_bytes END), 0) AS active_bytes,
    coalesce(sum(CASE WHEN t.is_active THEN b.requested_bytes END), 0) AS requested_bytes,
    coalesce(sum(b.size_bytes), 0) AS block_bytes, coalesce(max(CASE WHEN NOT t.is_active THEN b.size_bytes END), 0) AS largest_bytes
  FROM memory_segment_row g LEFT JOIN memory_block_row b ON b.segment_id = g.id LEFT JOIN memory_block_state t ON t.id = b.state
  WHERE g.snapshot_id = :snapshot_id GROUP BY g.id)
SELECT count(*) AS segments /*INTEGER*/, coalesce(sum(total_bytes), 0) AS reserved_bytes /*INTEGER*/,
  coalesce(sum(requested_bytes), 0) AS requested_bytes /*INTEGER*/, coalesce(sum(active_bytes), 0) AS active_bytes /*INTEGER*/,
  coalesce(sum(CASE WHEN active_bytes = 0 THEN block_bytes END), 0) AS free_bytes /*INTEGER*/,
  coalesce(sum(CASE WHEN active_bytes > 0 THEN block_bytes - active_bytes END), 0) AS fragmented_bytes /*INTEGER*/,
  coalesce(max(largest_bytes), 0) AS largest_free_bytes /*INTEGER*/
FROM segment;

-- query FailedAllocationRow(snapshot_id INTEGER, ordinal INTEGER)
SELECT e.size_bytes, e.device_free_bytes, e.time_ns / 1000 AS time_us /*INTEGER?*/, s.file, s.line, s.function
FROM memory_event_row e LEFT JOIN memory_site s ON s.id = e.site_id WHERE e.snapshot_id = :snapshot_id AND e.ordinal = :ordinal
  AND e.action IN (SELECT id FROM memory_action WHERE name = 'oom');

-- What each line held at the peak.
-- query LineAtPeak(snapshot_id INTEGER)
SELECT file /*TEXT*/, line /*INTEGER*/, size_bytes /*INTEGER*/, allocations /*INTEGER*/
FROM line_memory WHERE snapshot_id = :snapshot_id AND file IS NOT NULL AND line > 0 ORDER BY size_bytes DESC, file, line LIMIT 5000;
