-- query RecorderEntryToJoin(profile_id INTEGER)
SELECT c.id, n.text AS name, c.group_id /*INTEGER*/, g.text AS group_name, c.sequence_number,
  c.is_p2p, c.start_ns /*INTEGER*/, e.recorder_id, e.stack_id /*INTEGER*/, c.input_shapes
FROM collective_run_row c JOIN recorder_entry_row e ON e.id = c.entry_id
  LEFT JOIN text_row n ON n.id = c.op_id LEFT JOIN text_row g ON g.id = c.group_id
WHERE c.profile_id = :profile_id ORDER BY e.id;

-- query FrameOfStack(stack_id INTEGER)
WITH RECURSIVE chain(id, parent_id, file, line, depth) AS (SELECT id, parent_id, file, line, 0
  FROM stack_frame WHERE id = :stack_id UNION ALL
  SELECT f.id, f.parent_id, f.file, f.line, depth + 1 FROM chain c
  JOIN stack_frame f ON f.id = c.parent_id WHERE depth < 1024)
SELECT file, line /*INTEGER*/ FROM chain ORDER BY depth;

-- query RecorderDump(run_id INTEGER)
SELECT id, process_id, rank
FROM profile WHERE run_id = :run_id AND kind = 'flight_recorder'
ORDER BY end_us DESC, (SELECT count(*) FROM recorder_entry_row e WHERE e.profile_id = profile.id
  AND e.is_retired = 1) DESC, metadata ->> '$.form' = 'pickle' DESC, id;
