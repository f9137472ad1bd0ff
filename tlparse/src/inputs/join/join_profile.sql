-- query SliceToJoin(profile_id INTEGER)
SELECT s.id, s.kind, coalesce(s.thread_id, 0) AS thread_id /*INTEGER*/, s.start_ns,
  s.start_ns + s.duration_ns AS end_ns /*INTEGER*/, coalesce(t.text, '') AS name /*TEXT*/,
  s.sequence_number, s.external_id, CASE WHEN t.text IS NULL THEN 0 ELSE s.name_id
  END AS name_id /*INTEGER*/
FROM compiled_slice_row s LEFT JOIN text_row t ON t.id = s.name_id WHERE s.profile_id = :profile_id;

-- query DeviceLaunchToJoin(profile_id INTEGER)
SELECT correlation, coalesce(thread_id, 0) AS thread_id /*INTEGER*/, start_ns,
  name_id IN (SELECT id FROM text_row WHERE text LIKE '%GraphLaunch%') AS is_replay /*BOOLEAN*/
FROM device_launch_row WHERE profile_id = :profile_id;

-- query CollectiveRunToJoin(profile_id INTEGER)
SELECT id, coalesce(thread_id, 0) AS thread_id /*INTEGER*/, start_ns /*INTEGER*/
FROM collective_run_row WHERE profile_id = :profile_id;

-- Ops, and runs of CPU kernels.
-- query RunToJoin(profile_id INTEGER)
SELECT id /*INTEGER*/, name_id /*INTEGER*/, coalesce(thread_id, 0) AS thread_id /*INTEGER*/,
  start_ns /*INTEGER*/, duration_ns /*INTEGER*/, external_id /*INTEGER?*/, file_id /*INTEGER*/,
  1 AS is_op /*BOOLEAN*/
FROM op_run_row WHERE profile_id = :profile_id
UNION ALL SELECT id, name_id, coalesce(thread_id, 0), start_ns, duration_ns, NULL, NULL, 0
FROM kernel_run_row WHERE profile_id = :profile_id AND device IS NULL;

-- query AnyDeviceKernel(profile_id INTEGER)
SELECT id FROM kernel_run_row WHERE profile_id = :profile_id AND device IS NOT NULL LIMIT 1;
