-- query CudaGraphOfCompile(compile_id INTEGER)
SELECT is_backward /*BOOLEAN*/, count(*) AS recordings /*INTEGER*/, coalesce(sum(duration_us), 0) AS duration_us /*REAL*/
FROM cuda_graph WHERE process_id = (SELECT process_id FROM compile WHERE id = :compile_id) AND compile_id = :compile_id
GROUP BY is_backward ORDER BY is_backward;

-- query SkipOfCompile(compile_id INTEGER)
SELECT DISTINCT cudagraph_skip_reason AS reason /*TEXT*/ FROM compilation_metric
WHERE compile_id = :compile_id AND cudagraph_skip_reason IS NOT NULL ORDER BY record_id;
