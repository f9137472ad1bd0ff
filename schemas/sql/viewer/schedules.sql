-- Collective schedules and execution orders of all ranks.

-- table: schedule_use
SELECT u.record_id, u.compile_id, u.graph_id, u.content_id, r.process_id, u.source AS is_code, 0 AS "|"
FROM collective_use_row u
  JOIN record r ON r.id = u.record_id
WHERE r.process_id IN run_process
ORDER BY u.record_id, u.source;

-- table: collective
SELECT content_id, ordinal, is_wait, code_line, 0 AS "|", op, arguments, group_name, shape, dtype
FROM collective
WHERE (record_id, source) IN (
  SELECT min(record_id), (SELECT name FROM collective_source WHERE id = source)
  FROM collective_use_row
  GROUP BY content_id)
ORDER BY content_id, ordinal;

-- table: execution_use
SELECT process_id, record_id, first_ordinal, content_id, 0 AS "|"
FROM graph_execution_use_row
WHERE process_id IN run_process
ORDER BY process_id, first_ordinal;

-- table: execution
SELECT e.content_id, e.ordinal - u.first_ordinal AS ordinal, 0 AS "|", e.label
FROM graph_execution e
  JOIN graph_execution_use_row u ON u.record_id = e.record_id
WHERE e.record_id IN (SELECT min(record_id) FROM graph_execution_use_row GROUP BY content_id)
ORDER BY e.content_id, ordinal;
