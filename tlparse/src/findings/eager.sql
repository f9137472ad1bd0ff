-- Of a call of a recorder dump: the frames of its stack, and those that belong to compiled graphs.
-- query FramesOfCall(run_row_id INTEGER)
WITH RECURSIVE frame(id) AS (
  SELECT e.stack_id FROM collective_run c JOIN recorder_entry_row e ON e.id = c.entry_id WHERE c.id = :run_row_id
  UNION ALL SELECT s.parent_id FROM frame f JOIN stack_frame s ON s.id = f.id)
SELECT count(*) AS frames /*INTEGER*/,
  coalesce(sum(s.file LIKE '%/torch/_inductor/%' OR s.file LIKE '%/torch/_functorch/_aot_autograd/%'), 0)
    AS of_graphs /*INTEGER*/
FROM frame f JOIN stack_frame s ON s.id = f.id;
