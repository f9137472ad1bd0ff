-- Hits and lookups of each process.
-- query LookupsOfProcess
SELECT c.process_id, sum(s.is_hit) AS hits /*INTEGER*/, count(*) AS lookups /*INTEGER*/
FROM cache_event_row e JOIN compile c ON c.id = e.compile_id JOIN cache_state s ON s.id = e.state
WHERE s.is_hit OR s.is_miss GROUP BY c.process_id;

-- query AnyProcess
SELECT id FROM process LIMIT 1;

-- query UuidOfRun(run_id INTEGER)
SELECT uuid FROM run WHERE id = :run_id;
