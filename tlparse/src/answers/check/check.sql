-- Exceptions, of which one may be that of the recompile limit.
-- query CountedException(in_logs SQL)
SELECT f.compile_id /*INTEGER?*/, t.text AS type /*TEXT*/, r.text AS reason /*TEXT*/
FROM failure_row f LEFT JOIN text_row t ON t.id = f.type_id
  LEFT JOIN text_row r ON r.id = f.reason_id
WHERE {in_logs};

-- Lookups that a hit rate counts.
-- query CountedLookup(in_logs SQL)
SELECT e.compile_id, s.is_hit FROM cache_event_row e JOIN cache_state s ON s.id = e.state
WHERE (s.is_hit OR s.is_miss) AND {in_logs};

-- Inputs of a launch that were not read, or not whole. A file without processes may be of any launch.
-- query InputNotRead(run_id INTEGER, launch INTEGER)
SELECT coalesce(f.path, o.path, i.path, 'the input') AS path /*TEXT*/, i.code, i.message,
  count(*) AS count /*INTEGER*/
FROM import_log i LEFT JOIN log_file f ON f.id = i.log_file_id
  LEFT JOIN profile o ON o.id = i.profile_id
WHERE i.run_id = :run_id AND (i.is_damage OR i.code = 'log_without_records')
  AND (o.id IS NULL OR o.kind IN (SELECT name FROM profile_kind WHERE has_ranks))
  AND (i.log_file_id IS NULL
  OR NOT EXISTS (SELECT 1 FROM process p WHERE p.log_file_id = i.log_file_id)
  OR EXISTS (SELECT 1 FROM process p JOIN launch n ON n.id = p.launch_id
    WHERE p.log_file_id = i.log_file_id AND n.ordinal = :launch))
GROUP BY 1, i.code HAVING i.id = min(i.id) ORDER BY 1, i.id;
