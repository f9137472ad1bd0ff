-- A record with its stacks; metrics have that of their compile.
-- query RecordOfPage(id INTEGER)
SELECT k.text AS kind, r.envelope,
  coalesce(c.stack_id, r.stack_id, 0) AS stack_id /*INTEGER*/,
  coalesce(r.user_stack_id, 0) AS user_stack_id /*INTEGER*/
FROM record_row r LEFT JOIN text_row k ON k.id = r.kind_id
  LEFT JOIN compile c ON c.id = r.compile_id AND k.text LIKE '%metrics'
WHERE r.id = :id;
