-- Chromium events of process :first, in the order of the log.

-- table: event
SELECT e.record_id, e.start_us - :origin AS start_us, e.duration_us, e.compile_id, e.phase, 0 AS "|", e.name_id AS "name@text"
FROM chromium_event_row e
WHERE e.record_id BETWEEN :first_record AND :last_record
  AND (NOT :is_mixed OR (SELECT process_id FROM record_row WHERE id = e.record_id) = :first)
ORDER BY e.record_id;
