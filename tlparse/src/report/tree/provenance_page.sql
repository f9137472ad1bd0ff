-- query KernelOfPage(compile_id INTEGER)
SELECT id, name, debug_handle, code_line, graph_id FROM kernel
WHERE compile_id = :compile_id ORDER BY graph_id, ordinal;

-- query PostGradNode(kernel_id INTEGER)
SELECT post_grad_node FROM kernel_node_row WHERE kernel_id = :kernel_id;

-- query PreGradNode(graph_id INTEGER, post_grad_node TEXT)
SELECT m.pre_grad_node FROM graph g
  JOIN node_mapping_row m ON m.content_id = g.provenance_content_id
WHERE g.id = :graph_id AND m.post_grad_node = :post_grad_node;

-- query SourceOfKernel(kernel_id INTEGER)
SELECT file, line, function, code FROM kernel_source
WHERE kernel_id = :kernel_id ORDER BY stack_ordinal, frame_ordinal;
