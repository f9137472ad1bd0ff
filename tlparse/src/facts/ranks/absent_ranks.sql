-- The arguments of collectives that name the size of a group, by list of collectives.
-- query GatherOfContent
SELECT DISTINCT content_id, arguments FROM collective_row
WHERE op LIKE '%all_gather_into_tensor%' AND arguments IS NOT NULL;

-- Those of the generated code of a launch.
-- query GatherArguments(run_id INTEGER, launch INTEGER)
WITH gather AS MATERIALIZED (SELECT DISTINCT content_id, arguments FROM collective_row
  WHERE op LIKE '%all_gather_into_tensor%' AND arguments IS NOT NULL)
SELECT DISTINCT g.arguments FROM gather g
WHERE g.content_id IN (SELECT u.content_id FROM collective_use_row u
    JOIN compile k ON k.id = u.compile_id JOIN process p ON p.id = k.process_id
    JOIN launch n ON n.id = p.launch_id
  WHERE u.content_id IN (SELECT content_id FROM gather)
    AND n.run_id = :run_id AND n.ordinal = :launch);

-- How many ranks the dumps and profiles of a launch show: by the job's number of ranks, their own
-- rank, members of groups. A file whose process has no log here may be of any launch.
-- query RanksShownByFiles(run_id INTEGER, launch INTEGER, launch_count INTEGER)
WITH file AS (SELECT p.kind, p.own_rank, p.world_size, p.metadata
  FROM profile p LEFT JOIN process q ON q.id = p.process_id LEFT JOIN launch n ON n.id = q.launch_id
  WHERE p.run_id = :run_id AND p.kind IN (SELECT name FROM profile_kind WHERE has_ranks)
    AND (n.ordinal = :launch OR (n.ordinal IS NULL AND :launch_count < 2)))
SELECT kind /*TEXT*/, max(own_rank) + 1 AS ranks /*INTEGER?*/,
  'is of rank ' || max(own_rank) AS what /*TEXT*/
FROM file GROUP BY kind
UNION ALL SELECT kind, max(world_size), 'names ' || max(world_size) || ' ranks'
FROM file GROUP BY kind
UNION ALL SELECT 'flight_recorder', max(m.value) + 1,
  'names rank ' || max(m.value) || ' as a member of a group'
FROM (SELECT DISTINCT g.value ->> '$.ranks' AS ranks
    FROM file f, json_each(f.metadata, '$.pg_config') g
    WHERE f.kind = 'flight_recorder' AND json_type(g.value) = 'object' AND g.key <> '') x,
  json_each(CASE WHEN json_valid(x.ranks) THEN x.ranks ELSE '[]' END) m
WHERE m.type = 'integer';
