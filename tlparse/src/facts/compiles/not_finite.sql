-- The calls that were looked at, in log order.
-- query LookedAtCall(in_logs SQL)
SELECT r.process_id, d.record_id, r.local_us + p.time_shift_us AS time_us /*INTEGER?*/, d.compile_id /*INTEGER?*/, coalesce(d.graph, '') AS graph /*TEXT*/, d.call /*INTEGER?*/,
  max(d.kind = 'output' AND coalesce(d.nan_count, 0) > 0) AS has_nan /*BOOLEAN*/
FROM run_digest d JOIN record_row r ON r.id = d.record_id JOIN process p ON p.id = r.process_id
WHERE {in_logs}
GROUP BY d.record_id ORDER BY d.record_id;

-- query NotFinitePart(record_id INTEGER)
SELECT d.kind = 'input' AS is_input /*BOOLEAN*/, CAST(d.name AS INTEGER) AS position /*INTEGER*/, coalesce(d.value, '') AS type /*TEXT*/,
  coalesce(d.nan_count, 0) AS nan_count /*INTEGER*/, coalesce(d.inf_count, 0) AS inf_count /*INTEGER*/
FROM run_digest d
WHERE d.record_id = :record_id AND (d.kind = 'input' OR (d.kind = 'output' AND d.nan_count > 0))
ORDER BY d.ordinal;

-- The text of the graph that was compiled, the last one of the compile.
-- query TextOfCompiledGraph(compile_id INTEGER, stage TEXT)
SELECT p.content
FROM graph_text_row t JOIN text_row s ON s.id = t.stage_id JOIN record_row r ON r.id = t.record_id
  JOIN payload_row p ON p.id = r.payload_id
WHERE t.compile_id = :compile_id AND s.text = :stage
ORDER BY t.record_id DESC LIMIT 1;
