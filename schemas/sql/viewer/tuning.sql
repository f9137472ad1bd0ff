-- What the compiler tuned, and CUDA graphs.

-- table: tuned
SELECT record_id, compile_id, is_at_run_time, choices, triton_choices, best_ms, triton_place, best_triton_ms,
  precompile_us, duration_us, failed,
  0 AS "|",
  kernel, shapes, strides, dtypes, best, best_description, best_triton, best_triton_description
FROM autotune
WHERE process_id IN run_process
  AND compile_id IS NOT NULL
ORDER BY process_id, record_id;

-- table: failed_choice
SELECT compile_id, is_out_of_memory, 0 AS "|", kernel, choice, exception, message
FROM autotune_failure
WHERE process_id IN run_process
  AND compile_id IS NOT NULL
ORDER BY process_id, record_id, ordinal;

-- table: cuda_graph
SELECT compile_id, is_backward, count(*) AS recordings, coalesce(sum(duration_us), 0) AS duration_us, 0 AS "|"
FROM cuda_graph
WHERE process_id IN run_process
  AND compile_id IS NOT NULL
GROUP BY compile_id, is_backward
ORDER BY compile_id, is_backward;

-- table: cuda_graph_skip
SELECT DISTINCT compile_id, 0 AS "|", cudagraph_skip_reason AS reason
FROM compilation_metric
WHERE compile_id IN run_compile
  AND cudagraph_skip_reason IS NOT NULL
ORDER BY compile_id;
