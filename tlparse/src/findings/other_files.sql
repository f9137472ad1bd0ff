-- The files that nodes of a graph come from.
-- query FileOfGraph(content_id INTEGER)
SELECT DISTINCT f.text AS path FROM graph_node_row n JOIN text_row f ON f.id = n.file_id
WHERE n.content_id = :content_id;
