-- From a kernel to the Python line it comes from: one row per kernel and innermost frame of each of its stacks.
CREATE VIEW kernel_provenance AS
  SELECT k.id AS kernel_id, k.compile_id, k.graph_id, c.rank, c.label, g.direction, k.name AS kernel, k.debug_handle, k.code_line,
    s.file, s.line, s.function, s.code, s.basis, s.stack_ordinal,
    (SELECT group_concat(n.post_grad_node, ' ') FROM kernel_node_row n WHERE n.kernel_id = k.id) AS post_grad_nodes,
    (SELECT group_concat(DISTINCT m.pre_grad_node) FROM kernel_node_row n
      JOIN node_mapping_row m ON m.content_id = g.provenance_content_id AND m.post_grad_node = n.post_grad_node
      WHERE n.kernel_id = k.id) AS pre_grad_nodes,
    k.record_id
  FROM kernel k
  JOIN graph g ON g.id = k.graph_id
  JOIN compile c ON c.id = k.compile_id
  LEFT JOIN kernel_source s ON s.kernel_id = k.id AND s.frame_ordinal =
    (SELECT max(z.frame_ordinal) FROM kernel_source_row z WHERE z.kernel_id = k.id AND z.stack_ordinal = s.stack_ordinal);

-- The records of a compile in log order, without the most frequent kinds (see compile_record_row); indexed by
-- compile_id, by kind (and name), and by payload_id.
CREATE VIEW compile_record AS
  SELECT r.id, m.compile_id, r.attempt, r.line, k.text AS kind, n.text AS name, s.text AS subgraph_name, r.payload_id,
    p.hash AS payload_hash, p.size_bytes AS payload_size_bytes, r.local_us + q.time_shift_us AS time_us, r.process_id
  FROM compile_record_row m JOIN record_row r ON r.id = m.record_id AND r.compile_id = m.compile_id AND r.kind_id > 8
  LEFT JOIN process q ON q.id = r.process_id
  LEFT JOIN text_row k ON k.id = r.kind_id LEFT JOIN text_row n ON n.id = r.name_id LEFT JOIN text_row s ON s.id = r.subgraph_id
  LEFT JOIN payload_row p ON p.id = r.payload_id;
