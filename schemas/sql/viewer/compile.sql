-- Records, texts of graphs, metrics, … of compiles :first … :last.

-- table: record
SELECT r.id, r.compile_id, r.line, r.byte_offset, r.time_us - :origin AS time_us, r.attempt, r.source_line, p.size_bytes,
  r.stack_id, r.user_stack_id,
  0 AS "|",
  w.kind_id AS "kind@text", w.name_id AS "name@text", w.subgraph_id AS "subgraph_name@text", r.payload_hash,
  r.payload_state, w.source_file_id AS "source_file@text",
  CASE WHEN w.metadata IS NULL THEN r.envelope END AS envelope, w.metadata
FROM record_row w
  CROSS JOIN record r ON r.id = w.id
  LEFT JOIN payload_row p ON p.id = w.payload_id
WHERE w.id BETWEEN :first_record AND :last_record
  AND w.compile_id BETWEEN :first AND :last
  AND w.kind_id IS NOT 1 -- chromium_event
ORDER BY w.id;

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
FROM guard_use
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
SELECT s.id, s.parent_id, s.line, 0 AS "|", s.file, s.function, s.code
FROM used_frame u
  JOIN stack_frame s ON s.id = u.id
ORDER BY s.id;
