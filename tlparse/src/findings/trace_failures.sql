-- Failed traces of make_fx that belong to no compile.
-- query FailedMakeFx(in_logs SQL)
SELECT r.id, r.process_id, r.local_us + p.time_shift_us AS time_us /*INTEGER?*/, y.content
FROM failure_row f
  JOIN text_row k ON k.id = f.kind_id
  -- The few failures first: not all records of the logs.
  CROSS JOIN record_row r ON r.id = f.record_id
  JOIN process p ON p.id = r.process_id LEFT JOIN compile c ON c.id = f.compile_id
  LEFT JOIN payload_row y ON y.id = r.payload_id
WHERE k.text = 'make_fx_fail_partial'
  -- torch.export of 2.15 gives its traces compile ids, of compiles without anything else.
  AND (c.frame_id IS NULL OR c.status = 'empty') AND NOT coalesce(c.status = 'failed', 0)
  AND {in_logs}
ORDER BY r.id;
