-- Kernels, nodes and source lines by content. One graph stands for all that share the same kernels.

-- table: kernel
SELECT k.id, g.provenance_content_id AS content_id, k.ordinal, k.debug_handle, k.code_line, 0 AS "|", k.name
FROM kernel k
  JOIN graph g ON g.id = k.graph_id
WHERE g.id IN content_graph
ORDER BY k.id;

-- table: kernel_node
SELECT kernel_id, 0 AS "|", post_grad_node
FROM kernel_node
WHERE kernel_id IN (
  SELECT id
  FROM kernel
  WHERE graph_id IN content_graph)
ORDER BY kernel_id, post_grad_node;

-- table: node_mapping
SELECT g.provenance_content_id AS content_id, 0 AS "|", m.post_grad_node, m.pre_grad_node
FROM node_mapping m
  JOIN graph g ON g.id = m.graph_id
WHERE g.id IN content_graph
ORDER BY 1, 2, 3;

-- table: kernel_source
SELECT kernel_id, stack_ordinal, frame_ordinal, line, 0 AS "|", file, function, code, basis
FROM kernel_source
WHERE kernel_id IN (
  SELECT id
  FROM kernel
  WHERE graph_id IN content_graph)
ORDER BY kernel_id, stack_ordinal, frame_ordinal;

-- table: kernel_line
SELECT l.kernel_id, l.line, l.part, 0 AS "|", f.text AS file
FROM kernel_line_row l
  LEFT JOIN text_row f ON f.id = l.file_id
WHERE l.kernel_id IN (
  SELECT id
  FROM kernel
  WHERE graph_id IN content_graph)
ORDER BY l.kernel_id, file, l.line;
