-- What every query below schemas/sql/viewer/ begins with.
WITH
  run_process(id) AS (
    SELECT p.id
    FROM process p
      JOIN log_file f ON f.id = p.log_file_id
    WHERE f.run_id = :run
  ),
  run_compile(id) AS (
    SELECT id
    FROM compile
    WHERE process_id IN run_process
  ),
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
