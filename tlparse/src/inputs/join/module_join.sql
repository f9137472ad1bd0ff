-- query FrameOfModule(profile_id INTEGER, prefix_length INTEGER, prefix TEXT)
SELECT y.id, coalesce(y.thread_id, 0) AS thread_id /*INTEGER*/, y.start_ns,
  y.start_ns + y.duration_ns AS end_ns /*INTEGER*/, y.name_id
FROM python_frame_row y
WHERE y.profile_id = :profile_id AND y.name_id IN (SELECT id FROM text_row
  WHERE substr(text, 1, :prefix_length) = :prefix);

-- query KernelRunToLink(profile_id INTEGER)
SELECT id, device IS NOT NULL AS is_on_device /*BOOLEAN*/, correlation, external_id,
  coalesce(thread_id, 0) AS thread_id /*INTEGER*/, start_ns
FROM kernel_run_row WHERE profile_id = :profile_id ORDER BY id;

-- query LaunchMoment(profile_id INTEGER)
SELECT correlation AS number /*INTEGER*/, coalesce(thread_id, 0) AS thread_id /*INTEGER*/, start_ns
FROM device_launch_row WHERE profile_id = :profile_id;

-- query OpMoment(profile_id INTEGER)
SELECT external_id AS number /*INTEGER*/, coalesce(thread_id, 0) AS thread_id /*INTEGER*/, start_ns
FROM op_run_row WHERE profile_id = :profile_id
  AND external_id IN (SELECT external_id FROM kernel_run_row WHERE profile_id = :profile_id);
