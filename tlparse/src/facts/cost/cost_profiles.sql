-- The profiles of a run whose events have times, with the chosen steps that each marks. A last step
-- in which nothing begins is none: the program's last call of step() began it, and the recording ended.
-- query CostProfileRow(run_id INTEGER, rank INTEGER?, pid INTEGER?, first_step INTEGER?, last_step INTEGER?, profile_id INTEGER?, has_processes BOOLEAN, process_ids INTEGER[])
WITH marked AS MATERIALIZED (SELECT a.id, a.profile_id, a.step, a.start_ns,
    a.start_ns + a.duration_ns AS end_ns, max(a.step) OVER (PARTITION BY a.profile_id) AS last,
    min(a.step) OVER (PARTITION BY a.profile_id) AS first
  FROM annotation_row a JOIN profile p ON p.id = a.profile_id AND p.run_id = :run_id
  WHERE a.step IS NOT NULL AND a.device IS NULL),
step AS MATERIALIZED (SELECT m.id, m.profile_id, m.step, m.start_ns, m.end_ns FROM marked m
  WHERE m.step < m.last OR m.first = m.last
    OR EXISTS (SELECT 1 FROM annotation_row d WHERE d.profile_id = m.profile_id
      AND d.step = m.step AND d.device IS NOT NULL)
    OR EXISTS (SELECT 1 FROM op_run_row o WHERE o.profile_id = m.profile_id
      AND o.start_ns BETWEEN m.start_ns AND m.end_ns)
    OR EXISTS (SELECT 1 FROM compiled_slice_row c WHERE c.profile_id = m.profile_id
      AND c.start_ns BETWEEN m.start_ns AND m.end_ns)
    OR EXISTS (SELECT 1 FROM kernel_run_row r WHERE r.profile_id = m.profile_id
      AND r.start_ns BETWEEN m.start_ns AND m.end_ns))
SELECT p.id /*INTEGER*/, p.path, p.rank /*INTEGER?*/, p.process_id /*INTEGER?*/,
  n.ordinal AS launch /*INTEGER?*/, p.start_us /*INTEGER?*/, p.end_us /*INTEGER?*/, o.path AS overlaps /*TEXT?*/,
  count(a.id) AS steps /*INTEGER*/, min(a.step) AS first_step /*INTEGER?*/,
  max(a.step) AS last_step /*INTEGER?*/, min(a.start_ns) AS steps_start_ns /*INTEGER?*/,
  max(a.end_ns) AS steps_end_ns /*INTEGER?*/,
  (SELECT min(s.step) FROM step s WHERE s.profile_id = p.id) AS first_marked /*INTEGER?*/,
  (SELECT max(s.step) FROM step s WHERE s.profile_id = p.id) AS last_marked /*INTEGER?*/
FROM profile p JOIN profile_kind k ON k.name = p.kind AND k.has_times
  LEFT JOIN profile o ON o.id = p.overlaps_id
  LEFT JOIN process q ON q.id = p.process_id LEFT JOIN launch n ON n.id = q.launch_id
  LEFT JOIN step a ON a.profile_id = p.id
    AND (:first_step IS NULL OR a.step >= :first_step)
    AND (:last_step IS NULL OR a.step <= :last_step)
WHERE p.run_id = :run_id AND (:rank IS NULL OR p.rank = :rank) AND (:pid IS NULL OR coalesce(p.pid, q.pid) = :pid)
  AND (:profile_id IS NULL OR p.id = :profile_id)
  AND (NOT :has_processes OR p.process_id IN (SELECT value FROM json_each(:process_ids)))
GROUP BY p.id ORDER BY p.rank, p.start_us;

-- When the steps ran on a device, if the file marks them there.
-- query StepsOfDevice(profile_id INTEGER, device INTEGER, first_step INTEGER, last_step INTEGER)
SELECT min(start_ns) AS start_ns /*INTEGER?*/,
  max(start_ns + duration_ns) AS end_ns /*INTEGER?*/
FROM annotation_row
WHERE profile_id = :profile_id AND device = :device AND step BETWEEN :first_step AND :last_step;

-- query WorkOfDevice(profile_id INTEGER, device INTEGER)
SELECT start_ns /*INTEGER*/, start_ns + duration_ns AS end_ns /*INTEGER*/,
  1 AS is_kernel /*BOOLEAN*/
FROM kernel_run_row WHERE profile_id = :profile_id AND device = :device
UNION ALL SELECT start_ns, start_ns + duration_ns, 0
FROM device_copy_row WHERE profile_id = :profile_id AND device = :device;

-- query DeviceOfProfile(profile_id INTEGER)
SELECT device /*INTEGER*/ FROM kernel_run_row
WHERE profile_id = :profile_id AND device IS NOT NULL
UNION SELECT device FROM device_copy_row WHERE profile_id = :profile_id AND device IS NOT NULL
ORDER BY 1;

-- query CompiledCallTime(profile_id INTEGER)
SELECT s.start_ns, s.start_ns + s.duration_ns AS end_ns /*INTEGER*/
FROM compiled_slice_row s
  JOIN compiled_slice_link_row l ON l.slice_id = s.id AND l.is_call = 1
WHERE s.profile_id = :profile_id;

-- Kernels on the CPU and ops of Inductor of which the profile shows no graph call.
-- query CodeOutsideCallTime(profile_id INTEGER, note TEXT)
SELECT r.start_ns /*INTEGER*/, r.start_ns + r.duration_ns AS end_ns /*INTEGER*/
FROM kernel_run_row r JOIN kernel_run_link_row l ON l.kernel_run_id = r.id
WHERE r.profile_id = :profile_id AND r.device IS NULL
  AND l.note_id = (SELECT min(id) FROM text_row WHERE text = :note)
UNION ALL SELECT o.start_ns, o.start_ns + o.duration_ns
FROM op_run_row o LEFT JOIN op_run_link_row l ON l.op_run_id = o.id
WHERE o.profile_id = :profile_id AND l.slice_id IS NULL
  AND (o.file_id IS NOT NULL
    OR o.name_id IN (SELECT id FROM text_row WHERE text LIKE 'aoti\_torch\_%' ESCAPE '\'));

-- Compiles of the measured process, and the phases of them that have times: a lazy backward is
-- compiled later than its forward.
-- query CompilingTime(process_id INTEGER, start_us INTEGER, end_us INTEGER)
SELECT start_time_us * 1000 AS start_ns /*INTEGER*/,
  (start_time_us + duration_us) * 1000 AS end_ns /*INTEGER*/
FROM compile
WHERE process_id = :process_id AND start_time_us IS NOT NULL AND duration_us IS NOT NULL
UNION ALL SELECT CAST(e.start_us AS INTEGER) * 1000,
  CAST(e.start_us + e.duration_us AS INTEGER) * 1000
FROM process p
  JOIN chromium_event_row e ON e.record_id BETWEEN p.first_record_id AND p.last_record_id
  JOIN compile c ON c.id = e.compile_id AND c.process_id = p.id
WHERE p.id = :process_id AND e.start_us < :end_us AND e.start_us + e.duration_us > :start_us;

-- Waits on the CPU in which another thread's collective ends; they are ops, and in generated code
-- external kernels.
-- query TensorWaitTime(profile_id INTEGER, start_ns INTEGER, end_ns INTEGER)
SELECT total(o.duration_ns) / 1e3 AS us /*REAL*/
FROM op_run_row o JOIN text_row t ON t.id = o.name_id
WHERE o.profile_id = :profile_id AND o.start_ns >= :start_ns AND o.start_ns < :end_ns
  AND t.text LIKE '%::wait_tensor';

-- What replays of CUDA graphs ran on devices, by the call that launched each of them.
-- query ReplayedTime(profile_id INTEGER, start_ns INTEGER, end_ns INTEGER)
SELECT count(DISTINCT d.id) AS replays /*INTEGER*/, total(r.duration_ns) / 1e3 AS us /*REAL*/
FROM device_launch_row d JOIN text_row t ON t.id = d.name_id
  JOIN kernel_run_row r ON r.profile_id = d.profile_id AND r.correlation = d.correlation
  LEFT JOIN kernel_run_link_row l ON l.kernel_run_id = r.id
WHERE d.profile_id = :profile_id AND t.text LIKE '%GraphLaunch%' AND r.device IS NOT NULL
  AND coalesce(l.enqueued_ns, r.start_ns) >= :start_ns
  AND coalesce(l.enqueued_ns, r.start_ns) < :end_ns;

-- What the import found missing in a profile.
-- query ProfileProblem(profile_id INTEGER)
SELECT message, count(*) AS count /*INTEGER*/ FROM import_log
WHERE profile_id = :profile_id AND is_damage
GROUP BY message ORDER BY min(id) LIMIT 5;

-- Which profiles there are, to say which of the filters left none.
-- query ProfilesThereAre(run_id INTEGER, rank INTEGER?, pid INTEGER?)
WITH counted AS (SELECT p.id, p.rank, p.overlaps_id,
    (:rank IS NULL OR p.rank = :rank) AND (:pid IS NULL OR coalesce(p.pid, q.pid) = :pid) AS is_asked FROM profile p
  JOIN profile_kind k ON k.name = p.kind AND k.has_times LEFT JOIN process q ON q.id = p.process_id WHERE p.run_id = :run_id)
SELECT count(*) AS count /*INTEGER*/,
  count(*) FILTER (WHERE c.is_asked) AS asked /*INTEGER*/,
  (SELECT group_concat(rank, ', ') FROM (SELECT DISTINCT rank FROM counted
    WHERE rank IS NOT NULL ORDER BY rank LIMIT 20)) AS ranks /*TEXT?*/,
  (SELECT min(a.step) FROM annotation_row a JOIN profile q ON q.id = a.profile_id
    WHERE q.id IN (SELECT id FROM counted WHERE overlaps_id IS NULL AND is_asked))
    AS first_step /*INTEGER?*/,
  (SELECT max(a.step) FROM annotation_row a JOIN profile q ON q.id = a.profile_id
    WHERE q.id IN (SELECT id FROM counted WHERE overlaps_id IS NULL AND is_asked))
    AS last_step /*INTEGER?*/
FROM counted c;
