-- The profiles of ranks.
-- query ProfileOfRank(run_id INTEGER)
SELECT rank /*INTEGER*/, host, start_us /*INTEGER*/, end_us /*INTEGER*/ FROM profile
WHERE run_id = :run_id AND kind = 'kineto' AND rank IS NOT NULL AND start_us IS NOT NULL AND end_us IS NOT NULL;

-- The calls that last until other ranks come to theirs: a send of Gloo until its data are received, a kernel of NCCL. A
-- barrier is there to wait in.
-- query BlockingCall(run_id INTEGER)
SELECT p.rank /*INTEGER*/, a.start_ns /*INTEGER*/, a.start_ns + a.duration_ns AS end_ns /*INTEGER*/,
  CASE t.text WHEN 'gloo:send' THEN 'sends' WHEN 'gloo:recv' THEN 'receives' ELSE 'collectives' END AS kind /*TEXT*/,
  0 AS is_of_device /*BOOLEAN*/
FROM annotation_row a JOIN profile p ON p.id = a.profile_id JOIN text_row t ON t.id = a.name_id
WHERE p.run_id = :run_id AND p.kind = 'kineto' AND p.rank IS NOT NULL AND a.device IS NULL
  AND t.text LIKE 'gloo:%' AND t.text <> 'gloo:barrier'
UNION ALL SELECT p.rank, c.device_start_ns, c.end_ns,
  CASE WHEN t.text LIKE '%send%' THEN 'sends' WHEN c.is_p2p = 1 THEN 'receives' ELSE 'collectives' END, 1
FROM collective_run_row c JOIN profile p ON p.id = c.profile_id JOIN text_row t ON t.id = c.op_id
WHERE p.run_id = :run_id AND p.kind = 'kineto' AND p.rank IS NOT NULL AND c.device_start_ns IS NOT NULL
  AND c.end_ns IS NOT NULL AND t.text NOT LIKE '%barrier%';

-- How many steps of a rank began in a time.
-- query StepsInTime(run_id INTEGER, rank INTEGER, from_ns INTEGER, to_ns INTEGER)
SELECT count(DISTINCT a.step) AS count /*INTEGER*/
FROM annotation_row a JOIN profile p ON p.id = a.profile_id
WHERE p.run_id = :run_id AND p.rank = :rank AND p.kind = 'kineto' AND a.device IS NULL AND a.step IS NOT NULL
  AND a.start_ns + a.duration_ns > :from_ns AND a.start_ns < :to_ns;

-- The ranks whose profiles have backwards.
-- query TrainingRank(run_id INTEGER)
SELECT DISTINCT p.rank /*INTEGER*/ FROM op_run_row o JOIN profile p ON p.id = o.profile_id
WHERE p.run_id = :run_id AND p.kind = 'kineto' AND p.rank IS NOT NULL
  AND o.name_id IN (SELECT id FROM text_row WHERE text GLOB 'autograd::engine::evaluate_function*') ORDER BY 1;

-- When a rank's Python waits for calls that it has issued, by the stacks of its profile.
-- query WaitFrame(run_id INTEGER)
SELECT p.rank /*INTEGER*/, y.start_ns /*INTEGER*/, y.start_ns + y.duration_ns AS end_ns /*INTEGER*/
FROM python_frame_row y JOIN profile p ON p.id = y.profile_id
WHERE p.run_id = :run_id AND p.kind = 'kineto' AND p.rank IS NOT NULL
  AND y.name_id IN (SELECT id FROM text_row WHERE text GLOB '<built-in method wait of *')
ORDER BY 1, 2;

-- The groups that profiles name, by their ranks.
-- query GroupOfProfiles(run_id INTEGER)
SELECT j.value ->> '$.ranks' AS ranks /*TEXT*/, min(j.value ->> '$.pg_name') AS name /*TEXT*/,
  coalesce(min(j.value ->> '$.pg_desc'), '') AS description /*TEXT*/
FROM profile p, json_each(p.metadata, '$.distributedInfo.pg_config') j
WHERE p.run_id = :run_id AND p.kind = 'kineto' AND json_type(j.value) = 'object'
  AND json_type(j.value, '$.ranks') = 'array'
GROUP BY 1 ORDER BY 1;
