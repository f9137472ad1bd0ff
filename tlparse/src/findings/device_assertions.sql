-- The first assertion that failed in a kernel; of the rank first, if its lines name one.
-- query DeviceAssertion(run_id INTEGER, rank INTEGER?)
SELECT a.text FROM printed_abort a JOIN profile p ON p.id = a.profile_id
WHERE p.run_id = :run_id AND a.is_of_device AND (a.rank IS NULL OR :rank IS NULL OR a.rank = :rank)
ORDER BY a.rank IS NULL, p.id, a.id LIMIT 1;
