-- Records of process :first that belong to no compile.

-- table: record
SELECT id, line, byte_offset, time_us, source_line, size_bytes, stack_id, user_stack_id,
  0 AS "|",
  "kind@text", "name@text", "subgraph_name@text", payload_hash, payload_state, "source_file@text", envelope, metadata
FROM shown_record
WHERE id BETWEEN :first_record AND :last_record
  AND process_id = :first
  AND compile_id IS NULL
  AND kind_id IS NOT 1 -- chromium_event
  AND kind_id IS NOT 2 -- str
ORDER BY id;
