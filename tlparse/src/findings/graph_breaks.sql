-- query BreakOfJob(in_logs SQL)
SELECT g.compile_id, r.text AS reason, f.text AS user_file, g.user_line, g.record_id,
  s.text AS user_stack
FROM graph_break_row g LEFT JOIN text_row r ON r.id = g.reason_id
  LEFT JOIN text_row f ON f.id = g.user_file_id LEFT JOIN text_row s ON s.id = g.user_stack_id
WHERE {in_logs} ORDER BY g.record_id;
