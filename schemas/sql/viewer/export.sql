-- What export and draft export recorded. The page takes the members out of the envelopes: here each would be parsed several times.

-- table: export_record
SELECT w.id, w.process_id, w.user_stack_id, 0 AS "|", w.kind_id AS "kind@text", CASE WHEN w.metadata IS NULL THEN w.envelope END AS envelope, w.metadata
FROM record_row w
WHERE w.kind_id IN (
    SELECT id FROM text_row WHERE text IN (
      'guard_added', 'guard_added_fast', 'propagate_real_tensors', 'propagate_real_tensors_provenance',
      'guard_on_data_dependent_error', 'missing_fake_kernel', 'mismatched_fake_kernel', 'create_symbol',
      'create_unbacked_symbol', 'expression_created'))
  AND w.process_id IN run_process
ORDER BY w.id;

-- table: exported_program
SELECT r.id AS record_id, r.process_id, p.size_bytes, 0 AS "|", r.payload_hash
FROM graph_text_row t
  CROSS JOIN record r ON r.id = t.record_id
  LEFT JOIN payload_row p ON p.id = r.payload_id
WHERE t.stage_id IN (SELECT id FROM text_row WHERE text = 'exported_program')
  AND r.process_id IN run_process
ORDER BY r.id;

-- table: frame
