-- One piece of a graph that vLLM split, compiled for one range of sizes: artifact vllm_piecewise_compile_start. graph_id: the graph
-- that it became; NULL if none was logged before the next piece.
CREATE VIEW vllm_piece AS
  WITH start AS (
    SELECT record_id, process_id, rank, compile_id, content, lead(record_id) OVER (PARTITION BY process_id ORDER BY record_id) AS next_id
    FROM artifact WHERE name = 'vllm_piecewise_compile_start' AND json_valid(content))
  SELECT record_id, process_id, rank, compile_id,
    (SELECT g.id FROM graph g WHERE g.compile_id = start.compile_id AND g.record_id > start.record_id
      AND (start.next_id IS NULL OR g.record_id < start.next_id) ORDER BY g.record_id LIMIT 1) AS graph_id,
    content ->> '$.piecewise_index' AS piece_index, content ->> '$.submod_name' AS submod_name,
    content ->> '$.total_piecewise_compiles' AS piece_count, content ->> '$.compile_range_start' AS range_start,
    content ->> '$.compile_range_end' AS range_end, content ->> '$.is_single_size' AS is_single_size,
    content ->> '$.is_cudagraph_capture_size' AS is_cudagraph_size
  FROM start;

-- How vLLM compiles a model: artifact vllm_compilation_config. event: the vllm_compile_event before it (fresh_compile,
-- aot_cache_hit), or NULL. compile_ranges: where ranges of sizes end, under either of its names.
CREATE VIEW vllm_config AS
  SELECT c.record_id, c.process_id, c.rank, c.compile_id,
    (SELECT e.content ->> '$.type' FROM artifact e WHERE e.name = 'vllm_compile_event' AND e.process_id = c.process_id
      AND e.record_id < c.record_id AND json_valid(e.content) ORDER BY e.record_id DESC LIMIT 1) AS event,
    c.content ->> '$.model' AS model, c.content ->> '$.prefix' AS prefix, c.content ->> '$.mode' AS mode,
    c.content ->> '$.backend' AS backend, c.content ->> '$.cudagraph_mode' AS cudagraph_mode,
    c.content ->> '$.splitting_ops' AS splitting_ops, c.content ->> '$.compile_sizes' AS compile_sizes,
    coalesce(c.content ->> '$.compile_ranges_endpoints', c.content ->> '$.compile_ranges_split_points') AS compile_ranges,
    c.content ->> '$.enabled_passes' AS enabled_passes, c.content AS config
  FROM artifact c WHERE c.name = 'vllm_compilation_config' AND json_valid(c.content);
