-- Lookups that a hit rate counts.
-- query CountedLookup(in_logs SQL)
SELECT e.compile_id, s.is_hit FROM cache_event_row e JOIN cache_state s ON s.id = e.state
WHERE (s.is_hit OR s.is_miss) AND {in_logs};
