-- query StackOfCompile(compile_id INTEGER)
SELECT stack_id FROM compile WHERE id = :compile_id;

-- The frames of a stack, innermost first.
-- query UserFrame(stack_id INTEGER)
WITH RECURSIVE frame(id, depth) AS (SELECT :stack_id, 0 UNION ALL
  SELECT s.parent_id, f.depth + 1 FROM frame f JOIN stack_frame s ON s.id = f.id)
SELECT s.file, s.line AS line /*INTEGER*/, s.function, s.code
FROM frame f JOIN stack_frame s ON s.id = f.id ORDER BY f.depth;
