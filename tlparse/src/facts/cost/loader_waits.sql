-- The calls of loaders for the next batch, by profile and thread.
-- query LoaderCall(run_id INTEGER)
SELECT p.id AS profile_id /*INTEGER*/, p.path, p.rank /*INTEGER?*/, a.thread_id /*INTEGER*/, a.start_ns, a.start_ns + a.duration_ns AS end_ns /*INTEGER*/, t.text AS name
FROM profile p JOIN annotation_row a ON a.profile_id = p.id JOIN text_row t ON t.id = a.name_id
WHERE p.run_id = :run_id AND p.overlaps_id IS NULL AND a.device IS NULL AND a.thread_id IS NOT NULL
  AND t.text GLOB 'enumerate(DataLoader)#*.__next__'
ORDER BY p.id, a.thread_id, a.start_ns;

-- Python frames of a thread, in order of their starts.
-- query FrameOfThread(profile_id INTEGER, thread_id INTEGER)
SELECT t.text AS name, y.start_ns, y.start_ns + y.duration_ns AS end_ns /*INTEGER*/
FROM python_frame_row y JOIN text_row t ON t.id = y.name_id
WHERE y.profile_id = :profile_id AND y.thread_id = :thread_id ORDER BY y.start_ns, y.id;

-- query BusyTime(profile_id INTEGER)
SELECT start_ns /*INTEGER*/, start_ns + duration_ns AS end_ns /*INTEGER*/ FROM kernel_run_row WHERE profile_id = :profile_id AND device IS NOT NULL
UNION ALL SELECT start_ns, start_ns + duration_ns FROM device_copy_row WHERE profile_id = :profile_id AND device IS NOT NULL
ORDER BY 1;
