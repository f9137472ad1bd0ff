-- query OpListUse(in_logs SQL)
SELECT graph_id /*INTEGER*/, content_id, estimate_content_id /*INTEGER*/
FROM op_list_use_row WHERE graph_id IS NOT NULL AND {in_logs} ORDER BY record_id;

-- query OutputOfOp(content_id INTEGER)
SELECT o.ordinal, o.name, t.shape /*TEXT?*/, t.stride, t.dtype
FROM op_row o LEFT JOIN op_output_row t ON t.content_id = o.content_id AND t.op_ordinal = o.ordinal
WHERE o.content_id = :content_id ORDER BY o.ordinal, t.ordinal;

-- query EstimateOfOp(content_id INTEGER)
SELECT estimated_ns /*REAL*/ FROM op_estimate_row WHERE content_id = :content_id ORDER BY ordinal;
