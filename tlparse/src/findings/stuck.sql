-- The longest complete event of a phase in a process.
-- query LongestEvent(process_id INTEGER, phase TEXT)
SELECT max(e.duration_us) AS duration_us /*REAL?*/
FROM process p
  JOIN chromium_event_row e ON e.record_id BETWEEN p.first_record_id AND p.last_record_id
  JOIN text_row t ON t.id = e.name_id
WHERE p.id = :process_id AND e.phase = unicode('X') AND t.text = :phase;
