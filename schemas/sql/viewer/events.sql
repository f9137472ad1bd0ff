-- Chromium events of process :first.

-- table: event
SELECT e.record_id, e.start_us - :origin AS start_us, e.duration_us, e.compile_id, 0 AS "|", e.name_id AS "name@text",
  char(e.phase) AS phase
FROM chromium_event_row e
  CROSS JOIN record_row r ON r.id = e.record_id
WHERE e.record_id BETWEEN :first_record AND :last_record
  AND r.process_id = :first
ORDER BY e.start_us, e.duration_us DESC;
