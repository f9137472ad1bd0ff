-- What the inputs know of Python files: lines with their text, and what came of a line.

-- Lines may differ between processes: each text is a row.
-- table: source_line
SELECT line, 0 AS "|", file, code
FROM (
  WITH RECURSIVE
    used(id) AS (
      SELECT stack_id FROM compile WHERE process_id IN run_process
      UNION
      SELECT stack_id FROM record_row WHERE stack_id IS NOT NULL AND process_id IN run_process
      UNION
      SELECT user_stack_id FROM record_row WHERE user_stack_id IS NOT NULL AND process_id IN run_process
      UNION
      SELECT f.parent_id FROM used u JOIN stack_frame f ON f.id = u.id
    ),
    graph_content(id) AS (SELECT DISTINCT content_id FROM graph_text_row WHERE compile_id IN run_compile),
    kernel_content(id) AS (
      SELECT DISTINCT provenance_content_id FROM graph WHERE provenance_content_id IS NOT NULL AND compile_id IN run_compile
    ),
    guard_content(id) AS (SELECT DISTINCT content_id FROM guard_use_row WHERE compile_id IN run_compile)
  SELECT f.file, f.line, f.code FROM stack_frame f WHERE f.id IN used
  UNION
  SELECT f.text, n.line, c.text
  FROM graph_node_row n
    JOIN text_row f ON f.id = n.file_id
    JOIN text_row c ON c.id = n.code_id
  WHERE n.content_id IN graph_content
  UNION
  SELECT f.text, s.line, c.text
  FROM kernel_source_row s
    JOIN text_row f ON f.id = s.file_id
    JOIN text_row c ON c.id = s.code_id
  WHERE s.kernel_id IN (SELECT id FROM kernel_row WHERE content_id IN kernel_content)
  UNION
  SELECT f.text, g.user_line, g.user_code
  FROM guard_row g
    JOIN text_row f ON f.id = g.user_file_id
  WHERE g.content_id IN guard_content)
WHERE file IS NOT NULL
  AND line > 0
  AND code <> ''
ORDER BY file, line, code;

-- table: break
SELECT b.record_id, b.compile_id, b.user_line AS line, 0 AS "|", b.user_file_id AS "file@text", b.cause_id AS "cause@text"
FROM graph_break_row b
WHERE b.compile_id IN run_compile
  AND b.user_file_id IS NOT NULL
  AND b.user_line > 0
ORDER BY b.record_id;

-- table: recompile
SELECT r.record_id, r.compile_id, r.user_line AS line, 0 AS "|", r.user_file_id AS "file@text", coalesce(r.guard_id, r.reason_id) AS "guard@text"
FROM recompile_row r
WHERE r.compile_id IN run_compile
  AND r.user_file_id IS NOT NULL
  AND r.user_line > 0
ORDER BY r.record_id, r.ordinal;

-- table: failure
SELECT f.record_id, f.compile_id, f.user_line AS line, 0 AS "|", f.user_file_id AS "file@text", f.type_id AS "type@text"
FROM failure_row f
WHERE f.compile_id IN run_compile
  AND f.user_file_id IS NOT NULL
  AND f.user_line > 0
ORDER BY f.record_id;

-- By content, which many compiles share.
-- table: guard_line
SELECT g.content_id, g.user_line AS line, count(*) AS guards, 0 AS "|", f.text AS file, min(substr(g.expression, 1, 400)) AS expression
FROM guard_row g
  JOIN text_row f ON f.id = g.user_file_id
WHERE g.content_id IN (SELECT content_id FROM guard_use_row WHERE compile_id IN run_compile)
GROUP BY g.content_id, g.user_file_id, g.user_line
ORDER BY g.content_id, file, line;

-- table: guard_use
SELECT record_id, compile_id, content_id, 0 AS "|"
FROM guard_use_row
WHERE compile_id IN run_compile
ORDER BY record_id;

-- table: node_line
SELECT n.content_id, n.line, count(*) AS nodes, 0 AS "|", f.text AS file, min(n.name) AS node
FROM graph_node_row n
  JOIN text_row f ON f.id = n.file_id
WHERE n.content_id IN (SELECT content_id FROM graph_text_row WHERE compile_id IN run_compile)
GROUP BY n.content_id, n.file_id, n.line
ORDER BY n.content_id, file, n.line;

-- table: node_use
SELECT t.record_id, t.compile_id, t.graph_id, t.content_id, 0 AS "|", t.stage_id AS "stage@text"
FROM graph_text_row t
WHERE t.compile_id IN run_compile
  AND t.content_id IN (SELECT DISTINCT content_id FROM graph_node_row WHERE file_id IS NOT NULL)
ORDER BY t.record_id;

-- table: kernel
SELECT k.id, k.content_id, 0 AS "|", k.name
FROM kernel_row k
WHERE k.content_id IN (
    SELECT provenance_content_id FROM graph WHERE provenance_content_id IS NOT NULL AND compile_id IN run_compile)
ORDER BY k.id;

-- Every frame of a kernel's stacks: the innermost, and its callers.
-- table: kernel_frame
SELECT s.kernel_id, s.line, max(s.frame_ordinal = (
    SELECT max(i.frame_ordinal)
    FROM kernel_source_row i
    WHERE i.kernel_id = s.kernel_id
      AND i.stack_ordinal = s.stack_ordinal)) AS is_inner, 0 AS "|", s.file_id AS "file@text"
FROM kernel_source_row s
  JOIN kernel_row k ON k.id = s.kernel_id
WHERE s.line IS NOT NULL
  AND s.file_id IS NOT NULL
  AND k.content_id IN (
    SELECT provenance_content_id FROM graph WHERE provenance_content_id IS NOT NULL AND compile_id IN run_compile)
GROUP BY s.kernel_id, s.file_id, s.line
ORDER BY s.kernel_id, s.file_id, s.line;

-- Files that a payload holds: generated code.
-- table: whole_file
SELECT min(o.record_id) AS record_id, o.compile_id, p.size_bytes, 0 AS "|", t.text AS file, p.hash AS payload_hash
FROM output_code_row o
  JOIN text_row t ON t.id = o.path_id
  JOIN record_row r ON r.id = o.record_id
  JOIN payload_row p ON p.id = r.payload_id
WHERE o.compile_id IN run_compile
GROUP BY o.path_id
ORDER BY file;
