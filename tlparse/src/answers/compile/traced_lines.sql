-- The lines of the nodes of a compile's Dynamo graphs, in their order.
-- query LineOfNode(compile_id INTEGER)
SELECT f.text AS file, n.line /*INTEGER*/, c.text AS code
FROM graph_text_row t JOIN text_row s ON s.id = t.stage_id
  JOIN graph_node_row n ON n.content_id = t.content_id JOIN text_row f ON f.id = n.file_id
  LEFT JOIN text_row c ON c.id = n.code_id
WHERE t.compile_id = :compile_id AND s.text = 'dynamo_output_graph' AND n.line IS NOT NULL
ORDER BY t.record_id, n.ordinal;

-- The lines that guards of a compile come from. PyTorch cuts the path on the left.
-- query LineOfGuard(compile_id INTEGER)
SELECT DISTINCT f.text AS file, g.user_line AS line /*INTEGER*/, g.user_code AS code
FROM guard_use_row u JOIN guard_row g ON g.content_id = u.content_id
  JOIN text_row f ON f.id = g.user_file_id
WHERE u.compile_id = :compile_id AND g.user_line IS NOT NULL;

-- The user's stacks at which a compile made symbols, in order.
-- query StackOfSymbol(compile_id INTEGER)
SELECT r.user_stack_id AS stack_id /*INTEGER*/
FROM compile c JOIN record_row r ON r.id BETWEEN c.first_record_id AND c.last_record_id
  AND r.compile_id = c.id
WHERE c.id = :compile_id AND r.user_stack_id IS NOT NULL
GROUP BY r.user_stack_id ORDER BY min(r.id);

-- query FrameOfSymbol(stack_id INTEGER)
WITH RECURSIVE frame(id, depth) AS (SELECT :stack_id, 0 UNION ALL
  SELECT s.parent_id, f.depth + 1 FROM frame f JOIN stack_frame s ON s.id = f.id)
SELECT s.file, s.line AS line /*INTEGER*/, s.code
FROM frame f JOIN stack_frame s ON s.id = f.id ORDER BY f.depth;

-- What decides about the lines that LineOfNode and LineOfGuard have: equal for compiles that have
-- the same.
-- query ContentOfLines(compile_id INTEGER)
SELECT (SELECT group_concat(content_id) FROM (SELECT t.content_id
      FROM graph_text_row t JOIN text_row s ON s.id = t.stage_id
      WHERE t.compile_id = :compile_id AND s.text = 'dynamo_output_graph' ORDER BY t.record_id))
    AS graphs /*TEXT*/,
  (SELECT group_concat(u.content_id) FROM guard_use_row u WHERE u.compile_id = :compile_id)
    AS guards /*TEXT*/;
