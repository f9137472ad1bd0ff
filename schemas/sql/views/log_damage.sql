-- Processes whose logs are damaged: what sets such a process apart from the others may be due to that. is_damaged: records were lost or changed,
-- or the log begins late: it names strings that it does not define, and is no child's, which has those of its parent;
-- is_cut: the last record is cut off or damaged, or the data end early; readable_bytes: the compressed file can be read up to this byte of the text.
-- The record of a row of import_log names its process; a stray record names one that it was not written by.
CREATE VIEW log_damage AS
  WITH damage AS MATERIALIZED (
    SELECT i.run_id, CASE WHEN i.code <> 'stray_record' THEN i.record_id END AS record_id, i.log_file_id,
      i.is_cut OR (i.code IN ('broken_header', 'binary_noise') AND i.line + i.line_count > f.line_count) AS is_cut,
      CASE WHEN i.code = 'damaged_input' THEN coalesce(i.byte_offset, 0) END AS end_offset
    FROM import_log i JOIN log_file f ON f.id = i.log_file_id WHERE i.is_damage
    UNION ALL SELECT i.run_id, i.record_id, i.log_file_id, 0, NULL
    FROM import_log i JOIN record_row r ON r.id = i.record_id JOIN process p ON p.id = r.process_id
    WHERE i.code = 'unresolved_string' AND p.child_kind IS NULL)
  SELECT run_id, process_id, max(is_cut = 0 OR end_offset IS NOT NULL) AS is_damaged, max(is_cut) AS is_cut, min(end_offset) AS readable_bytes
  FROM (
    SELECT d.run_id, r.process_id, d.is_cut, d.end_offset FROM damage d JOIN record_row r ON r.id = d.record_id
    UNION SELECT d.run_id, p.id, d.is_cut, d.end_offset FROM damage d JOIN process p ON p.log_file_id = d.log_file_id WHERE d.record_id IS NULL)
  GROUP BY run_id, process_id;
