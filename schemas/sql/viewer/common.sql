-- What the queries below schemas/sql/viewer/ may name: each begins with those that it names, and those
-- that these name. A part names only parts above it.

-- part: run_process
run_process(id) AS (
  SELECT p.id
  FROM process p
    JOIN log_file f ON f.id = p.log_file_id
  WHERE f.run_id = :run
)

-- part: run_compile
run_compile(id) AS (
  SELECT id
  FROM compile
  WHERE process_id IN run_process
)

-- part: shown_record
-- As the view `record`, but with ids of texts, which a chunk looks up once, and without a second look at the row.
shown_record AS (
  SELECT r.id, r.process_id, r.compile_id, r.line, r.byte_offset, r.local_us + q.time_shift_us - :origin AS time_us,
    r.attempt, r.source_line, p.size_bytes, r.stack_id, r.user_stack_id, r.kind_id,
    r.kind_id AS "kind@text", r.name_id AS "name@text", r.subgraph_id AS "subgraph_name@text", p.hash AS payload_hash,
    (SELECT name FROM payload_state WHERE id = r.payload_state) AS payload_state,
    r.source_file_id AS "source_file@text", CASE WHEN r.metadata IS NULL THEN r.envelope END AS envelope, r.metadata
  FROM record_row r
    CROSS JOIN process q ON q.id = r.process_id
    LEFT JOIN payload_row p ON p.id = r.payload_id
)

-- part: package_part
-- What packages hold: models, their kernels, ops that the code calls, weights, files.
package_part AS (
  SELECT record_id, ordinal, 0 AS "order", NULL AS size_bytes, 'code of a model' AS what, model AS name,
    CASE WHEN is_cpp_only THEN 'C++ sources only' ELSE linkage END || coalesce(', ' || machine, '') ||
      coalesce(', needs ' || (SELECT group_concat(value, ' ') FROM json_each(libraries)), '') AS about
  FROM package_code
  UNION ALL
  SELECT record_id, ordinal, 1, NULL, 'kernel', name, (SELECT group_concat(value, ' ') FROM json_each(post_grad_nodes))
  FROM package_kernel
  UNION ALL
  SELECT record_id, ordinal, 2, NULL, 'op that the code calls', name, op || ', index ' || kernel_index
  FROM package_extern_kernel
  UNION ALL
  SELECT record_id, ordinal, 3, size_bytes, 'weight', name, coalesce(dtype, '?') || ' ' || coalesce(shape, '?') || coalesce(' on ' || device, '') || coalesce(', storage ' || storage_id, '')
  FROM model_weight
  UNION ALL
  SELECT record_id, ordinal, 4, size_bytes, 'file', name, NULL
  FROM package_file
)

-- part: content_graph
-- Of the graphs that share the kernels of one content of :first … :last, the first.
content_graph(id) AS (
  SELECT min(id)
  FROM graph
  WHERE provenance_content_id IS NOT NULL
    AND provenance_content_id BETWEEN :first AND :last
  GROUP BY provenance_content_id
)
