-- query GuardOfContent(content_id INTEGER)
SELECT k.text AS kind, coalesce(g.normalized_expression, g.expression) AS expression /*TEXT*/, g.source,
  g.user_code, f.text AS user_file, g.user_line /*INTEGER*/
FROM guard_row g JOIN text_row k ON k.id = g.kind_id LEFT JOIN text_row f ON f.id = g.user_file_id
WHERE g.content_id = :content_id AND g.expression <> '' AND k.text NOT LIKE '%Manager'
  AND k.text NOT IN ('ID_MATCH', 'CLOSURE_MATCH', 'WEAKREF_ALIVE', 'DICT_VERSION')
ORDER BY g.ordinal;
