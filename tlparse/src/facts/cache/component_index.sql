-- Components of cache keys (schemas/sql/artifacts/cache_event.sql).
-- query ComponentOfIndex
SELECT c.id, c.name_id, c.hash /*TEXT?*/, c.value, t.text AS name
FROM component_row c LEFT JOIN text_row t ON t.id = c.name_id;

-- query ComponentOfList
SELECT list_id, component_id FROM component_list_row ORDER BY list_id, ordinal;

-- query ComponentRun
SELECT set_id, length, list_id, list_ordinal FROM component_run_row;

-- query ComponentRunOfSet(set_id INTEGER)
SELECT length, list_id, list_ordinal FROM component_run_row WHERE set_id = :set_id
ORDER BY ordinal;

-- query ComponentText(id INTEGER, device_index INTEGER)
SELECT t.text AS name, coalesce(c.hash, h.hash) AS hash /*TEXT*/, c.value
FROM component_row c JOIN text_row t ON t.id = c.name_id
  LEFT JOIN component_hash_row h
    ON c.hash IS NULL AND h.component_id = c.id AND h.device_index = :device_index
WHERE c.id = :id;
