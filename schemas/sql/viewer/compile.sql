-- Records, texts of graphs, metrics, … of compiles :first … :last.

-- table: record
SELECT id, compile_id, line, byte_offset, time_us, attempt, source_line, size_bytes, stack_id, user_stack_id,
  0 AS "|",
  "kind@text", "name@text", "subgraph_name@text", payload_hash, payload_state, "source_file@text", envelope, metadata
FROM shown_record
WHERE id BETWEEN :first_record AND :last_record
  AND compile_id BETWEEN :first AND :last
  AND kind_id IS NOT 1 -- chromium_event
ORDER BY id;

-- table: attempt
SELECT compile_id, attempt, 0 AS "|", restart_reason
FROM attempt
WHERE compile_id BETWEEN :first AND :last
ORDER BY compile_id, attempt;

-- table: graph_text
SELECT compile_id, graph_id, record_id, content_id, 0 AS "|", stage
FROM graph_text
WHERE record_id BETWEEN :first_record AND :last_record
  AND compile_id BETWEEN :first AND :last
ORDER BY record_id;

-- table: output_code
SELECT compile_id, graph_id, record_id, content_id, 0 AS "|", path
FROM output_code
WHERE record_id BETWEEN :first_record AND :last_record
  AND compile_id BETWEEN :first AND :last
ORDER BY record_id;

-- table: metric
SELECT compile_id, record_id, 0 AS "|", kind
FROM compilation_metric
WHERE record_id BETWEEN :first_record AND :last_record
  AND compile_id BETWEEN :first AND :last
ORDER BY record_id;

-- table: guard_tree
SELECT compile_id, record_id, content_id, 0 AS "|"
FROM guard_use_row
WHERE record_id BETWEEN :first_record AND :last_record
  AND compile_id BETWEEN :first AND :last
ORDER BY record_id;

-- table: triton_kernel
SELECT compile_id, graph_id, record_id, num_configs, compile_time_us, 0 AS "|", name, autotune_cache_state, config
FROM triton_kernel
WHERE record_id BETWEEN :first_record AND :last_record
  AND compile_id BETWEEN :first AND :last
ORDER BY record_id, name;

-- table: op
SELECT compile_id, graph_id, record_id, ordinal, estimated_ns, 0 AS "|", name, type, assumed_unit
FROM op_runtime
WHERE record_id BETWEEN :first_record AND :last_record
  AND compile_id BETWEEN :first AND :last
ORDER BY record_id, ordinal;

-- table: frame
