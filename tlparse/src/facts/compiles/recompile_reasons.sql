-- query FailedEntryOfCompile(compile_id INTEGER)
SELECT p.text || iif(z.generation > 0, '#' || (z.generation + 1), '') AS prior_label /*TEXT*/,
  g.text AS guard /*TEXT?*/, r.text AS reason, f.text AS user_file, m.user_line /*INTEGER*/
FROM recompile_row m LEFT JOIN text_row p ON p.id = m.prior_label_id
  LEFT JOIN text_row g ON g.id = m.guard_id LEFT JOIN text_row r ON r.id = m.reason_id
  LEFT JOIN text_row f ON f.id = m.user_file_id
  LEFT JOIN compile z ON z.id = m.prior_compile_id
WHERE m.compile_id = :compile_id ORDER BY m.record_id, m.ordinal;
