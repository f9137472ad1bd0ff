-- Graphs of a process that hold a statement, but for the name that it sets.
-- query GraphWithStatement(process_id INTEGER, statement TEXT)
SELECT c.label, coalesce(c.function, '') AS function /*TEXT*/, coalesce(c.file, '') AS file /*TEXT*/,
  coalesce(c.line, 0) AS line /*INTEGER*/, p.content /*TEXT*/
FROM compile c JOIN graph_text_row t ON t.compile_id = c.id JOIN record_row r ON r.id = t.record_id
  JOIN payload_row p ON p.id = r.payload_id
WHERE c.process_id = :process_id AND instr(p.content, :statement) > 0 ORDER BY r.id;

-- The kernels of the generated code in a file, in its order: those called at that line or below, with the lines
-- of which they were made, innermost frames last.
-- query KernelFromLine(process_id INTEGER, path TEXT, line INTEGER)
SELECT k.name, k.code_line /*INTEGER*/, c.label, coalesce(c.function, '') AS function /*TEXT*/,
  coalesce(s.stack_ordinal, 0) AS stack_ordinal /*INTEGER*/, coalesce(s.file, '') AS file /*TEXT*/, coalesce(s.line, 0) AS line /*INTEGER*/, coalesce(s.code, '') AS code /*TEXT*/
FROM output_code o JOIN record_row r ON r.id = o.record_id JOIN kernel k ON k.graph_id = o.graph_id
  JOIN compile c ON c.id = k.compile_id LEFT JOIN kernel_source s ON s.kernel_id = k.id
WHERE r.process_id = :process_id AND o.path = :path AND k.code_line >= :line
ORDER BY k.code_line, k.id, s.stack_ordinal, s.frame_ordinal;
