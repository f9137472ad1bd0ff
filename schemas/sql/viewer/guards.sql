-- Guard trees by content: what all compiles share whose guards say the same.

-- table: guard
SELECT content_id, ordinal, depth, user_line, 0 AS "|", kind_id AS "kind@text", expression, source,
  user_file_id AS "user_file@text", user_code
FROM guard_row
WHERE content_id BETWEEN :first AND :last
ORDER BY content_id, ordinal;
