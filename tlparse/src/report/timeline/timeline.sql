-- Profiles, recorder dumps and snapshots of a run. One that covers the time of an earlier one of its process is left out.
-- query TimelineProfile(run_id INTEGER)
SELECT id, path, process_id, rank, pid, host, start_us FROM profile
WHERE run_id = :run_id AND overlaps_id IS NULL ORDER BY start_us, id;

-- From when to when the log of a process has timed events.
-- query TimelineSpan(process_id INTEGER, first INTEGER, last INTEGER)
SELECT min(e.start_us) AS start_us /*REAL?*/
FROM chromium_event_row e JOIN record_row r ON r.id = e.record_id
WHERE e.record_id BETWEEN :first AND :last AND r.process_id = :process_id AND e.start_us > 0;

-- The parts of a run: from_ns, to_ns: what runs between them; compiles: a list of ids. NULL: all.

-- Timed events of the compiler, with the end of the process's log.
-- query TimelineCompileEvent(process_id INTEGER, first INTEGER, last INTEGER, from_ns INTEGER?, to_ns INTEGER?, compiles TEXT?)
SELECT e.record_id, n.text AS name, e.phase, e.start_us, e.duration_us, e.tid, p.last_record_us
FROM chromium_event_row e JOIN record_row r ON r.id = e.record_id JOIN process p ON p.id = r.process_id
  JOIN text_row n ON n.id = e.name_id
WHERE e.record_id BETWEEN :first AND :last AND r.process_id = :process_id AND e.start_us IS NOT NULL
  AND (:to_ns IS NULL OR e.start_us < :to_ns / 1e3)
  AND (:from_ns IS NULL OR e.start_us + coalesce(e.duration_us, iif(e.phase = 66, p.last_record_us - e.start_us, 0), 0) >= :from_ns / 1e3)
  AND (:compiles IS NULL OR e.compile_id IN (SELECT value FROM json_each(:compiles)))
ORDER BY e.tid, e.start_us, iif(e.phase = 66, p.last_record_us - e.start_us, e.duration_us) DESC, e.record_id;

-- query TimelineEventArgs(record_id INTEGER)
SELECT args /*TEXT*/ FROM chromium_event WHERE record_id = :record_id;

-- The slices of a profile, thread by thread, by their start, the longer first: one that is inside another comes after it. `kind`: of
-- compiled code. `work_id`: of device work the call that queued it, of such a call itself, if it is the first of its correlation. Kernels that
-- the join found among ops and Python frames are these.
-- query TimelineSlice(profile_id INTEGER, from_ns INTEGER?, to_ns INTEGER?, compiles TEXT?)
WITH slice(category, kind, id, thread_id, device, stream, start_ns, duration_ns, name_id, compile_id, graph_id, external_id, correlation,
    sequence_number, shapes_id, file_id, line, grid_id, block_id, size_bytes, work_id) AS (
  SELECT iif(device IS NULL, 'user_annotation', 'gpu_user_annotation'), NULL, id, thread_id, device, stream, start_ns, duration_ns, name_id,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM annotation_row WHERE profile_id = :profile_id
  UNION ALL SELECT k.name, s.kind, s.id, s.thread_id, s.device, s.stream, s.start_ns, s.duration_ns, s.name_id, l.compile_id, l.graph_id,
    s.external_id, NULL, s.sequence_number, NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM compiled_slice_row s JOIN compiled_slice_kind k ON k.id = s.kind LEFT JOIN compiled_slice_link_row l ON l.slice_id = s.id
  WHERE s.profile_id = :profile_id AND s.op_run_id IS NULL
  UNION ALL SELECT 'cpu_op', NULL, o.id, o.thread_id, NULL, NULL, o.start_ns, o.duration_ns, o.name_id, coalesce(l.compile_id, s.compile_id),
    s.graph_id, o.external_id, NULL, o.sequence_number, o.shapes_id, o.file_id, NULL, NULL, NULL, NULL, NULL
  FROM op_run_row o LEFT JOIN op_run_link_row l ON l.op_run_id = o.id LEFT JOIN compiled_slice_link_row s ON s.slice_id = l.slice_id
  WHERE o.profile_id = :profile_id
  UNION ALL SELECT 'python_function', NULL, id, thread_id, NULL, NULL, start_ns, duration_ns, name_id, NULL, NULL, NULL, NULL, NULL, NULL,
    file_id, line, NULL, NULL, NULL, NULL
  FROM python_frame_row WHERE profile_id = :profile_id
  UNION ALL SELECT 'kernel', NULL, k.id, k.thread_id, k.device, k.stream, k.start_ns, k.duration_ns, k.name_id, s.compile_id, s.graph_id,
    k.external_id, k.correlation, NULL, NULL, NULL, NULL, k.grid_id, k.block_id, NULL,
    (SELECT min(d.id) FROM device_launch_row d WHERE d.profile_id = k.profile_id AND d.correlation = k.correlation AND (:to_ns IS NULL OR d.start_ns < :to_ns) AND (:from_ns IS NULL OR d.start_ns + d.duration_ns >= :from_ns))
  FROM kernel_run_row k LEFT JOIN kernel_run_link_row l ON l.kernel_run_id = k.id
    LEFT JOIN compiled_slice_link_row s ON s.slice_id = l.slice_id
  WHERE k.profile_id = :profile_id AND k.op_run_id IS NULL AND k.frame_id IS NULL
  UNION ALL SELECT 'gpu_' || c.kind, NULL, c.id, NULL, coalesce(c.device, -1), c.stream, c.start_ns, c.duration_ns, c.name_id, NULL, NULL,
    c.external_id, c.correlation, NULL, NULL, NULL, NULL, NULL, NULL, c.size_bytes,
    (SELECT min(d.id) FROM device_launch_row d WHERE d.profile_id = c.profile_id AND d.correlation = c.correlation AND (:to_ns IS NULL OR d.start_ns < :to_ns) AND (:from_ns IS NULL OR d.start_ns + d.duration_ns >= :from_ns))
  FROM device_copy_row c WHERE c.profile_id = :profile_id
  UNION ALL SELECT 'launch', NULL, x.id, x.thread_id, NULL, NULL, x.start_ns, x.duration_ns, x.name_id, iif(:compiles IS NULL, NULL, (SELECT s.compile_id
      FROM kernel_run_row k JOIN kernel_run_link_row l ON l.kernel_run_id = k.id JOIN compiled_slice_link_row s ON s.slice_id = l.slice_id
      WHERE k.profile_id = x.profile_id AND k.correlation = x.correlation AND (:compiles IS NULL OR s.compile_id IN (SELECT value FROM json_each(:compiles))) LIMIT 1)), NULL, NULL, x.correlation,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    (SELECT min(d.id) FROM device_launch_row d WHERE d.profile_id = x.profile_id AND d.correlation = x.correlation AND (:to_ns IS NULL OR d.start_ns < :to_ns) AND (:from_ns IS NULL OR d.start_ns + d.duration_ns >= :from_ns))
  FROM device_launch_row x WHERE x.profile_id = :profile_id)
SELECT category /*TEXT*/, kind /*compiled_slice_kind?*/, id /*INTEGER*/, thread_id /*INTEGER?*/, device /*INTEGER?*/, stream /*INTEGER?*/,
  start_ns /*INTEGER*/, duration_ns /*INTEGER*/, name_id /*INTEGER?*/, compile_id /*INTEGER?*/, graph_id /*INTEGER?*/,
  external_id /*INTEGER?*/, correlation /*INTEGER?*/, sequence_number /*INTEGER?*/, shapes_id /*INTEGER?*/, file_id /*INTEGER?*/,
  line /*INTEGER?*/, grid_id /*INTEGER?*/, block_id /*INTEGER?*/, size_bytes /*INTEGER?*/, work_id /*INTEGER?*/
FROM slice WHERE (:to_ns IS NULL OR start_ns < :to_ns) AND (:from_ns IS NULL OR start_ns + duration_ns >= :from_ns) AND (:compiles IS NULL OR compile_id IN (SELECT value FROM json_each(:compiles)))
ORDER BY device, stream, thread_id, start_ns, duration_ns DESC;

-- The device work that a call queued: 0 a kernel, 1 a copy.
-- query TimelineWork(profile_id INTEGER, correlation INTEGER, from_ns INTEGER?, to_ns INTEGER?, compiles TEXT?)
SELECT w.is_copy /*INTEGER*/, w.id /*INTEGER*/ FROM (
  SELECT 0 AS is_copy, k.id, k.start_ns, k.duration_ns, s.compile_id
  FROM kernel_run_row k LEFT JOIN kernel_run_link_row l ON l.kernel_run_id = k.id
    LEFT JOIN compiled_slice_link_row s ON s.slice_id = l.slice_id
  WHERE k.profile_id = :profile_id AND k.correlation = :correlation AND k.op_run_id IS NULL AND k.frame_id IS NULL
  UNION ALL SELECT 1, id, start_ns, duration_ns, NULL FROM device_copy_row
  WHERE profile_id = :profile_id AND correlation = :correlation) w
WHERE (:to_ns IS NULL OR w.start_ns < :to_ns) AND (:from_ns IS NULL OR w.start_ns + w.duration_ns >= :from_ns) AND (:compiles IS NULL OR w.compile_id IN (SELECT value FROM json_each(:compiles)));

-- query TimelineText(id INTEGER)
SELECT text FROM text_row WHERE id = :id;

-- query TimelineThreadName(id INTEGER)
SELECT pid, tid, name /*TEXT?*/ FROM profile_thread WHERE id = :id;

-- query TimelineCompileLabel(id INTEGER)
SELECT label FROM compile WHERE id = :id;

-- query TimelineDirection(id INTEGER)
SELECT direction FROM graph WHERE id = :id;

-- Collectives with a time, group by group.
-- query TimelineCollective(profile_id INTEGER, from_ns INTEGER?, to_ns INTEGER?, compiles TEXT?)
SELECT c.id, o.text AS op, g.text AS group_name, c.group_size, c.sequence_number, c.is_p2p, c.input_shapes, c.output_shapes, d.text AS dtype,
  coalesce(c.reduce_op, l.reduce_op) AS reduce_op /*TEXT*/,
  CASE WHEN c.state = 'completed' OR c.end_ns IS NOT NULL OR e.is_retired THEN 'done' ELSE c.state END AS state /*TEXT*/,
  c.start_ns, c.end_ns, f.text AS file, l.line
FROM collective_run_row c LEFT JOIN collective_run_link_row l ON l.collective_run_id = c.id LEFT JOIN text_row o ON o.id = c.op_id
  LEFT JOIN recorder_entry_row e ON e.id = c.entry_id
  LEFT JOIN text_row g ON g.id = c.group_id LEFT JOIN text_row d ON d.id = c.dtype_id LEFT JOIN text_row f ON f.id = l.file_id
WHERE c.profile_id = :profile_id AND c.start_ns IS NOT NULL
  AND (:to_ns IS NULL OR c.start_ns < :to_ns) AND (:from_ns IS NULL OR coalesce(c.end_ns, c.start_ns) >= :from_ns)
  AND (:compiles IS NULL OR l.graph_id IN (SELECT id FROM graph WHERE compile_id IN (SELECT value FROM json_each(:compiles))))
ORDER BY c.group_id, c.start_ns, c.end_ns DESC, c.id;

-- What is allocated and reserved before the first event; reserved_bytes: NULL, it is not known.
-- query TimelineSnapshot(profile_id INTEGER)
SELECT s.id, s.source, s.device, s.base_bytes, s.end_reserved_bytes - (SELECT coalesce(sum((a.is_reserve - a.is_release) * e.size_bytes), 0)
  FROM memory_event_row e JOIN memory_action a ON a.id = e.action WHERE e.snapshot_id = s.id) AS reserved_bytes /*INTEGER?*/
FROM memory_snapshot_row s WHERE s.profile_id = :profile_id ORDER BY s.id;

-- query TimelineMemory(snapshot_id INTEGER)
SELECT (a.is_alloc - a.is_free) * e.size_bytes AS alive_bytes /*INTEGER*/, (a.is_reserve - a.is_release) * e.size_bytes AS held_bytes /*INTEGER*/,
  e.size_bytes, e.time_ns, e.reserved_bytes, e.action AS kind
FROM memory_event_row e JOIN memory_action a ON a.id = e.action WHERE e.snapshot_id = :snapshot_id ORDER BY e.ordinal, e.id;

-- The time of steps of the profiler, in the chosen profiles.
-- query TimelineSteps(profiles INTEGER[], first INTEGER, last INTEGER)
SELECT min(start_ns) AS start_ns /*INTEGER?*/, max(start_ns + duration_ns) AS end_ns /*INTEGER?*/ FROM annotation_row
WHERE profile_id IN (SELECT value FROM json_each(:profiles)) AND step BETWEEN :first AND :last AND device IS NULL;

-- query TimelineCompile(run_id INTEGER, label TEXT)
SELECT c.id FROM compile c JOIN process p ON p.id = c.process_id JOIN log_file f ON f.id = p.log_file_id
WHERE f.run_id = :run_id AND c.label = :label ORDER BY c.id;
