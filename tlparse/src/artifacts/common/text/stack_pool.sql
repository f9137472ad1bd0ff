-- Frames that were added after those that are known.
-- query StoredFrame(from_id INTEGER)
SELECT id, parent_id /*INTEGER*/, file /*TEXT?*/, line, function, code FROM stack_frame WHERE id >= :from_id;
