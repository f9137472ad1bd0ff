-- query ContentWithNodes
SELECT content_id FROM graph_node_row WHERE ordinal = 0;
