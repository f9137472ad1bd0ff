-- query CompiledGraph(run_id INTEGER)
SELECT g.id, g.compile_id, c.process_id, g.direction, g.provenance_content_id /*INTEGER*/,
  c.start_time_us /*INTEGER*/, g.cache_key /*TEXT?*/
FROM graph g JOIN compile c ON c.id = g.compile_id JOIN process p ON p.id = c.process_id
  JOIN log_file f ON f.id = p.log_file_id
WHERE f.run_id = :run_id ORDER BY c.start_time_us, g.compile_id, g.ordinal;

-- query LabelledCompile(run_id INTEGER)
SELECT c.id, c.process_id, c.label, c.start_time_us /*INTEGER*/
FROM compile c JOIN process p ON p.id = c.process_id JOIN log_file f ON f.id = p.log_file_id
WHERE f.run_id = :run_id ORDER BY c.start_time_us, c.id;

-- query KernelOfContent(content_id INTEGER)
SELECT id, name
FROM kernel_row
WHERE content_id = :content_id AND code_line IS NOT NULL
  AND (debug_handle IS NOT NULL OR NOT EXISTS (SELECT 1 FROM kernel_row k
  WHERE k.content_id = :content_id AND k.debug_handle IS NOT NULL AND k.code_line IS NOT NULL))
ORDER BY code_line, ordinal;

-- query CodeTextOfGraph(graph_id INTEGER)
SELECT p.content
FROM graph g JOIN record_row r ON r.id = g.code_record_id JOIN payload_row p ON p.id = r.payload_id
WHERE g.id = :graph_id;

-- query IdOfText(text TEXT)
SELECT id FROM text_row WHERE text = :text LIMIT 1;
