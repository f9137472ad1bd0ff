-- Records of process :first that belong to no compile.

-- table: record
SELECT r.id, r.line, r.byte_offset, r.time_us - :origin AS time_us, r.source_line, p.size_bytes, r.stack_id, r.user_stack_id,
  0 AS "|",
  w.kind_id AS "kind@text", w.name_id AS "name@text", w.subgraph_id AS "subgraph_name@text", r.payload_hash,
  r.payload_state, w.source_file_id AS "source_file@text",
  CASE WHEN w.metadata IS NULL THEN r.envelope END AS envelope, w.metadata
FROM record_row w
  CROSS JOIN record r ON r.id = w.id
  LEFT JOIN payload_row p ON p.id = w.payload_id
WHERE w.id BETWEEN :first_record AND :last_record
  AND w.process_id = :first
  AND w.compile_id IS NULL
  AND w.kind_id IS NOT 1 -- chromium_event
  AND w.kind_id IS NOT 2 -- str
ORDER BY w.id;
