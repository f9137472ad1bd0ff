-- query FrameOfChunk(id INTEGER)
SELECT parent_id, line, file /*TEXT?*/, function /*TEXT?*/, code /*TEXT?*/ FROM stack_frame
WHERE id = :id;
