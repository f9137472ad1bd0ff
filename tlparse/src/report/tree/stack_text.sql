-- query FrameOfTree(id INTEGER)
SELECT parent_id, file, line, function, code FROM stack_frame WHERE id = :id;
