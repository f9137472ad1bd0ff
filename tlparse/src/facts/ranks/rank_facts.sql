-- query CodeOfRecord(record_id INTEGER)
SELECT p.content FROM record_row r JOIN payload_row p ON p.id = r.payload_id WHERE r.id = :record_id;

-- query CodeOfGraph(in_whole_records SQL)
SELECT graph_id /*INTEGER*/, content_id /*INTEGER*/, record_id FROM output_code_row
WHERE graph_id IS NOT NULL AND content_id IS NOT NULL AND {in_whole_records} ORDER BY record_id;

-- query CompileWithLookup(in_logs SQL)
SELECT DISTINCT compile_id /*INTEGER*/ FROM cache_event_row WHERE {in_logs};

-- Failures and graph breaks, by what they are and where: of a failure its kind and type, of a break
-- its file and the user's stack.
-- query FailureOrBreak(in_logs SQL)
SELECT compile_id /*INTEGER*/, 0 AS is_break /*BOOLEAN*/, kind_id /*INTEGER*/, type_id /*INTEGER*/,
  user_line /*INTEGER*/, reason_id /*INTEGER*/, record_id /*INTEGER*/, NULL AS stack_id /*INTEGER*/
FROM failure_row WHERE {in_logs}
UNION ALL SELECT compile_id, 1, user_file_id, NULL, user_line, reason_id, record_id, user_stack_id
FROM graph_break_row WHERE {in_logs} ORDER BY record_id;

-- The sizes that symbols had when they were created.
-- query HintOfSymbol(compile_id INTEGER)
SELECT s.source /*TEXT*/, s.value /*TEXT*/ FROM compile c
JOIN symbol s ON s.record_id BETWEEN c.first_record_id AND c.last_record_id
WHERE c.id = :compile_id AND s.compile_id = c.id AND s.kind = 'create_symbol'
  AND s.source IS NOT NULL AND s.value IS NOT NULL ORDER BY s.record_id;
