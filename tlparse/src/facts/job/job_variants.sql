-- What guards compare with a constant.
-- query ArgumentCheck
SELECT g.content_id, g.source /*TEXT*/, coalesce(g.normalized_expression, g.expression) AS expression /*TEXT*/
FROM guard_row g
WHERE g.kind_id IN (SELECT id FROM text_row WHERE text = 'EQUALS_MATCH') AND g.source IS NOT NULL
ORDER BY g.content_id, g.ordinal;

-- Compiles whose graphs show whether gradients are needed.
-- query GradientsOfCompile(in_logs SQL)
SELECT t.compile_id /*INTEGER*/, max(s.text <> 'aot_inference_graph') AS are_needed /*BOOLEAN*/
FROM graph_text_row t JOIN text_row s ON s.id = t.stage_id
WHERE s.text IN ('aot_inference_graph', 'aot_forward_graph', 'aot_joint_graph') AND t.compile_id IS NOT NULL
  AND {in_logs} GROUP BY t.compile_id;

-- query GuardsOfCompile(in_logs SQL)
SELECT compile_id /*INTEGER*/, content_id FROM guard_use_row
WHERE compile_id IS NOT NULL AND {in_logs} ORDER BY record_id;
