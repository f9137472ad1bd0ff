-- What failed of the guards of these compiles' predecessors.
-- query GuardOfRecompile(of_compiles SQL)
SELECT coalesce(g.text, r.text) AS guard /*TEXT*/ FROM recompile_row m JOIN text_row r ON r.id = m.reason_id
  LEFT JOIN text_row g ON g.id = m.guard_id WHERE {of_compiles} ORDER BY m.record_id, m.ordinal;
