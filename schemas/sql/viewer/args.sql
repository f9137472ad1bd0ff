-- Arguments of the events whose record is :first … :last. Where args is missing, they stand in the event itself: taking them
-- out here would parse every event once more. A few events repeat all components of a cache key: their
-- beginning is enough. The size in bytes is asked first, as length() and substr() of a text walk through its characters.
-- Where two runs meet, both have the events of both.

-- table: event_args
SELECT e.record_id, coalesce(length(CAST(e.args AS BLOB)), p.size_bytes) AS length,
  0 AS "|",
  CASE WHEN length(CAST(e.args AS BLOB)) <= 8192 THEN e.args ELSE substr(e.args, 1, 1024) END AS args,
  CASE WHEN e.args IS NOT NULL THEN NULL WHEN p.size_bytes <= 8192 THEN p.content ELSE substr(p.content, 1, 1024) END AS payload
FROM chromium_event_row e
  CROSS JOIN record_row r ON r.id = e.record_id
  LEFT JOIN payload_row p ON p.id = r.payload_id
WHERE e.record_id BETWEEN :first AND :last
ORDER BY e.record_id;
