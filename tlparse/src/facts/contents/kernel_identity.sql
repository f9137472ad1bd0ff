-- query GraphOfKernels(graph_id INTEGER)
SELECT g.compile_id, coalesce(g.direction, '') AS direction /*TEXT*/, (SELECT count(*) FROM graph o
  WHERE o.compile_id = g.compile_id AND o.direction IS g.direction
  AND o.ordinal < g.ordinal) AS slot /*INTEGER*/, coalesce(h.hash, '') AS code_hash /*TEXT*/,
  coalesce(p.content, '') AS code /*TEXT*/
FROM graph g LEFT JOIN output_code_row c ON c.record_id = g.code_record_id
  LEFT JOIN content_row h ON h.id = c.content_id LEFT JOIN record_row r ON r.id = g.code_record_id
  LEFT JOIN payload_row p ON p.id = r.payload_id
WHERE g.id = :graph_id;

-- query KernelInCode(graph_id INTEGER)
SELECT k.id, k.name, k.code_line /*INTEGER*/
FROM graph g JOIN kernel_row k ON k.content_id = g.provenance_content_id
WHERE g.id = :graph_id AND k.code_line IS NOT NULL;
