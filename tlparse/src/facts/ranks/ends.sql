-- The failure of a compile: what its own record or the metrics say of it, the former first.
-- query FailureOfLastCompile(compile_id INTEGER)
SELECT coalesce(t.text, '') AS type /*TEXT*/, coalesce(r.text, '') AS reason /*TEXT*/,
  c.local_us + p.time_shift_us AS time_us /*INTEGER?*/
FROM failure_row f JOIN text_row k ON k.id = f.kind_id
  LEFT JOIN text_row t ON t.id = f.type_id LEFT JOIN text_row r ON r.id = f.reason_id
  LEFT JOIN record_row c ON c.id = f.record_id LEFT JOIN process p ON p.id = c.process_id
WHERE k.text NOT IN ('restart', 'make_fx_fail_partial') AND f.compile_id = :compile_id
ORDER BY f.record_id;

-- Processes whose recorder dump shows a call that had not ended: they lived, and waited in it.
-- query WaitingProcess(run_id INTEGER)
SELECT c.process_id /*INTEGER*/, max(c.start_ns) / 1000 AS since_us /*INTEGER*/
FROM collective_run c JOIN profile p ON p.id = c.profile_id JOIN recorder_entry_row e ON e.id = c.entry_id
WHERE p.run_id = :run_id AND c.process_id IS NOT NULL AND c.start_ns IS NOT NULL AND c.end_ns IS NULL
  AND coalesce(c.state, '') NOT IN ('completed', 'done') AND e.is_retired IS NOT 1
GROUP BY c.process_id;
