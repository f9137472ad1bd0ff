-- Components :first … :last of cache keys.

-- table: component
SELECT c.id, 0 AS "|", n.text AS name, c.hash, c.value
FROM component_row c
  JOIN text_row n ON n.id = c.name_id
WHERE c.id BETWEEN :first AND :last
ORDER BY c.id;
