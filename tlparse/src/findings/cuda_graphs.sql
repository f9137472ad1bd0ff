-- query SkippedCudaGraph(in_logs SQL)
SELECT m.record_id, m.compile_id /*INTEGER?*/, t.text AS reason
FROM compilation_metric_row m JOIN text_row t ON t.id = m.cudagraph_skip_reason_id WHERE {in_logs} ORDER BY m.record_id;
