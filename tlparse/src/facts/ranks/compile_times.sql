-- The innermost timed event, of those that are no phase of their own, that took a compile `least_us`
-- longer than another one. Phase 88: X.
-- query EventOfExcess(own_id INTEGER, typical_id INTEGER, least_us REAL, least_event_us INTEGER)
SELECT t.text AS name,
  total(iif(c.id = :own_id, e.duration_us, 0)) AS own_us /*REAL*/,
  total(iif(c.id = :typical_id, e.duration_us, 0)) AS typical_us /*REAL*/
FROM compile c
  JOIN chromium_event_row e ON e.record_id BETWEEN c.first_record_id AND c.last_record_id
    AND e.compile_id = c.id
  JOIN text_row t ON t.id = e.name_id
WHERE c.id IN (:own_id, :typical_id) AND e.phase = 88 AND e.duration_us >= :least_event_us
  AND t.text NOT IN ('dynamo', 'entire_frame_compile', 'entire_backward_compile', 'backend_compile',
    'create_aot_dispatcher_function', 'inductor_compile', 'fx_codegen_and_compile',
    '_compile.compile_inner')
  AND t.text NOT GLOB 'compile_attempt_*' AND t.text NOT GLOB 'compile_fx*'
GROUP BY t.id HAVING own_us - typical_us >= :least_us ORDER BY own_us, t.text LIMIT 1;

-- query PhasesOfCompile(compile_id INTEGER)
SELECT total(dynamo_us) AS dynamo_us /*REAL*/, total(inductor_us) AS inductor_us /*REAL*/,
  total(backward_us) AS backward_us /*REAL*/, total(before_restart_us) AS before_restart_us /*REAL*/,
  total(gc_us) AS gc_us /*REAL*/
FROM compilation_metric_row WHERE compile_id = :compile_id;
