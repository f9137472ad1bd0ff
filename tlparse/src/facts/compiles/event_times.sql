-- Timed events of a process: those that contain others first.
-- query TimedEventOfProcess(process_id INTEGER)
SELECT e.start_us /*REAL*/, e.duration_us /*REAL*/, e.compile_id /*INTEGER?*/, e.name_id, t.text AS name
FROM process p
  JOIN chromium_event_row e ON e.record_id BETWEEN p.first_record_id AND p.last_record_id
  JOIN text_row t ON t.id = e.name_id
WHERE p.id = :process_id
  AND e.start_us IS NOT NULL
  AND e.duration_us IS NOT NULL
  AND (SELECT r.process_id FROM record_row r WHERE r.id = e.record_id) = p.id
ORDER BY e.start_us, e.duration_us DESC, e.record_id;

-- When a compile and its backward were under way, as far as known.
-- query SpanOfCompile(process_id INTEGER)
SELECT c.id, c.start_time_us /*INTEGER?*/, c.duration_us /*INTEGER?*/,
  (SELECT min(w.start_time_us) FROM compilation_metric w WHERE w.compile_id = c.id
    AND w.kind IN ('bwd_compilation_metrics', 'aot_autograd_backward_compilation_metrics'))
    AS backward_start_us /*INTEGER?*/,
  c.backward_duration_us /*INTEGER?*/
FROM compile c
WHERE c.process_id = :process_id
ORDER BY c.id;
