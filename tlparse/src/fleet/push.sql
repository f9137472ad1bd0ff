-- Frames with their callers, whose ids are smaller.
-- query CallerOfFrame
SELECT id, parent_id FROM stack_frame WHERE parent_id IS NOT NULL ORDER BY id DESC;
