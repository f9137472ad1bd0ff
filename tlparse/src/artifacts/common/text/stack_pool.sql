-- query StoredFrame
SELECT id, parent_id /*INTEGER*/, file /*TEXT?*/, line, function, code FROM stack_frame;
