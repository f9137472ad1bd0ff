-- query StackOfCompile(compile_id INTEGER)
SELECT stack_id FROM compile WHERE id = :compile_id;

-- The stacks of graph breaks, as text, innermost last.
-- query StackOfBreak(compile_id INTEGER, record_id INTEGER?)
SELECT user_stack FROM graph_break
WHERE compile_id = :compile_id AND user_stack IS NOT NULL
  AND (:record_id IS NULL OR record_id = :record_id) ORDER BY record_id;

-- The frames of a stack, innermost first.
-- query UserFrame(stack_id INTEGER)
WITH RECURSIVE frame(id, depth) AS (SELECT :stack_id, 0 UNION ALL
  SELECT s.parent_id, f.depth + 1 FROM frame f JOIN stack_frame s ON s.id = f.id)
SELECT s.file, s.line AS line /*INTEGER*/, s.function, s.code
FROM frame f JOIN stack_frame s ON s.id = f.id ORDER BY f.depth;
