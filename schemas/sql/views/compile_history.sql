-- The compiles in order of time: when, how long by phase, status, graph breaks, recompiles and why, caches. total_us is that of the compile and
-- its lazy backward, NULL where the metrics of the compile itself are not in the log. graphs: those that the backend logged; of a backend that
-- logs none (aot_eager, eager) those that AOTAutograd made, else the one that Dynamo captured.
CREATE VIEW compile_history AS
  SELECT c.id AS compile_id, f.run_id, c.rank, c.process_id, c.label, c.generation, c.function, c.file, c.line, c.status,
    c.start_time_us, c.duration_us, c.backward_duration_us,
    c.duration_us + coalesce(c.backward_duration_us, 0) AS total_us,
    m.dynamo_us, m.aot_autograd_us, m.inductor_us, m.code_gen_us, m.triton_us, m.before_restart_us,
    (SELECT count(*) FROM graph_break_row b WHERE b.compile_id = c.id) AS graph_breaks,
    (SELECT nullif(count(*), 0) - 1 FROM attempt a WHERE a.compile_id = c.id) AS restarts,
    (SELECT t.text FROM recompile_row r JOIN text_row t ON t.id = r.reason_id WHERE r.compile_id = c.id ORDER BY r.record_id, r.ordinal LIMIT 1)
      AS recompile_reason,
    (SELECT p.text FROM recompile_row r JOIN text_row p ON p.id = r.prior_label_id WHERE r.compile_id = c.id ORDER BY r.record_id, r.ordinal LIMIT 1)
      AS recompile_of,
    (SELECT group_concat(layer || ' ' || state || CASE WHEN n > 1 THEN ' ×' || n ELSE '' END, ', ') FROM
      (SELECT l.text AS layer, (SELECT name FROM cache_state WHERE id = e.state) AS state, count(*) AS n
        FROM cache_event_row e JOIN text_row l ON l.id = e.layer_id WHERE e.compile_id = c.id GROUP BY 1, 2 ORDER BY 1, 2)) AS caches,
    coalesce(nullif((SELECT count(*) FROM graph g WHERE g.compile_id = c.id), 0),
      CASE WHEN c.status IN ('ok', 'restarted') THEN nullif((SELECT count(*) FROM graph_text_row t JOIN text_row s ON s.id = t.stage_id
        WHERE t.compile_id = c.id AND s.text IN ('aot_forward_graph', 'aot_backward_graph', 'aot_inference_graph')), 0) END,
      c.status IN ('ok', 'restarted') AND EXISTS (SELECT 1 FROM graph_text_row t JOIN text_row s ON s.id = t.stage_id
        WHERE t.compile_id = c.id AND s.text = 'dynamo_output_graph')) AS graphs,
    m.graph_op_count, m.guard_count,
    ft.text AS fail_type, fr.text AS fail_reason,
    (SELECT sum(x.inductor_us) FROM compilation_metric_row x JOIN text_row k ON k.id = x.kind_id WHERE x.compile_id = c.id
      AND x.record_id IS NOT m.record_id AND k.text IN ('bwd_compilation_metrics', 'aot_autograd_backward_compilation_metrics'))
      AS backward_inductor_us
  FROM compile c
  JOIN process p ON p.id = c.process_id
  JOIN log_file f ON f.id = p.log_file_id
  LEFT JOIN compilation_metric_row m ON m.record_id =
    (SELECT min(x.record_id) FROM compilation_metric_row x JOIN text_row k ON k.id = x.kind_id
      WHERE x.compile_id = c.id AND (k.text = 'compilation_metrics' OR (k.text = 'bwd_compilation_metrics' AND x.co_name_id IS NOT NULL)))
  -- The exception of a backward, or of a compile that was refused at the recompile limit: PyTorch 2.6 names its metrics as those of a backward.
  LEFT JOIN compilation_metric_row o ON m.fail_type_id IS NULL AND c.status IN ('failed', 'skipped') AND o.record_id =
    (SELECT min(x.record_id) FROM compilation_metric_row x WHERE x.compile_id = c.id AND x.fail_type_id IS NOT NULL)
  LEFT JOIN text_row ft ON ft.id = coalesce(m.fail_type_id, o.fail_type_id)
  LEFT JOIN text_row fr ON fr.id = coalesce(m.fail_reason_id, o.fail_reason_id);
