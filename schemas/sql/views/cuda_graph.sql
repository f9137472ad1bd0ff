-- CUDA graphs that were recorded: event CUDAGraphNode.record (CUDAGraphNode, torch/_inductor/cudagraph_trees.py), one row for each. A compile is
-- recorded anew for each size of its inputs, and for what ran before it. Why none was recorded: compilation_metric.cudagraph_skip_reason.
CREATE VIEW cuda_graph AS
  SELECT e.record_id, e.process_id, e.rank, e.args ->> '$.compile_id' AS label,
    (SELECT max(c.id) FROM compile c WHERE c.process_id = e.process_id AND c.label = e.args ->> '$.compile_id'
      AND c.first_record_id <= e.record_id) AS compile_id,  -- it is recorded when the compiled code first runs
    e.args ->> '$.is_backward' AS is_backward, e.start_us, e.duration_us
  FROM chromium_event e
  WHERE e.record_id IN (SELECT w.record_id FROM chromium_event_row w WHERE w.phase = 88
      AND w.name_id IN (SELECT id FROM text_row WHERE text = 'CUDAGraphNode.record'));
