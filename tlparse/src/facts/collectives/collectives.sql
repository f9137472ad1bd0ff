-- query CollectivesOfGraph(in_whole_records SQL)
SELECT graph_id /*INTEGER*/, content_id, source
FROM collective_use_row WHERE {in_whole_records} ORDER BY record_id;

-- query CollectiveOfContent(content_id INTEGER)
SELECT op, is_wait, arguments, group_name, shape, dtype
FROM collective_row WHERE content_id = :content_id ORDER BY ordinal;

-- query CollectiveCount(content_id INTEGER)
SELECT is_wait, count(*) AS count /*INTEGER*/
FROM collective_row WHERE content_id = :content_id GROUP BY is_wait;
