-- Whether a run is one of profiles and dumps alone.
-- query RunWithoutLogs(run_id INTEGER)
SELECT EXISTS (SELECT 1 FROM profile WHERE run_id = :run_id)
  AND NOT EXISTS (SELECT 1 FROM log_file WHERE run_id = :run_id) AS is_without_logs /*BOOLEAN*/;

-- Records whose payload is cut off.
-- query CutRecord(in_logs SQL)
SELECT record_id /*INTEGER*/ FROM import_log
WHERE code = 'payload_truncated' AND {in_logs} ORDER BY record_id;

-- The compiles of processes first_process to last_process, and of those between them. A stray record
-- names a compile that its process did not make.
-- query CompileOfJob(run_id INTEGER, first_process INTEGER, last_process INTEGER)
SELECT id, process_id, label, function /*TEXT?*/, file /*TEXT?*/, line /*INTEGER*/, status,
  start_time_us /*INTEGER*/, duration_us /*INTEGER*/, backward_duration_us /*INTEGER*/, generation,
  is_synthetic, stack_id /*INTEGER*/
FROM compile
WHERE id BETWEEN
    (SELECT min(id) FROM compile WHERE process_id BETWEEN :first_process AND :last_process)
    AND (SELECT max(id) FROM compile WHERE process_id BETWEEN :first_process AND :last_process)
  AND id NOT IN (SELECT r.compile_id FROM import_log i JOIN record_row r ON r.id = i.record_id
    WHERE i.run_id = :run_id AND i.code = 'stray_record' AND r.compile_id IS NOT NULL)
ORDER BY id;

-- Dynamo's graphs of compiles. The last one of a compile counts: earlier attempts were thrown away.
-- query DynamoGraphOfCompile(in_compiles SQL, in_whole_records SQL)
SELECT t.compile_id /*INTEGER*/, t.content_id /*INTEGER*/, t.record_id
FROM compile c CROSS JOIN graph_text_row t ON t.compile_id = c.id
  AND t.stage_id = (SELECT id FROM text_row WHERE text = 'dynamo_output_graph')
WHERE {in_compiles} AND {in_whole_records} ORDER BY c.id;
