-- The stacks at which the compiles of a launch began.
-- query RoleStack(run_id INTEGER, launch INTEGER)
SELECT DISTINCT c.process_id, c.stack_id /*INTEGER*/
FROM compile c JOIN process p ON p.id = c.process_id JOIN launch n ON n.id = p.launch_id
WHERE n.run_id = :run_id AND n.ordinal = :launch AND c.stack_id IS NOT NULL;

-- The frames of a stack, innermost first.
-- query RoleFrame(stack_id INTEGER)
WITH RECURSIVE frame(id, depth) AS (SELECT :stack_id, 0 UNION ALL
  SELECT s.parent_id, f.depth + 1 FROM frame f JOIN stack_frame s ON s.id = f.id)
SELECT s.file, s.function FROM frame f JOIN stack_frame s ON s.id = f.id ORDER BY f.depth;

-- Whether ranks of the run send to each other, by its dumps and profiles.
-- query RunWithSends(run_id INTEGER)
SELECT EXISTS (SELECT 1 FROM collective_run_row c JOIN profile p ON p.id = c.profile_id
  WHERE p.run_id = :run_id AND c.is_p2p = 1) AS has_sends /*BOOLEAN*/;

-- Members of process groups: as dumps name them, by the calls that ranks issued, and by the
-- collectives of their graphs.
-- query RoleGroup(run_id INTEGER, launch INTEGER)
SELECT 'dump ' || x.ranks AS name /*TEXT*/, m.value AS rank /*INTEGER*/
FROM (SELECT DISTINCT g.value ->> '$.ranks' AS ranks
    FROM profile p, json_each(p.metadata, '$.pg_config') g
    WHERE p.run_id = :run_id AND p.kind = 'flight_recorder' AND json_type(g.value) = 'object') x,
  json_each(CASE WHEN json_valid(x.ranks) THEN x.ranks ELSE '[]' END) m
WHERE m.type = 'integer'
UNION SELECT 'calls ' || c.group_name, c.rank
FROM collective_run c JOIN profile p ON p.id = c.profile_id
WHERE p.run_id = :run_id AND c.group_name IS NOT NULL AND c.rank IS NOT NULL
UNION SELECT 'graphs ' || g.group_name, p.rank
FROM (SELECT DISTINCT content_id, group_name FROM collective_row WHERE group_name IS NOT NULL) g
  JOIN collective_use_row u ON u.content_id = g.content_id
  JOIN compile k ON k.id = u.compile_id JOIN process p ON p.id = k.process_id
  JOIN launch n ON n.id = p.launch_id
WHERE n.run_id = :run_id AND n.ordinal = :launch AND p.rank IS NOT NULL
ORDER BY name, rank;

-- query CompileWithCollectives(in_logs SQL)
SELECT DISTINCT compile_id /*INTEGER*/ FROM collective_use_row WHERE compile_id IS NOT NULL AND {in_logs};
