-- query CudaGraphOfCompile(compile_id INTEGER)
SELECT is_backward /*BOOLEAN*/, count(*) AS recordings /*INTEGER*/, coalesce(sum(duration_us), 0) AS duration_us /*REAL*/
FROM cuda_graph WHERE process_id = (SELECT process_id FROM compile WHERE id = :compile_id) AND compile_id = :compile_id
GROUP BY is_backward ORDER BY is_backward;

-- Those of all compiles of a process: the events are read once.
-- query CudaGraphOfProcess(process_id INTEGER)
SELECT compile_id /*INTEGER*/, is_backward /*BOOLEAN*/, count(*) AS recordings /*INTEGER*/
FROM cuda_graph WHERE process_id = :process_id AND compile_id IS NOT NULL
  AND EXISTS (SELECT 1 FROM text_row WHERE text = 'CUDAGraphNode.record')
GROUP BY compile_id, is_backward;

-- The sizes for which graphs were recorded: PyTorch tells them in the text of TORCH_LOGS=cudagraphs alone.
-- query CudaGraphSizes(compile_id INTEGER)
SELECT substr(l.text, instr(l.text, ' symint key ') + 12) AS sizes /*TEXT*/
FROM compile c JOIN torch_log_line l ON l.process_id = c.process_id
WHERE c.id = :compile_id AND l.artifact = 'cudagraphs'
  AND l.text LIKE '[' || c.label || '] Recording cudagraph tree for symint key %'
GROUP BY 1 ORDER BY min(l.id);

-- query SkipOfCompile(compile_id INTEGER)
SELECT DISTINCT cudagraph_skip_reason AS reason /*TEXT*/ FROM compilation_metric
WHERE compile_id = :compile_id AND cudagraph_skip_reason IS NOT NULL ORDER BY record_id;
