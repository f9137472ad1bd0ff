-- Cache hits of a launch, and of them those on entries that earlier launches had filled.
-- query HitsOnEarlier(run_id INTEGER, launch INTEGER, hit cache_state)
WITH lookup AS (SELECT n.ordinal, e.state, e.key_id
  FROM cache_event_row e JOIN record_row r ON r.id = e.record_id
    JOIN process p ON p.id = r.process_id JOIN launch n ON n.id = p.launch_id
  WHERE n.run_id = :run_id AND e.key_id IS NOT NULL)
SELECT count(*) AS hits /*INTEGER*/, count(DISTINCT key_id) AS entries /*INTEGER*/,
  (SELECT count(*) FROM lookup WHERE ordinal = :launch AND state = :hit) AS all_hits /*INTEGER*/
FROM lookup
WHERE ordinal = :launch AND state = :hit AND key_id IN (SELECT key_id
  FROM lookup JOIN cache_state s ON s.id = state WHERE ordinal < :launch AND s.is_miss);
