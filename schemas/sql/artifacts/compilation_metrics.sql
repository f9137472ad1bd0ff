-- compilation_metrics, bwd_compilation_metrics, their _runtime variants, aot_autograd_backward_compilation_metrics.
-- The most used fields are columns; `metrics` is the whole record.
CREATE TABLE compilation_metric_row (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),
  compile_id INTEGER REFERENCES compile(id),
  kind_id INTEGER NOT NULL REFERENCES text_row(id),
  co_name_id INTEGER REFERENCES text_row(id),
  co_filename_id INTEGER REFERENCES text_row(id),
  co_firstlineno INTEGER,      -- first line of the compiled function
  start_time_us INTEGER,       -- since the epoch
  duration_us INTEGER,         -- as logged, else the legacy seconds, else from start to end
  dynamo_us INTEGER,           -- dynamo_cumulative_compile_time_us, or the legacy seconds
  aot_autograd_us INTEGER,
  inductor_us INTEGER,
  code_gen_us INTEGER,
  triton_us INTEGER,
  backward_us INTEGER,         -- backward_cumulative_compile_time_us
  before_restart_us INTEGER,   -- spent in attempts that were discarded
  gc_us INTEGER,
  graph_op_count INTEGER,
  graph_node_count INTEGER,
  graph_input_count INTEGER,
  guard_count INTEGER,
  num_graph_breaks INTEGER,    -- as logged (2.14)
  cache_size INTEGER,          -- compiles of this frame before this one
  accumulated_cache_size INTEGER, -- compiles of this code object before this one
  has_guarded_code INTEGER,    -- 0, 1 or NULL
  fail_type_id INTEGER REFERENCES text_row(id),
  fail_reason_id INTEGER REFERENCES text_row(id),
  recompile_reason_id INTEGER REFERENCES text_row(id),
  cudagraph_skip_reason_id INTEGER REFERENCES text_row(id),
  pre_grad_pass_us INTEGER,    -- passes over graphs, by their stage
  joint_graph_pass_us INTEGER,
  post_grad_pass_us INTEGER
) STRICT;

CREATE VIEW compilation_metric AS
  SELECT m.record_id, m.compile_id, p.rank, k.text AS kind, cn.text AS co_name,
    cf.text AS co_filename, m.co_firstlineno, m.start_time_us, m.duration_us, m.dynamo_us, m.aot_autograd_us,
    m.inductor_us, m.code_gen_us, m.triton_us, m.backward_us, m.before_restart_us, m.gc_us, m.pre_grad_pass_us, m.joint_graph_pass_us, m.post_grad_pass_us, m.graph_op_count,
    m.graph_node_count, m.graph_input_count, m.guard_count, m.num_graph_breaks, m.cache_size, m.accumulated_cache_size,
    m.has_guarded_code, ft.text AS fail_type, fr.text AS fail_reason, rr.text AS recompile_reason,
    cs.text AS cudagraph_skip_reason, coalesce(r.metadata, r.envelope -> ('$."' || k.text || '"')) AS metrics
  FROM compilation_metric_row m
  JOIN record_row r ON r.id = m.record_id
  JOIN process p ON p.id = r.process_id AND m.record_id BETWEEN p.first_record_id AND p.last_record_id
  LEFT JOIN text_row k ON k.id = m.kind_id
  LEFT JOIN text_row cn ON cn.id = m.co_name_id
  LEFT JOIN text_row cf ON cf.id = m.co_filename_id
  LEFT JOIN text_row ft ON ft.id = m.fail_type_id
  LEFT JOIN text_row fr ON fr.id = m.fail_reason_id
  LEFT JOIN text_row rr ON rr.id = m.recompile_reason_id
  LEFT JOIN text_row cs ON cs.id = m.cudagraph_skip_reason_id;
