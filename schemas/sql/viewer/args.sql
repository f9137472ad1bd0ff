-- Arguments of the events whose record is :first … :last. Where args is missing, they stand in the event itself: taking them
-- out here would parse every event once more. A few events repeat all components of a cache key: their beginning is enough.

-- table: event_args
SELECT e.record_id, CASE WHEN e.args IS NULL THEN p.size_bytes ELSE length(e.args) END AS length,
  0 AS "|",
  substr(e.args, 1, 8192) AS args, CASE WHEN e.args IS NULL THEN substr(p.content, 1, 8192) END AS payload
FROM chromium_event_row e
  JOIN record_row r ON r.id = e.record_id
  LEFT JOIN payload_row p ON p.id = r.payload_id
WHERE e.record_id BETWEEN :first AND :last
  AND r.process_id IN run_process
ORDER BY e.record_id;
