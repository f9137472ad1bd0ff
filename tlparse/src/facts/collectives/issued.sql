-- The calls that a rank issued, with the recorder's entry and the graph of each. Sends and receives
-- of other files than dumps, and calls without a group, number or time are left out
-- (IssuedNotCompared).
-- query IssuedCollectiveRow(run_id INTEGER, launch INTEGER?)
SELECT c.rank /*INTEGER?*/, c.process_id /*INTEGER?*/, coalesce(p.path, 'libtrace') AS path /*TEXT*/,
  c.group_name /*TEXT*/, e.group_desc, c.sequence_number /*INTEGER*/, c.op /*TEXT*/,
  c.input_shapes /*TEXT*/, c.dtype /*TEXT*/, c.reduce_op /*TEXT*/,
  (SELECT o.state FROM collective_run_row o WHERE o.id = c.id) AS state /*TEXT*/, e.is_retired,
  c.start_ns /*INTEGER*/, c.device_start_ns /*INTEGER?*/, c.end_ns /*INTEGER?*/, e.timeout_ms /*INTEGER*/, c.graph_id /*INTEGER*/,
  k.label, k.function, c.file /*TEXT*/, c.line /*INTEGER*/,
  c.code_line /*INTEGER*/, e.thread_id, c.join_key /*TEXT*/, c.id /*INTEGER*/,
  p.kind, e.time_discovered_started_ns, c.profile_id /*INTEGER*/, c.is_p2p = 1 AS is_p2p /*BOOLEAN*/, e.stack_id /*INTEGER*/
FROM collective_run c LEFT JOIN profile p ON p.id = c.profile_id
  LEFT JOIN recorder_entry e ON e.id = c.entry_id LEFT JOIN graph g ON g.id = c.graph_id
  LEFT JOIN compile k ON k.id = g.compile_id LEFT JOIN process q ON q.id = c.process_id
  LEFT JOIN log_file f ON f.id = q.log_file_id LEFT JOIN launch n ON n.id = q.launch_id
WHERE c.peer_id IS NULL AND (c.is_p2p = 0 OR p.kind = 'flight_recorder') AND c.group_name IS NOT NULL
  AND c.sequence_number IS NOT NULL AND c.start_ns IS NOT NULL
  AND coalesce(p.run_id, f.run_id) = :run_id
  AND (:launch IS NULL OR n.ordinal IS NULL OR n.ordinal = :launch)
ORDER BY c.rank IS NULL, c.rank, path, c.start_ns, e.recorder_id, c.id;

-- The dumps of ranks that record when collectives start.
-- query DumpWithStarts(run_id INTEGER)
SELECT DISTINCT e.profile_id
FROM recorder_entry_row e JOIN profile p ON p.id = e.profile_id
WHERE p.run_id = :run_id AND (e.state = 'started' OR e.time_discovered_started_ns IS NOT NULL);

-- How many calls are not compared, by the kind of file and the reason.
-- query IssuedNotCompared(run_id INTEGER, launch INTEGER?, has_dump BOOLEAN)
SELECT p.kind,
  CASE WHEN c.state = 'error' AND c.sequence_number IS NULL THEN 'the backend refused them'
    WHEN c.is_p2p = 1 AND p.kind <> 'flight_recorder' THEN 'they are sends or receives'
    WHEN c.group_name IS NULL AND c.sequence_number IS NULL
      THEN 'they have neither a group nor a sequence number'
    WHEN c.group_name IS NULL THEN 'they have no group'
    WHEN c.sequence_number IS NULL THEN 'they have no sequence number'
    WHEN c.start_ns IS NULL THEN 'they have no time'
    WHEN :has_dump AND p.kind <> 'flight_recorder'
      THEN 'where there are recorder dumps, these alone are compared'
  END AS reason /*TEXT*/,
  count(*) AS calls /*INTEGER*/
FROM collective_run c JOIN profile p ON p.id = c.profile_id
  LEFT JOIN process q ON q.id = c.process_id LEFT JOIN launch n ON n.id = q.launch_id
WHERE c.peer_id IS NULL AND p.run_id = :run_id
  AND (:launch IS NULL OR n.ordinal IS NULL OR n.ordinal = :launch)
GROUP BY p.kind, reason HAVING reason IS NOT NULL ORDER BY p.kind, min(c.start_ns);

-- The dumps, with the number of the first entry that each still holds.
-- query DumpFile(run_id INTEGER)
SELECT p.rank, p.path, p.end_us /*INTEGER*/, e.first_entry /*INTEGER*/
FROM profile p LEFT JOIN (SELECT profile_id, min(recorder_id) AS first_entry
  FROM recorder_entry_row GROUP BY profile_id) e ON e.profile_id = p.id
WHERE p.run_id = :run_id AND p.kind = 'flight_recorder';

-- The collectives of the generated code of a graph, in its order.
-- query CodeCollective(graph_id INTEGER)
SELECT op, group_name, code_line /*INTEGER*/ FROM collective
WHERE graph_id = :graph_id AND source = 'code' AND is_wait = 0 ORDER BY record_id, ordinal;

-- The stack of a call, from the frame that made it outwards.
-- query FrameOfCall(stack_id INTEGER)
WITH RECURSIVE chain(id, parent_id, file, line, depth) AS (SELECT id, parent_id, file, line, 0
  FROM stack_frame WHERE id = :stack_id UNION ALL
  SELECT f.id, f.parent_id, f.file, f.line, depth + 1 FROM chain c
  JOIN stack_frame f ON f.id = c.parent_id WHERE depth < 1024)
SELECT file /*TEXT*/, line /*INTEGER*/ FROM chain WHERE file IS NOT NULL ORDER BY depth;
