-- As the view log_damage, which databases of earlier versions lack. The few rows that report damage
-- come first: a log may hold thousands of processes and rows.
-- query DamageOfProcess(run_id INTEGER)
WITH damage AS MATERIALIZED (
  SELECT CASE WHEN i.code <> 'stray_record' THEN i.record_id END AS record_id, i.log_file_id,
    i.code IN ('payload_truncated', 'damaged_input')
      OR (i.code IN ('broken_header', 'binary_noise') AND i.line + i.line_count > f.line_count) AS is_cut,
    CASE WHEN i.code = 'damaged_input' THEN coalesce(i.byte_offset, 0) END AS end_offset
  FROM import_log i JOIN log_file f ON f.id = i.log_file_id
  WHERE i.run_id = :run_id AND i.code IN ('broken_header', 'payload_mismatch', 'payload_missing',
    'payload_truncated', 'payload_without_record', 'unhashed_payload', 'bad_payload_hash',
    'damaged_input', 'line_too_long', 'damaged_header', 'stray_record', 'missing_metrics', 'binary_noise'))
SELECT r.process_id /*INTEGER*/, d.is_cut /*BOOLEAN*/, d.end_offset /*INTEGER?*/
FROM damage d JOIN record_row r ON r.id = d.record_id
UNION SELECT p.id, d.is_cut, d.end_offset
FROM damage d JOIN process p ON p.log_file_id = d.log_file_id WHERE d.record_id IS NULL;
