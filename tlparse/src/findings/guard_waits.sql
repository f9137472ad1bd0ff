-- query OpenGuardCollective(name TEXT, in_logs SQL)
SELECT e.record_id, r.process_id, e.start_us
FROM chromium_event_row e JOIN record_row r ON r.id = e.record_id
WHERE e.phase = 66 AND e.name_id = (SELECT id FROM text_row WHERE text = :name) AND {in_logs}
ORDER BY e.record_id;
