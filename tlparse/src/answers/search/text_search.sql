-- All payloads, in the order in which they were first logged.
-- query SearchedPayload()
SELECT id, content /*TEXT*/
FROM payload_row
ORDER BY id;

-- query LineOfTorchLogs(run_id INTEGER, rank INTEGER?, pid INTEGER?)
SELECT p.path, l.line, a.text AS artifact, coalesce(c.text, '') AS label /*TEXT*/, l.text
FROM torch_log_line_row l
  JOIN profile p ON p.id = l.profile_id
  JOIN text_row a ON a.id = l.artifact_id
  LEFT JOIN text_row c ON c.id = l.label_id
  LEFT JOIN process q ON q.id = p.process_id
WHERE p.run_id = :run_id
  AND (:rank IS NULL OR coalesce(l.rank, p.rank, q.rank,
    (SELECT max(s.rank) FROM process s JOIN log_file g ON g.id = s.log_file_id WHERE g.run_id = :run_id AND s.pid = l.pid)) = :rank)
  AND (:pid IS NULL OR coalesce(nullif(l.pid, 0), p.pid, q.pid) = :pid)
ORDER BY l.id;

-- The records of a run that have a payload. Chromium events (kind 1) are no text.
-- query RecordWithPayload(payload_id INTEGER, run_id INTEGER, rank INTEGER?, pid INTEGER?)
SELECT r.id, c.id AS compile_id /*INTEGER?*/, c.label || iif(c.generation > 0, '#' || (c.generation + 1), '') AS label /*TEXT*/, p.rank /*INTEGER?*/, k.text AS kind, n.text AS name, g.direction,
  t.record_id IS NOT NULL AS is_graph /*BOOLEAN*/,
  o.record_id IS NOT NULL AS is_code /*BOOLEAN*/, u.record_id IS NOT NULL AS is_guards /*BOOLEAN*/
FROM record_row r
  JOIN process p ON p.id = r.process_id
  JOIN log_file f ON f.id = p.log_file_id
  LEFT JOIN compile c ON c.id = r.compile_id
  LEFT JOIN text_row k ON k.id = r.kind_id
  LEFT JOIN text_row n ON n.id = r.name_id
  LEFT JOIN graph_text_row t ON t.record_id = r.id
  LEFT JOIN output_code_row o ON o.record_id = r.id
  LEFT JOIN guard_use_row u ON u.record_id = r.id
  LEFT JOIN graph g ON g.id = coalesce(t.graph_id, o.graph_id)
WHERE r.payload_id = :payload_id
  AND f.run_id = :run_id
  AND (:rank IS NULL OR p.rank = :rank) AND (:pid IS NULL OR p.pid = :pid)
  AND r.kind_id IS NOT 1
ORDER BY r.id;
