-- What the compiler tuned, by its timed events. Events that a process writes while it runs compiled code name the compile in args only.

-- One row for each set of choices that was timed while compiling: event <kernel>_template_autotuning (AlgorithmSelectorCache.autotune,
-- torch/_inductor/select_algorithm.py), best_*, choices of its argument autotune_choices_stats (_log_autotune_choices_stats there). The log has the
-- times of the best choice and of the best one of Triton, and no others. Choices whose times come from the cache leave no event.
-- And one for each kernel of Triton whose configurations were run when it was first called: events CachingAutotuner.* with a kernel_name
-- (torch/_inductor/runtime/triton_heuristics.py). They do not say which configuration won.
CREATE VIEW autotune AS
  WITH event AS MATERIALIZED (
    SELECT e.record_id, e.begin_record_id, r.process_id, n.text AS name, e.start_us, e.duration_us, e.compile_id,
      c.content -> '$.args' AS args, CASE WHEN n.text GLOB '*_template_autotuning' THEN substr(n.text, 1, length(n.text) - length('_template_autotuning'))
        WHEN n.text GLOB '*_template_precompiling' THEN substr(n.text, 1, length(n.text) - length('_template_precompiling')) END AS op, n.text GLOB '*_template_autotuning' AS is_timing
    FROM text_row n CROSS JOIN chromium_event_row e ON e.name_id = n.id  -- no event is read where nothing was tuned
      JOIN record_row r ON r.id = e.record_id JOIN payload_row c ON c.id = r.payload_id
    WHERE e.phase = 88 AND typeof(c.content) = 'text' AND json_valid(c.content)
      AND (n.text GLOB '*_template_autotuning' OR n.text GLOB '*_template_precompiling' OR n.text GLOB 'CachingAutotuner.*')),
  tuned AS (
    SELECT e.*, (SELECT max(p.record_id) FROM event p WHERE p.process_id = e.process_id AND p.op = e.op AND p.is_timing = 0
        AND p.record_id < e.begin_record_id AND NOT EXISTS (SELECT 1 FROM event b WHERE b.process_id = e.process_id AND b.op = e.op
          AND b.is_timing = 1 AND b.record_id BETWEEN p.record_id AND e.begin_record_id)) AS precompile_record_id,
      coalesce((SELECT max(c.id) FROM compile c WHERE c.process_id = e.process_id AND c.label = e.args ->> '$.compile_id'
        AND c.first_record_id <= e.record_id), e.compile_id) AS named_compile_id, e.args ->> '$.autotune_choices_stats' AS stats
    FROM event e WHERE e.is_timing = 1 OR e.op IS NULL AND e.args ->> '$.kernel_name' IS NOT NULL)
  SELECT t.record_id, t.process_id, p.rank, t.named_compile_id AS compile_id, t.op IS NULL AS is_at_run_time, t.name AS event,
    coalesce(t.op, t.args ->> '$.kernel_name') AS kernel, t.args ->> '$.autotune_shape' AS shapes, t.args ->> '$.autotune_strides' AS strides,
    t.args ->> '$.autotune_dtypes' AS dtypes, t.stats ->> '$.num_choices' AS choices, t.stats ->> '$.num_triton_choices' AS triton_choices,
    t.stats ->> '$.best_kernel' AS best, t.stats ->> '$.best_kernel_desc' AS best_description, t.stats ->> '$.best_time' AS best_ms,
    t.stats ->> '$.best_triton_pos' + 1 AS triton_place,  -- of the best choice of Triton among all: 1 is the best
    coalesce(t.stats ->> '$.best_triton_kernel', CASE WHEN t.stats ->> '$.best_triton_pos' = 0 THEN t.stats ->> '$.best_kernel' END) AS best_triton,
    coalesce(t.stats ->> '$.best_triton_kernel_desc', CASE WHEN t.stats ->> '$.best_triton_pos' = 0 THEN t.stats ->> '$.best_kernel_desc' END)
      AS best_triton_description,
    coalesce(t.stats ->> '$.best_triton_time', CASE WHEN t.stats ->> '$.best_triton_pos' = 0 THEN t.stats ->> '$.best_time' END) AS best_triton_ms,
    t.start_us, t.duration_us, f.duration_us AS precompile_us, t.precompile_record_id,
    (SELECT count(*) FROM json_each(f.args ->> '$.metadata', '$.exceptions')) AS failed
  FROM tuned t JOIN process p ON p.id = t.process_id LEFT JOIN event f ON f.record_id = t.precompile_record_id;

-- Choices that could not be compiled: argument metadata of the event <kernel>_template_precompiling (_log_autotune_exceptions,
-- torch/_inductor/select_algorithm.py). Triton names what a configuration needs more of than the device has in its message.
CREATE VIEW autotune_failure AS
  SELECT e.record_id, e.process_id, e.rank, e.compile_id, substr(e.name, 1, length(e.name) - length('_template_precompiling')) AS kernel, x.key AS ordinal,
    x.value ->> '$.choice_type' AS choice_type, x.value ->> '$.choice' AS choice, x.value ->> '$.exception' AS exception,
    x.value ->> '$.exception_message' AS message,
    x.value ->> '$.exception_message' LIKE '%out of resource%' OR x.value ->> '$.exception_message' LIKE '%OutOfMemoryError%' AS is_out_of_memory
  FROM chromium_event e, json_each(e.args ->> '$.metadata', '$.exceptions') x
  WHERE e.record_id IN (SELECT w.record_id FROM text_row n CROSS JOIN chromium_event_row w ON w.name_id = n.id
      WHERE w.phase = 88 AND n.text GLOB '*_template_precompiling')
    AND json_valid(e.args ->> '$.metadata');
