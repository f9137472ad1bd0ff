-- By thread and time.
-- query FrameOfGeneratedCode(profile_id INTEGER)
SELECT y.id, coalesce(y.thread_id, 0) AS thread_id /*INTEGER*/, y.start_ns,
  y.start_ns + y.duration_ns AS end_ns /*INTEGER*/, y.line /*INTEGER*/, f.text AS file
FROM python_frame_row y JOIN text_row f ON f.id = y.file_id
WHERE y.profile_id = :profile_id AND y.line IS NOT NULL AND y.file_id IN (SELECT path_id
  FROM output_code_row)
ORDER BY 2, 3, 1;

-- query CallOfGraph(profile_id INTEGER)
SELECT s.id, coalesce(s.thread_id, 0) AS thread_id /*INTEGER*/, s.start_ns,
  s.start_ns + s.duration_ns AS end_ns /*INTEGER*/, l.graph_id /*INTEGER*/
FROM compiled_slice_row s JOIN compiled_slice_link_row l ON l.slice_id = s.id
WHERE s.profile_id = :profile_id AND l.is_call = 1 AND l.graph_id IS NOT NULL AND s.device IS NULL
ORDER BY 1;

-- query KernelJoinedInCall(profile_id INTEGER)
SELECT l.slice_id /*INTEGER*/, l.kernel_id /*INTEGER*/
FROM kernel_run_row r JOIN kernel_run_link_row l ON l.kernel_run_id = r.id
WHERE r.profile_id = :profile_id AND l.slice_id IS NOT NULL AND l.kernel_id IS NOT NULL;

-- query PathOfGraphCode(graph_id INTEGER)
SELECT t.text AS path
FROM graph g JOIN output_code_row o ON o.record_id = g.code_record_id
  JOIN text_row t ON t.id = o.path_id
WHERE g.id = :graph_id;

-- query KernelOfCodeLine(graph_id INTEGER)
SELECT k.code_line /*INTEGER*/, min(k.id) AS id /*INTEGER*/, count(*) AS count /*INTEGER*/
FROM graph g JOIN kernel_row k ON k.content_id = g.provenance_content_id
WHERE g.id = :graph_id AND k.code_line IS NOT NULL GROUP BY k.code_line;

-- The ops, and the runs of CPU kernels, of a call that are joined with no kernel.
-- query InnerOfCall(profile_id INTEGER, slice_id INTEGER, thread_id INTEGER?)
SELECT o.id /*INTEGER*/, o.start_ns /*INTEGER*/, o.start_ns + o.duration_ns AS end_ns /*INTEGER*/,
  1 AS is_op /*BOOLEAN*/
FROM op_run_row o JOIN op_run_link_row l ON l.op_run_id = o.id
WHERE o.profile_id = :profile_id AND l.slice_id = :slice_id AND o.thread_id IS :thread_id
  AND NOT EXISTS (SELECT 1 FROM kernel_run_row k WHERE k.op_run_id = o.id)
UNION ALL SELECT k.id, k.start_ns, k.start_ns + k.duration_ns, 0
FROM kernel_run_row k JOIN kernel_run_link_row l ON l.kernel_run_id = k.id
WHERE k.profile_id = :profile_id AND l.slice_id = :slice_id AND k.thread_id IS :thread_id
  AND k.device IS NULL AND l.kernel_id IS NULL;
