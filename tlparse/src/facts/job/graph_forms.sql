-- query OperationOfGraph(content_id INTEGER)
SELECT name, operation FROM graph_node_row WHERE content_id = :content_id ORDER BY ordinal;
