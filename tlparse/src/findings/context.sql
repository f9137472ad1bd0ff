-- The frames of a compile's stack, the innermost first.
-- query FrameOfCompile(compile_id INTEGER)
WITH RECURSIVE frame(id, depth) AS (SELECT stack_id, 0 FROM compile WHERE id = :compile_id
  UNION ALL SELECT s.parent_id, f.depth + 1 FROM frame f JOIN stack_frame s ON s.id = f.id)
SELECT s.file /*TEXT?*/, s.line /*INTEGER?*/, s.code /*TEXT*/
FROM frame f JOIN stack_frame s ON s.id = f.id ORDER BY f.depth;
