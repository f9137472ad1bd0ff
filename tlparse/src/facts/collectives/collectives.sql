-- query CollectiveOfContent(content_id INTEGER)
SELECT op, is_wait, arguments, group_name, shape, dtype
FROM collective_row WHERE content_id = :content_id ORDER BY ordinal;

-- query CollectiveCount(content_id INTEGER)
SELECT is_wait, count(*) AS count /*INTEGER*/
FROM collective_row WHERE content_id = :content_id GROUP BY is_wait;
