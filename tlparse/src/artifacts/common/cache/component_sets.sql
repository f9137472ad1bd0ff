-- query StoredMember
SELECT l.list_id, t.text AS name, c.hash /*TEXT?*/, l.component_id
FROM component_list_row l JOIN component_row c ON c.id = l.component_id
  JOIN text_row t ON t.id = c.name_id
ORDER BY l.list_id, l.ordinal;

-- query StoredRun
SELECT set_id, list_id, list_ordinal, length FROM component_run_row ORDER BY set_id, ordinal;

-- query StoredComponent
SELECT id, name_id, hash /*TEXT?*/, value FROM component_row ORDER BY id;

-- query StoredHash
SELECT component_id, device_index, hash FROM component_hash_row;

-- query StoredKey
SELECT id, key FROM cache_key_row;

-- query StoredLink
SELECT key_id, component_set_id FROM cache_key_set_row;
