-- Rows :first … :last of the import log.

-- table: import_log
SELECT id, log_file_id, profile_id, record_id, line, byte_offset, line_count,
  0 AS "|",
  severity, code, coalesce(path || ': ', '') || message AS message, advice, CAST(substr(text, 1, 4096) AS TEXT) AS text
FROM import_log
WHERE run_id = :run
  AND id BETWEEN :first AND :last
ORDER BY id;
