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
SELECT u.compile_id, u.graph_id, u.record_id, o.ordinal, e.estimated_ns,
  0 AS "|",
  o.name, o.type, CASE WHEN u.estimate_content_id IS NOT NULL THEN u.unit END AS assumed_unit, (
    SELECT group_concat(coalesce(t.dtype, '?') || ' ' || coalesce(t.shape, '?') || coalesce(' stride ' || t.stride, ''), ', ')
    FROM op_output_row t
    WHERE t.content_id = u.content_id
      AND t.op_ordinal = o.ordinal) AS outputs
FROM op_list_use_row u
  JOIN op_row o ON o.content_id = u.content_id
  LEFT JOIN op_estimate_row e ON e.content_id = u.estimate_content_id AND e.ordinal = o.ordinal
WHERE u.record_id BETWEEN :first_record AND :last_record
  AND u.compile_id BETWEEN :first AND :last
  AND o.ordinal < 2000
ORDER BY u.record_id, o.ordinal;

-- table: measured_op
SELECT compile_id, record_id, count, total_ns, min_ns, max_ns, estimated_ns, 0 AS "|", clock, name, node
FROM measured_op_row
WHERE record_id BETWEEN :first_record AND :last_record
  AND compile_id BETWEEN :first AND :last
  AND ordinal < 2000
ORDER BY record_id, ordinal;

-- table: gpu_activity
SELECT compile_id, min(record_id) AS record_id, device, count(*) AS count, total(duration_ns) AS total_ns,
  total(size_bytes) AS size_bytes, 0 AS "|", kind, name, op
FROM gpu_activity_row
WHERE record_id BETWEEN :first_record AND :last_record
  AND compile_id BETWEEN :first AND :last
GROUP BY compile_id, device, kind, name, op
ORDER BY compile_id, total_ns DESC, name, op;

-- table: model_load
SELECT compile_id, record_id, duration_ns, memory_before_bytes, memory_after_bytes, weight_size_bytes,
  device_peak_before_bytes, device_peak_after_bytes,
  0 AS "|",
  model, kind, state, cache_key
FROM model_load
WHERE record_id BETWEEN :first_record AND :last_record
  AND compile_id BETWEEN :first AND :last
ORDER BY record_id;

-- table: model_package
SELECT m.compile_id, m.record_id, m.size_bytes, m.weight_size_bytes, 0 AS "|", m.path, m.kind
FROM model_package m
WHERE m.record_id BETWEEN :first_record AND :last_record
  AND m.compile_id BETWEEN :first AND :last
ORDER BY m.record_id;

-- The first 500 parts of each kind.
-- table: package_part
SELECT m.record_id, p.ordinal, p.size_bytes, 0 AS "|", p.what, p.name, p.about
FROM model_package m
  JOIN package_part p ON p.record_id = m.record_id
WHERE m.record_id BETWEEN :first_record AND :last_record
  AND m.compile_id BETWEEN :first AND :last
  AND p.record_id BETWEEN :first_record AND :last_record
  AND p.ordinal < 500
ORDER BY m.record_id, p."order", p.ordinal;

-- table: run_digest
SELECT d.compile_id, d.record_id, d.call, 0 AS "|", d.graph, d.kind, d.name, d.value, d.hash
FROM run_digest d
WHERE d.record_id BETWEEN :first_record AND :last_record
  AND d.compile_id BETWEEN :first AND :last
ORDER BY d.record_id, d.ordinal
LIMIT 2000;

-- table: frame
