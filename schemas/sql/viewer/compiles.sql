-- One row per compile, and the stacks they were called from.

-- table: compile
SELECT c.id, c.process_id, c.rank, c.start_time_us - :origin AS start_us, c.duration_us, c.backward_duration_us,
  c.compiled_autograd_id, c.frame_id, c.frame_compile_id, c.generation, c.line, c.stack_id, c.is_synthetic,
  coalesce(a.n, 1) AS attempts, coalesce(g.n, 0) AS graphs, coalesce(b.n, 0) AS graph_breaks,
  coalesce(m.n, 0) AS recompiles, f.dynamo_us, f.aot_autograd_us, f.inductor_us, f.code_gen_us,
  w.start_time_us - :origin AS backward_start_us, w.inductor_us AS backward_inductor_us, f.graph_op_count AS ops,
  f.guard_count AS guards, coalesce(e.hits, 0) AS hits, coalesce(e.misses, 0) AS misses,
  coalesce(e.guard_misses, 0) AS guard_misses,
  coalesce(e.remote_errors, 0) AS remote_errors, coalesce(e.bypasses, 0) AS bypasses, coalesce(e.disabled, 0) AS disabled,
  0 AS "|",
  c.label, c.status, c.function, c.file, coalesce(f.fail_type, w.fail_type) AS fail_type,
  substr(coalesce(f.fail_reason, w.fail_reason), 1, 500) AS fail_reason
FROM compile c
  LEFT JOIN (SELECT compile_id, count(*) AS n FROM attempt GROUP BY compile_id) a ON a.compile_id = c.id
  LEFT JOIN (SELECT compile_id, count(*) AS n FROM graph GROUP BY compile_id) g ON g.compile_id = c.id
  LEFT JOIN (SELECT compile_id, count(*) AS n FROM graph_break GROUP BY compile_id) b ON b.compile_id = c.id
  LEFT JOIN (SELECT compile_id, count(*) AS n FROM recompile GROUP BY compile_id) m ON m.compile_id = c.id
  LEFT JOIN (
    SELECT compile_id, sum(dynamo_us) AS dynamo_us, sum(aot_autograd_us) AS aot_autograd_us, sum(inductor_us) AS
        inductor_us, sum(code_gen_us) AS code_gen_us, max(graph_op_count) AS graph_op_count, max(guard_count) AS guard_count,
        max(fail_type) AS fail_type, max(fail_reason) AS fail_reason
    FROM compilation_metric
    WHERE kind = 'compilation_metrics'
    GROUP BY compile_id
  ) f ON f.compile_id = c.id
  LEFT JOIN (
    SELECT compile_id, min(start_time_us) AS start_time_us, sum(inductor_us) AS inductor_us, max(fail_type) AS fail_type,
      max(fail_reason) AS fail_reason
    FROM compilation_metric
    WHERE kind IN ('bwd_compilation_metrics', 'aot_autograd_backward_compilation_metrics')
    GROUP BY compile_id
  ) w ON w.compile_id = c.id
  LEFT JOIN (
    SELECT compile_id, sum(state = 'hit') AS hits, sum(state = 'miss') AS misses, sum(state = 'guard_miss') AS
        guard_misses, sum(state = 'remote_error') AS remote_errors, sum(state = 'bypass') AS bypasses, sum(state = 'disabled') AS disabled
    FROM cache_event
    GROUP BY compile_id
  ) e ON e.compile_id = c.id
WHERE c.process_id IN run_process
ORDER BY c.id;

-- table: frame
