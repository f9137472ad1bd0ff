-- Chromium events of process :first.

-- table: event
SELECT record_id, start_us - :origin AS start_us, duration_us, compile_id, 0 AS "|", name, phase
FROM chromium_event
WHERE record_id BETWEEN :first_record AND :last_record
  AND process_id = :first
ORDER BY start_us, duration_us DESC;
