-- query MemberOfSet(set_id INTEGER, device_index INTEGER?)
SELECT m.name, coalesce(m.hash, h.hash) AS hash /*TEXT*/, m.value,
  m.hash IS NULL AS has_device /*BOOLEAN*/
FROM component_set_member m LEFT JOIN component_hash_row h ON m.hash IS NULL
  AND h.component_id = m.component_id AND h.device_index = :device_index
WHERE m.component_set_id = :set_id ORDER BY m.ordinal;
