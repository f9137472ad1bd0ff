-- query LabelOfExecution(in_logs SQL)
SELECT content_id, label /*TEXT?*/
FROM graph_execution_row
WHERE content_id IN (SELECT content_id FROM graph_execution_use_row WHERE {in_logs})
ORDER BY content_id, ordinal;

-- query ExecutionUse(in_logs SQL)
SELECT process_id, content_id
FROM graph_execution_use_row WHERE {in_logs} ORDER BY process_id, first_ordinal, record_id;

-- query ProcessWithThreads(in_logs SQL)
SELECT r.process_id
FROM chromium_event_row e CROSS JOIN record_row r ON r.id = e.record_id  -- few events have a thread
WHERE e.tid IS NOT NULL AND {in_logs} GROUP BY r.process_id HAVING min(e.tid) < max(e.tid);
