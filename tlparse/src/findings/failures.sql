-- The stack of the last record of a compile that has one, innermost frame first.
-- query FrameOfLastRecord(compile_id INTEGER)
WITH RECURSIVE frame(id, depth) AS (
  SELECT (SELECT stack_id FROM record_row
    WHERE compile_id = :compile_id AND stack_id IS NOT NULL ORDER BY id DESC LIMIT 1), 0
  UNION ALL SELECT s.parent_id, f.depth + 1 FROM frame f JOIN stack_frame s ON s.id = f.id)
SELECT s.file, s.line /*INTEGER*/, s.code
FROM frame f JOIN stack_frame s ON s.id = f.id ORDER BY f.depth;

-- The pass of Inductor that was run last in a compile whose exception came through the code that runs
-- passes, without "pass." before its name: "post_grad_passes.stable_sort".
-- query PassOfFailure(compile_id INTEGER)
SELECT substr(n.text, 6) AS name /*TEXT*/ FROM chromium_event_row e JOIN text_row n ON n.id = e.name_id
WHERE e.compile_id = :compile_id AND n.text LIKE 'pass.%' AND EXISTS (
  SELECT 1 FROM record_row r JOIN text_row k ON k.id = r.name_id JOIN payload_row p ON p.id = r.payload_id
  WHERE r.compile_id = e.compile_id AND k.text = 'dynamo_error'
    AND instr(p.content, 'graph_transform_observer.py') > 0)
ORDER BY e.record_id DESC LIMIT 1;

-- The failures of compiles. dynamo_error and the metrics' fail_type report one exception: the former
-- has the user's line, the latter has the reason alone.
-- query FailureOfCompile(in_logs SQL)
SELECT f.compile_id /*INTEGER*/, k.text AS kind, t.text AS type, r.text AS reason,
  u.text AS user_file /*TEXT?*/, f.user_line /*INTEGER*/, f.record_id,
  c.local_us + p.time_shift_us AS time_us /*INTEGER?*/, b.text AS record_kind
FROM failure_row f JOIN text_row k ON k.id = f.kind_id
  LEFT JOIN text_row t ON t.id = f.type_id LEFT JOIN text_row r ON r.id = f.reason_id
  LEFT JOIN text_row u ON u.id = f.user_file_id
  LEFT JOIN record_row c ON c.id = f.record_id LEFT JOIN process p ON p.id = c.process_id
  LEFT JOIN text_row b ON b.id = c.kind_id
WHERE k.text NOT IN ('restart', 'make_fx_fail_partial') AND {in_logs} ORDER BY f.record_id;

-- Whether a compile was called from a test.
-- query IsInTest(compile_id INTEGER)
WITH RECURSIVE frame(id) AS (
  SELECT (SELECT stack_id FROM record_row
    WHERE compile_id = :compile_id AND stack_id IS NOT NULL ORDER BY id DESC LIMIT 1)
  UNION ALL SELECT s.parent_id FROM frame f JOIN stack_frame s ON s.id = f.id)
SELECT 1 AS found /*INTEGER*/ FROM frame f JOIN stack_frame s ON s.id = f.id
WHERE s.file GLOB '*/_pytest/*' OR s.file GLOB '*/unittest/case.py' LIMIT 1;
