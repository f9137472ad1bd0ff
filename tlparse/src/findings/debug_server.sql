-- The last ones, the latest first, as far as their order is known.
-- query DebugServerDump(run_id INTEGER)
SELECT d.id, coalesce(d.taken_at, '') AS taken_at /*TEXT*/
FROM debug_server_dump d JOIN profile p ON p.id = d.profile_id
WHERE p.run_id = :run_id ORDER BY coalesce(d.taken_at, '') DESC, p.path DESC LIMIT 1000;

-- query DebugServerRank(dump_id INTEGER)
SELECT id, rank, coalesce(error, '') AS error /*TEXT*/, coalesce(stopped_at, '') AS stopped_at /*TEXT*/, is_in_collective /*BOOLEAN*/
FROM debug_server_rank WHERE dump_id = :dump_id ORDER BY rank, id;
