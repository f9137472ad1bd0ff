-- Which components make up a key. A set is a sequence of stretches of stored lists. Read through the view
-- component_set_member, each set would be written out in full: 64 ranks with keys of their own would cost a thousand times
-- the space. So this reads the lists themselves.

-- table: set_run
SELECT set_id, ordinal, length, list_id, list_ordinal, 0 AS "|"
FROM component_run_row
WHERE set_id IN (SELECT component_set_id FROM cache_event WHERE process_id IN run_process)
ORDER BY set_id, ordinal;

-- table: list_member
SELECT list_id, ordinal, component_id, 0 AS "|"
FROM component_list_row
WHERE list_id IN (
  SELECT list_id
  FROM component_run_row
  WHERE set_id IN (SELECT component_set_id FROM cache_event WHERE process_id IN run_process))
ORDER BY list_id, ordinal;
