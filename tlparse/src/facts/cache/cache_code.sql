-- The values of a key's components that describe inputs of the graph.
-- query InputComponent(key_id INTEGER)
SELECT m.value FROM cache_key_set_row s
  JOIN component_set_member m ON m.component_set_id = s.component_set_id
WHERE s.key_id = :key_id AND m.name GLOB 'example_inputs*';

-- query KeyWithMisses(guard_miss cache_state)
SELECT k.id, k.key, k.id IN (SELECT key_id FROM cache_event_row WHERE state = :guard_miss)
  AS has_guard_miss /*BOOLEAN*/
FROM cache_key_row k;

-- query KeyWithCode(in_compiles SQL)
SELECT g.cache_key AS key /*TEXT*/, o.content_id /*INTEGER*/
FROM graph g JOIN output_code_row o ON o.record_id = g.code_record_id
WHERE g.cache_key IS NOT NULL AND o.content_id IS NOT NULL AND {in_compiles};

-- Uses of the keys that have several codes.
-- query CodeOfKey(in_compiles SQL)
WITH code AS (SELECT g.cache_key AS key, o.content_id, o.record_id, c.process_id, c.id AS compile_id
  FROM graph g JOIN output_code_row o ON o.record_id = g.code_record_id
    JOIN compile c ON c.id = g.compile_id
  WHERE g.cache_key IS NOT NULL AND o.content_id IS NOT NULL AND {in_compiles}),
odd AS (SELECT key FROM code GROUP BY key HAVING min(content_id) <> max(content_id))
SELECT key /*TEXT*/, content_id /*INTEGER*/, record_id, process_id, compile_id /*INTEGER*/
FROM code WHERE key IN odd ORDER BY record_id;
