-- Profiles and snapshots with memory.
-- query ProfileOfMemory(run_id INTEGER)
SELECT DISTINCT p.id, p.process_id, p.kind = 'kineto' AS is_profile /*BOOLEAN*/
FROM memory_snapshot_row s JOIN profile p ON p.id = s.profile_id WHERE p.run_id = :run_id ORDER BY p.id;

-- query RemoveSiteLinks(profile_id INTEGER)
DELETE FROM memory_site_link_row WHERE profile_id = :profile_id;

-- All sites of a profile, which only joins make.
-- query RemoveJoinedSites(profile_id INTEGER)
DELETE FROM memory_site_row WHERE profile_id = :profile_id;

-- query ResetSitesOfEvents(profile_id INTEGER)
UPDATE memory_event_row SET site_id = NULL WHERE profile_id = :profile_id;

-- query ResetSitesOfAllocations(profile_id INTEGER)
UPDATE memory_allocation_row SET site_id = NULL WHERE profile_id = :profile_id;

-- query SitesOfAllocations(profile_id INTEGER)
UPDATE memory_allocation_row SET site_id = (SELECT e.site_id FROM memory_event_row e WHERE e.snapshot_id = memory_allocation_row.snapshot_id
  AND e.ordinal = memory_allocation_row.alloc_ordinal AND e.thread_id IS NOT NULL) WHERE profile_id = :profile_id AND alloc_ordinal IS NOT NULL;

-- query SiteToJoin(profile_id INTEGER)
SELECT s.id, coalesce(s.stack_id, 0) AS stack_id /*INTEGER*/, t.text AS region
FROM memory_site_row s LEFT JOIN text_row t ON t.id = s.context_id WHERE s.profile_id = :profile_id ORDER BY s.id;

-- The last compile of that label that had begun.
-- query CompileOfRegion(process_id INTEGER, label TEXT)
SELECT id FROM compile WHERE process_id = :process_id AND label = :label ORDER BY start_time_us DESC, id DESC LIMIT 1;

-- query FrameOfSite(stack_id INTEGER)
WITH RECURSIVE chain(id, parent_id, file, line, function, depth) AS (SELECT id, parent_id, file, line, function, 0
  FROM stack_frame WHERE id = :stack_id UNION ALL
  SELECT f.id, f.parent_id, f.file, f.line, f.function, depth + 1 FROM chain c
  JOIN stack_frame f ON f.id = c.parent_id WHERE depth < 1024)
SELECT file, line /*INTEGER*/, function FROM chain ORDER BY depth;

-- query GraphOfMemory(graph_id INTEGER)
SELECT compile_id /*INTEGER*/ FROM graph WHERE id = :graph_id;

-- query AllocationOfProfile(profile_id INTEGER)
SELECT e.id, coalesce(e.thread_id, 0) AS thread_id /*INTEGER*/, e.time_ns /*INTEGER*/, e.size_bytes,
  s.source = 'CPU' AS is_cpu /*BOOLEAN*/
FROM memory_event_row e JOIN memory_action a ON a.id = e.action JOIN memory_snapshot_row s ON s.id = e.snapshot_id
WHERE e.profile_id = :profile_id AND a.is_alloc ORDER BY 2, 3, 1;

-- What is open on a thread: calls and regions of compiled code, annotations, ops, Python frames with the
-- line that called them; the outer ones first.
-- query OpenOnThread(profile_id INTEGER)
SELECT coalesce(s.thread_id, 0) AS thread_id /*INTEGER*/, s.start_ns /*INTEGER*/, s.start_ns + s.duration_ns AS end_ns /*INTEGER*/,
  0 AS rank /*INTEGER*/, s.id AS slice_id /*INTEGER*/, l.graph_id /*INTEGER?*/, l.compile_id /*INTEGER?*/, 0 AS name_id /*INTEGER*/,
  k.name AS name /*TEXT*/, 0 AS is_frame /*BOOLEAN*/, 0 AS file_id /*INTEGER*/, '' AS file /*TEXT*/, 0 AS line /*INTEGER*/
FROM compiled_slice_row s JOIN compiled_slice_link_row l ON l.slice_id = s.id JOIN compiled_slice_kind k ON k.id = s.kind
WHERE s.profile_id = :profile_id AND s.device IS NULL AND (l.compile_id IS NOT NULL OR k.is_call OR k.name = 'region')
UNION ALL SELECT coalesce(a.thread_id, 0), a.start_ns, a.start_ns + a.duration_ns, 1, 0, NULL, NULL, a.name_id, t.text, 0, 0, '', 0
FROM annotation_row a JOIN text_row t ON t.id = a.name_id WHERE a.profile_id = :profile_id AND a.device IS NULL
UNION ALL SELECT coalesce(o.thread_id, 0), o.start_ns, o.start_ns + o.duration_ns, 2, 0, NULL, NULL, o.name_id, t.text, 0, 0, '', 0
FROM op_run_row o JOIN text_row t ON t.id = o.name_id WHERE o.profile_id = :profile_id
UNION ALL SELECT coalesce(y.thread_id, 0), y.start_ns, y.start_ns + y.duration_ns, 3, 0, NULL, NULL, y.name_id, t.text,
  1, coalesce(y.file_id, 0), coalesce(f.text, ''), coalesce(y.line, 0)
FROM python_frame_row y JOIN text_row t ON t.id = y.name_id LEFT JOIN text_row f ON f.id = y.file_id
WHERE y.profile_id = :profile_id
ORDER BY 1, 2, 3 DESC, 4;

-- A load joins after it has read, and the next load counts anew.
-- query LastSite
SELECT coalesce(max(id), 0) AS id /*INTEGER*/ FROM memory_site_row;

-- The kernels that a graph's code calls; of several names of a call the one with a debug handle.
-- query KernelOfLine(graph_id INTEGER)
SELECT k.id, k.code_line /*INTEGER*/ FROM graph g JOIN kernel_row k ON k.content_id = g.provenance_content_id
WHERE g.id = :graph_id AND k.code_line IS NOT NULL ORDER BY k.debug_handle IS NULL, k.ordinal;
