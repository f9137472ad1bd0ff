-- Records of process :first that belong to no compile.

-- table: record
SELECT r.id, r.line, r.byte_offset, r.time_us - :origin AS time_us, r.source_line, p.size_bytes, r.stack_id, r.user_stack_id,
  0 AS "|",
  r.kind, r.name, r.subgraph_name, r.payload_hash, r.payload_state, r.source_file,
  CASE WHEN w.metadata IS NULL THEN r.envelope END AS envelope, w.metadata
FROM record r
  JOIN record_row w ON w.id = r.id
  LEFT JOIN payload_row p ON p.id = r.payload_id
WHERE r.id BETWEEN :first_record AND :last_record
  AND r.process_id = :first
  AND r.compile_id IS NULL
  AND r.kind IS NOT 'chromium_event'
  AND r.kind IS NOT 'str'
ORDER BY r.id;
