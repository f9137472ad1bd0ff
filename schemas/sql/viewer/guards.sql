-- Guard trees by content. One record stands for all that share the same tree.

-- table: guard
SELECT content_id, ordinal, depth, user_line, 0 AS "|", kind, expression, source, user_file, user_code
FROM guard
WHERE record_id IN (SELECT min(record_id) FROM guard_use WHERE content_id BETWEEN :first AND :last GROUP BY content_id)
ORDER BY content_id, ordinal;
