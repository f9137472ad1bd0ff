-- Cache hits of a launch, and of them those on entries that earlier launches had filled. What a rank
-- hit before anyone missed it was there already.
-- query HitsOnEarlier(run_id INTEGER, launch INTEGER, hit cache_state)
WITH lookup AS (SELECT n.ordinal, e.state, s.is_miss, e.key_id, p.rank,
    r.local_us + p.time_shift_us AS time_us
  FROM cache_event_row e JOIN record_row r ON r.id = e.record_id JOIN cache_state s ON s.id = e.state
    JOIN process p ON p.id = r.process_id JOIN launch n ON n.id = p.launch_id
  WHERE n.run_id = :run_id AND e.key_id IS NOT NULL),
missed AS (SELECT key_id, min(time_us) AS time_us FROM lookup WHERE ordinal < :launch AND is_miss
  GROUP BY key_id),
earlier AS (SELECT key_id, rank, min(time_us) AS time_us FROM lookup
  WHERE ordinal < :launch AND state = :hit GROUP BY key_id, rank)
SELECT count(*) AS hits /*INTEGER*/, count(DISTINCT l.key_id) AS entries /*INTEGER*/,
  (SELECT count(*) FROM lookup WHERE ordinal = :launch AND state = :hit) AS all_hits /*INTEGER*/
FROM lookup l JOIN missed m ON m.key_id = l.key_id
  LEFT JOIN earlier h ON h.key_id = l.key_id AND h.rank = l.rank
WHERE l.ordinal = :launch AND l.state = :hit AND (h.time_us < m.time_us) IS NOT 1;
