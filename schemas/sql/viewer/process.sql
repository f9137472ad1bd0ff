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

-- table: measured_op
SELECT o.record_id, o.count, o.total_ns, o.min_ns, o.max_ns, o.estimated_ns, 0 AS "|", o.clock, o.name, o.node
FROM measured_op_row o
  JOIN record_row r ON r.id = o.record_id
WHERE o.record_id BETWEEN :first_record AND :last_record
  AND r.process_id = :first
  AND o.compile_id IS NULL
  AND o.ordinal < 2000
ORDER BY o.record_id, o.ordinal;

-- table: gpu_activity
SELECT min(a.record_id) AS record_id, a.device, count(*) AS count, total(a.duration_ns) AS total_ns,
  total(a.size_bytes) AS size_bytes, 0 AS "|", a.kind, a.name, a.op
FROM gpu_activity_row a
  JOIN record_row r ON r.id = a.record_id
WHERE a.record_id BETWEEN :first_record AND :last_record
  AND r.process_id = :first
  AND a.compile_id IS NULL
GROUP BY a.device, a.kind, a.name, a.op
ORDER BY total_ns DESC, a.name, a.op
LIMIT 2000;

-- table: model_load
SELECT m.record_id, m.duration_ns, m.memory_before_bytes, m.memory_after_bytes, m.weight_size_bytes,
  m.device_peak_before_bytes, m.device_peak_after_bytes,
  0 AS "|",
  m.model, m.kind, m.state, m.cache_key
FROM model_load m
  JOIN record_row r ON r.id = m.record_id
WHERE m.record_id BETWEEN :first_record AND :last_record
  AND r.process_id = :first
  AND m.compile_id IS NULL
ORDER BY m.record_id;

-- table: model_package
SELECT m.record_id, m.size_bytes, m.weight_size_bytes, 0 AS "|", m.path, m.kind
FROM model_package m
  JOIN record_row r ON r.id = m.record_id
WHERE m.record_id BETWEEN :first_record AND :last_record
  AND r.process_id = :first
  AND m.compile_id IS NULL
ORDER BY m.record_id;

-- The first 500 parts of each kind.
-- table: package_part
SELECT m.record_id, p.ordinal, p.size_bytes, 0 AS "|", p.what, p.name, p.about
FROM model_package m
  JOIN record_row r ON r.id = m.record_id
  JOIN package_part p ON p.record_id = m.record_id
WHERE m.record_id BETWEEN :first_record AND :last_record
  AND r.process_id = :first
  AND m.compile_id IS NULL
  AND p.record_id BETWEEN :first_record AND :last_record
  AND p.ordinal < 500
ORDER BY m.record_id, p."order", p.ordinal;

-- table: run_digest
SELECT d.record_id, d.call, 0 AS "|", d.graph, d.kind, d.name, d.value, d.hash
FROM run_digest d
  JOIN record_row r ON r.id = d.record_id
WHERE d.record_id BETWEEN :first_record AND :last_record
  AND r.process_id = :first
  AND d.compile_id IS NULL
ORDER BY d.record_id, d.ordinal
LIMIT 2000;

-- table: issued_collective
SELECT i.record_id, i.sequence_number, i.group_size, i.start_us - :origin AS start_us, i.duration_ns, 0 AS "|", i.label, i.op,
  i.group_name, i.input_shapes, i.dtype, i.reduce_op, substr(i.error, 1, 2000) AS error
FROM issued_collective i
WHERE i.record_id BETWEEN :first_record AND :last_record
  AND i.process_id = :first
ORDER BY i.record_id, i.ordinal
LIMIT 2000;
