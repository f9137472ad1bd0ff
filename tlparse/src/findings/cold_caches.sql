-- The keys of these lookups, and how many of them an earlier launch had missed.
-- query MissedBefore(run_id INTEGER, launch INTEGER, ids INTEGER[])
WITH own AS (SELECT DISTINCT key_id FROM cache_event_row
  WHERE id IN (SELECT value FROM json_each(:ids)) AND key_id IS NOT NULL)
SELECT count(*) AS keys /*INTEGER*/, count(b.key_id) AS missed_before /*INTEGER*/
FROM own LEFT JOIN (SELECT DISTINCT e.key_id FROM cache_event_row e
  JOIN cache_state s ON s.id = e.state JOIN record_row r ON r.id = e.record_id
  JOIN process p ON p.id = r.process_id JOIN launch n ON n.id = p.launch_id
  WHERE n.run_id = :run_id AND n.ordinal < :launch AND s.is_miss AND e.key_id IN (SELECT key_id FROM own)) b
  ON b.key_id = own.key_id;
