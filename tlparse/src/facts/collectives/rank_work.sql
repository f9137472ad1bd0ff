-- What ran on the devices of a rank by its profile, without the kernels that wait for other ranks. By time.
-- query DeviceRunOfRank(run_id INTEGER, rank INTEGER)
SELECT k.device * 1000 + coalesce(k.stream, 0) AS thread_id /*INTEGER*/, k.start_ns /*INTEGER*/,
  k.start_ns + k.duration_ns AS end_ns /*INTEGER*/, k.name_id /*INTEGER*/
FROM profile p JOIN kernel_run_row k ON k.profile_id = p.id JOIN text_row t ON t.id = k.name_id
WHERE p.run_id = :run_id AND p.rank = :rank AND p.kind = 'kineto' AND k.device IS NOT NULL
  AND t.text NOT LIKE 'nccl%Kernel%' AND t.text NOT LIKE 'rccl%Kernel%'
ORDER BY 1, 2, 3 DESC;

-- What ran on the CPU of a rank by its profile: ops, kernels of generated code, calls of compiled graphs. By thread and time,
-- outer ones first.
-- query RunOfRank(run_id INTEGER, rank INTEGER)
SELECT coalesce(o.thread_id, 0) AS thread_id /*INTEGER*/, o.start_ns /*INTEGER*/, o.start_ns + o.duration_ns AS end_ns /*INTEGER*/, o.name_id /*INTEGER*/
FROM profile p JOIN op_run_row o ON o.profile_id = p.id
WHERE p.run_id = :run_id AND p.rank = :rank AND p.kind = 'kineto'
UNION ALL SELECT coalesce(k.thread_id, 0), k.start_ns, k.start_ns + k.duration_ns, k.name_id
FROM profile p JOIN kernel_run_row k ON k.profile_id = p.id
WHERE p.run_id = :run_id AND p.rank = :rank AND p.kind = 'kineto' AND k.device IS NULL
UNION ALL SELECT coalesce(s.thread_id, 0), s.start_ns, s.start_ns + s.duration_ns, 0
FROM profile p JOIN compiled_slice_row s ON s.profile_id = p.id JOIN compiled_slice_kind c ON c.id = s.kind
WHERE p.run_id = :run_id AND p.rank = :rank AND p.kind = 'kineto' AND c.is_call = 1
ORDER BY 1, 2, 3 DESC;

-- The names of ops and kernels.
-- query NameOfRankRun(run_id INTEGER)
SELECT t.id /*INTEGER*/, t.text AS name FROM text_row t
WHERE t.id IN (SELECT o.name_id FROM op_run_row o JOIN profile p ON p.id = o.profile_id WHERE p.run_id = :run_id AND p.kind = 'kineto'
  UNION SELECT k.name_id FROM kernel_run_row k JOIN profile p ON p.id = k.profile_id WHERE p.run_id = :run_id);

-- The Python frames of a rank that its profile holds, of threads that run ops: others may sleep by design. By thread and
-- time, outer ones first.
-- query FrameOfRank(run_id INTEGER, rank INTEGER)
SELECT coalesce(y.thread_id, 0) AS thread_id /*INTEGER*/, y.start_ns /*INTEGER*/, y.start_ns + y.duration_ns AS end_ns /*INTEGER*/,
  y.name_id /*INTEGER*/, t.text AS name
FROM profile p JOIN python_frame_row y ON y.profile_id = p.id JOIN text_row t ON t.id = y.name_id
WHERE p.run_id = :run_id AND p.rank = :rank AND p.kind = 'kineto'
  AND (y.profile_id, coalesce(y.thread_id, 0)) IN (SELECT DISTINCT o.profile_id, coalesce(o.thread_id, 0) FROM op_run_row o JOIN profile q ON q.id = o.profile_id WHERE q.run_id = :run_id)
ORDER BY 1, 2, 3 DESC, y.id;
