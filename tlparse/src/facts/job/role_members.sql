-- The frames of a stack, innermost first.
-- query RoleFrame(stack_id INTEGER)
WITH RECURSIVE frame(id, depth) AS (SELECT :stack_id, 0 UNION ALL
  SELECT s.parent_id, f.depth + 1 FROM frame f JOIN stack_frame s ON s.id = f.id)
SELECT s.file, s.function FROM frame f JOIN stack_frame s ON s.id = f.id ORDER BY f.depth;

-- Whether ranks of the run send to each other, by its dumps and profiles.
-- query RunWithSends(run_id INTEGER)
SELECT EXISTS (SELECT 1 FROM collective_run_row c JOIN profile p ON p.id = c.profile_id
  WHERE p.run_id = :run_id AND c.is_p2p = 1) AS has_sends /*BOOLEAN*/;

-- Members of process groups: as dumps name them, and by the calls that ranks issued.
-- query RoleGroup(run_id INTEGER)
SELECT 'dump ' || x.ranks AS name /*TEXT*/, m.value AS rank /*INTEGER*/
FROM (SELECT DISTINCT g.value ->> '$.ranks' AS ranks
    FROM profile p, json_each(p.metadata, '$.pg_config') g
    WHERE p.run_id = :run_id AND p.kind = 'flight_recorder' AND json_type(g.value) = 'object') x,
  json_each(CASE WHEN json_valid(x.ranks) THEN x.ranks ELSE '[]' END) m
WHERE m.type = 'integer'
UNION SELECT 'calls ' || c.group_name, c.rank
FROM collective_run c JOIN profile p ON p.id = c.profile_id
WHERE p.run_id = :run_id AND c.group_name IS NOT NULL AND c.rank IS NOT NULL
ORDER BY name, rank;

-- The lists of collectives of graphs: scheduled, and in generated code.
-- query CollectivesOfGraph(in_logs SQL)
SELECT graph_id /*INTEGER?*/, compile_id /*INTEGER?*/, content_id, source, record_id
FROM collective_use_row WHERE {in_logs} ORDER BY record_id;

-- query GroupOfContent
SELECT DISTINCT content_id, group_name /*TEXT*/ FROM collective_row WHERE group_name IS NOT NULL;
