-- The ranks that have profiles.
-- query RankWithProfile(run_id INTEGER)
SELECT DISTINCT rank /*INTEGER*/ FROM profile
WHERE run_id = :run_id AND kind = 'kineto' AND overlaps_id IS NULL AND rank IS NOT NULL;

-- The groups of each rank that its profile names.
-- query GroupOfProfiledRank(run_id INTEGER)
SELECT DISTINCT p.rank /*INTEGER*/, j.value ->> '$.ranks' AS ranks /*TEXT*/
FROM profile p, json_each(p.metadata, '$.distributedInfo.pg_config') j
WHERE p.run_id = :run_id AND p.kind = 'kineto' AND p.overlaps_id IS NULL AND p.rank IS NOT NULL
  AND json_type(j.value) = 'object' AND json_type(j.value, '$.ranks') = 'array';

-- Sends and receives in profiles. By file, thread and time.
-- query ProfiledMessageRow(run_id INTEGER)
SELECT p.id AS profile_id, coalesce(c.thread_id, 0) AS thread_id /*INTEGER*/, p.rank /*INTEGER*/,
  t.text LIKE '%send%' AS is_send /*BOOLEAN*/, c.peer_rank /*INTEGER?*/, c.peer_of_group /*INTEGER?*/,
  coalesce(c.start_ns, 0) AS start_ns /*INTEGER*/, coalesce(c.end_ns, 0) AS end_ns /*INTEGER*/,
  c.end_ns - c.device_start_ns AS device_ns /*INTEGER?*/
FROM profile p JOIN collective_run_row c ON c.profile_id = p.id JOIN text_row t ON t.id = c.op_id
WHERE p.run_id = :run_id AND p.kind = 'kineto' AND p.overlaps_id IS NULL AND p.rank IS NOT NULL AND c.is_p2p = 1
ORDER BY 1, 2, c.start_ns, c.id;

-- How long Gloo's last, annotations of its own tell: they begin inside of the call that returns. In the same order.
-- query GlooMessage(run_id INTEGER)
SELECT p.id AS profile_id, coalesce(a.thread_id, 0) AS thread_id /*INTEGER*/, p.rank /*INTEGER*/,
  t.text = 'gloo:send' AS is_send /*BOOLEAN*/, a.start_ns, a.duration_ns
FROM profile p JOIN annotation_row a ON a.profile_id = p.id JOIN text_row t ON t.id = a.name_id
WHERE p.run_id = :run_id AND p.kind = 'kineto' AND p.overlaps_id IS NULL AND p.rank IS NOT NULL
  AND a.device IS NULL AND t.text IN ('gloo:send', 'gloo:recv')
ORDER BY 1, 2, a.start_ns, a.id;
