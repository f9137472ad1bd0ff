-- Collective schedules and execution orders of all ranks, at most 200,000 collectives and as many executions; left_out counts the
-- others.

-- table: schedule_use
SELECT u.record_id, u.compile_id, u.graph_id, u.content_id, r.process_id, u.source AS is_code, 0 AS "|"
FROM collective_use_row u
  JOIN record r ON r.id = u.record_id
WHERE r.process_id IN run_process
ORDER BY u.record_id, u.source;

-- table: collective
SELECT content_id, ordinal, is_wait, code_line, 0 AS "|", op, arguments, group_name, shape, dtype
FROM collective_row
WHERE content_id IN (SELECT content_id FROM collective_use_row)
ORDER BY content_id, ordinal
LIMIT 200000;

-- table: execution_use
SELECT process_id, record_id, first_ordinal, content_id, 0 AS "|"
FROM graph_execution_use_row
WHERE process_id IN run_process
ORDER BY process_id, first_ordinal;

-- table: execution
SELECT content_id, ordinal, 0 AS "|", label
FROM graph_execution_row
WHERE content_id IN (SELECT content_id FROM graph_execution_use_row)
ORDER BY content_id, ordinal
LIMIT 200000;

-- table: left_out
SELECT
  (SELECT max(0, count(*) - 200000) FROM collective_row WHERE content_id IN (SELECT content_id FROM collective_use_row)) AS collectives,
  (SELECT max(0, count(*) - 200000) FROM graph_execution_row WHERE content_id IN (SELECT content_id FROM graph_execution_use_row))
    AS executions,
  0 AS "|";
