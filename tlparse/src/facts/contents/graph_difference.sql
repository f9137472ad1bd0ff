-- query NodeOfGraph(content_id INTEGER)
SELECT n.name, n.operation, f.text AS file /*TEXT?*/, n.line /*INTEGER*/,
  u.text AS function /*TEXT?*/, c.text AS code /*TEXT?*/
FROM graph_node_row n LEFT JOIN text_row f ON f.id = n.file_id
  LEFT JOIN text_row u ON u.id = n.function_id LEFT JOIN text_row c ON c.id = n.code_id
WHERE n.content_id = :content_id ORDER BY n.ordinal;

-- query TextOfContent(content_id INTEGER)
SELECT p.content
FROM content_row c JOIN record_row r ON r.id = c.record_id
  JOIN payload_row p ON p.id = r.payload_id
WHERE c.id = :content_id;
