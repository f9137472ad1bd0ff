-- What guards compare with a constant.
-- query ArgumentCheck
SELECT g.content_id, g.source /*TEXT*/, coalesce(g.normalized_expression, g.expression) AS expression /*TEXT*/
FROM guard_row g
WHERE g.kind_id IN (SELECT id FROM text_row WHERE text = 'EQUALS_MATCH') AND g.source IS NOT NULL
ORDER BY g.content_id, g.ordinal;

-- query GuardsOfCompile(in_logs SQL)
SELECT compile_id /*INTEGER*/, content_id FROM guard_use_row
WHERE compile_id IS NOT NULL AND {in_logs} ORDER BY record_id;
