-- What came of the lines of a file, by compile. A file is named by its path or the end of it; PyTorch cuts some paths at the left.
-- query OutcomeOfLine(run_id INTEGER, file TEXT, line INTEGER?, rank INTEGER?, pid INTEGER?)
WITH of_file(id, path) AS MATERIALIZED (
    SELECT id, text
    FROM text_row
    WHERE text = :file
      OR substr(text, -length(:file) - 1) = '/' || :file
      OR (substr(:file, -length(text)) = text AND instr(text, '/') > 0)),
  of_run(id) AS MATERIALIZED (
    SELECT c.id
    FROM compile c
      JOIN process p ON p.id = c.process_id
      JOIN log_file l ON l.id = p.log_file_id
    WHERE l.run_id = :run_id
      AND (:rank IS NULL OR c.rank = :rank) AND (:pid IS NULL OR p.pid = :pid)),
  outcome(kind, file, line, compile_id, record_id, direction, text, count) AS (
    SELECT 0, c.file, c.line, c.id, c.first_record_id, NULL, c.status, 1
    FROM compile c
    WHERE c.id IN of_run
      AND (c.file = :file OR substr(c.file, -length(:file) - 1) = '/' || :file)
    UNION ALL
    SELECT 1, f.path, b.user_line, b.compile_id, b.record_id, NULL, t.text, 1
    FROM graph_break_row b
      JOIN of_file f ON f.id = b.user_file_id
      JOIN text_row t ON t.id = b.cause_id
    UNION ALL
    SELECT 2, f.path, r.user_line, r.compile_id, r.record_id, NULL, t.text, 1
    FROM recompile_row r
      JOIN of_file f ON f.id = r.user_file_id
      JOIN text_row t ON t.id = coalesce(r.guard_id, r.reason_id)
    UNION ALL
    SELECT 3, f.path, e.user_line, e.compile_id, e.record_id, NULL, coalesce(t.text, k.text), 1
    FROM failure_row e
      JOIN of_file f ON f.id = e.user_file_id
      JOIN text_row k ON k.id = e.kind_id
      LEFT JOIN text_row t ON t.id = e.type_id
    UNION ALL
    SELECT 4, f.path, g.user_line, u.compile_id, u.record_id, NULL, min(g.expression), count(*)
    FROM guard_row g
      JOIN of_file f ON f.id = g.user_file_id
      JOIN guard_use_row u ON u.content_id = g.content_id
    GROUP BY u.record_id, f.path, g.user_line
    UNION ALL
    SELECT 5, f.path, n.line, t.compile_id, t.record_id, NULL, s.text || ': ' || min(n.name), count(*)
    FROM graph_node_row n
      JOIN of_file f ON f.id = n.file_id
      JOIN graph_text_row t ON t.content_id = n.content_id
      JOIN text_row s ON s.id = t.stage_id
    GROUP BY t.record_id, f.path, n.line
    UNION ALL
    SELECT 6, k.file, k.line, k.compile_id, k.record_id, k.direction,
      k.kernel || coalesce(':' || k.debug_handle, ''), 1
    FROM kernel_provenance k
    WHERE k.file IN (SELECT path FROM of_file))
SELECT o.kind /*INTEGER*/, o.file /*TEXT*/, o.line /*INTEGER*/, c.label /*TEXT*/, c.generation /*INTEGER*/, c.function /*TEXT*/, c.file AS compile_file /*TEXT*/,
  c.rank /*INTEGER?*/,
  o.direction /*TEXT*/, o.text /*TEXT*/, o.count /*INTEGER*/, o.compile_id /*INTEGER*/, o.record_id /*INTEGER?*/
FROM outcome o
  JOIN compile c ON c.id = o.compile_id
WHERE o.line > 0
  AND (:line IS NULL OR o.line = :line)
  AND o.compile_id IN of_run
ORDER BY o.file, o.line, o.kind, c.frame_id, c.frame_compile_id, c.rank, o.record_id;

-- The text of a line, where a graph, a kernel, a guard or a stack has it.
-- query CodeOfLine(file TEXT, line INTEGER)
SELECT code /*TEXT*/
FROM (
  SELECT c.text AS code
  FROM text_row f
    JOIN graph_node_row n ON n.file_id = f.id AND n.line = :line
    JOIN text_row c ON c.id = n.code_id
  WHERE f.text = :file
  UNION ALL
  SELECT c.text
  FROM text_row f
    JOIN kernel_source_row s ON s.file_id = f.id AND s.line = :line
    JOIN text_row c ON c.id = s.code_id
  WHERE f.text = :file
  UNION ALL
  SELECT g.user_code
  FROM text_row f
    JOIN guard_row g ON g.user_file_id = f.id AND g.user_line = :line
  WHERE f.text = :file
  UNION ALL
  SELECT code
  FROM stack_frame
  WHERE file = :file
    AND line = :line)
WHERE code <> ''
LIMIT 1;
