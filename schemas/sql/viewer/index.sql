-- The run, its files and processes, counts.

-- table: run
SELECT id, id = :run AS is_current, 0 AS "|", name, created_at, tool_version
FROM run
ORDER BY id;

-- table: log_file
SELECT f.id, f.size_bytes, f.record_count, f.line_count, f.name_rank, coalesce(i.n, 0) AS problems, 0 AS "|",
  f.path, f.compression
FROM log_file f
  LEFT JOIN (
    SELECT log_file_id, count(*) AS n
    FROM import_log
    WHERE run_id = :run
      AND severity <> 'info'
    GROUP BY log_file_id
  ) i ON i.log_file_id = f.id
WHERE f.run_id = :run
ORDER BY f.id;

-- table: process
SELECT p.id, p.log_file_id, p.pid, p.rank, p.is_thread_id, p.utc_offset_s, n.ordinal AS launch,
  p.last_record_us - :origin AS last_record_us, n.start_time_us - :origin AS launch_start_us,
  p.parent_process_id, 0 AS "|",
  p.child_kind, p.torch_version, p.python_version, p.time_basis
FROM process p
  LEFT JOIN launch n ON n.id = p.launch_id
WHERE p.id IN run_process
ORDER BY coalesce(n.ordinal, 1), p.rank IS NULL, p.rank, coalesce(p.parent_process_id, p.id),
  p.child_kind IS NOT NULL, p.id;

-- table: rank_status
SELECT process_id, compile_id, since_us - :origin AS since_us, 0 AS "|", state, phase
FROM rank_status
WHERE run_id = :run
  AND state IN ('compiling', 'failed')
ORDER BY process_id;

-- Processes that are alike: of one role, or children of one kind of its ranks, and with one end. A launcher ends the others within seconds
-- (cli/end_output.cc); what a rank's end says of a further rank is left out.
-- table: process_group
SELECT launch, role_ordinal, count(*) AS processes, is_bystander, ended_long_after, 0 AS "|", role, role_evidence, child_kind, end_kind,
  evidence AS end_evidence, ended_by, group_concat(DISTINCT rank) AS ranks, group_concat(id) AS process_ids
FROM (
  SELECT p.id, n.ordinal AS launch, o.id AS role_id, o.ordinal AS role_ordinal, o.name AS role, o.evidence AS role_evidence, p.child_kind,
    e.kind AS end_kind, coalesce(p.rank, q.rank) AS rank, coalesce(e.is_bystander, 0) AS is_bystander,
    coalesce(e.last_us > by_end.last_us + 30000000, 0) AS ended_long_after,
    CASE WHEN b.rank IS NOT NULL THEN 'rank ' || b.rank ELSE 'process ' || b.pid END AS ended_by,
    substr(e.evidence, 1, instr(e.evidence || '; rank ', '; rank ') - 1) AS evidence
  FROM process p
    JOIN launch n ON n.id = p.launch_id
    LEFT JOIN process q ON q.id = p.parent_process_id
    LEFT JOIN role o ON o.id = coalesce(p.role_id, q.role_id)
    LEFT JOIN process_end e ON e.process_id = p.id
    LEFT JOIN process b ON b.id = e.ended_by_process_id
    LEFT JOIN process_end by_end ON by_end.process_id = b.id
  WHERE p.id IN run_process)
GROUP BY launch, role_id, child_kind, end_kind, evidence, is_bystander, ended_by, ended_long_after
ORDER BY launch, role_ordinal IS NULL, role_ordinal, child_kind IS NOT NULL, child_kind, count(*) DESC, min(id)
LIMIT 200;

-- table: count
SELECT value, 0 AS "|", name
FROM (
  SELECT 'records' AS name, (SELECT sum(record_count) FROM log_file WHERE run_id = :run) AS value
  UNION ALL SELECT 'bytes', (SELECT sum(size_bytes) FROM log_file WHERE run_id = :run)
  UNION ALL SELECT 'compiles', (SELECT count(*) FROM compile WHERE process_id IN run_process)
  UNION ALL SELECT 'graphs', (SELECT count(*) FROM graph WHERE compile_id IN run_compile)
  UNION ALL SELECT 'graph_breaks', (SELECT count(*) FROM graph_break WHERE compile_id IN run_compile)
  UNION ALL SELECT 'recompiles', (SELECT count(DISTINCT compile_id) FROM recompile WHERE compile_id IN run_compile)
  UNION ALL SELECT 'failures', (
    SELECT count(*)
    FROM failure f
      JOIN record r ON r.id = f.record_id
    WHERE r.process_id IN run_process
      AND NOT (f.kind = 'dynamo_error' AND (coalesce(f.compile_id, -1), coalesce(f.attempt, 0)) IN (
        SELECT coalesce(compile_id, -2), coalesce(attempt, 0) FROM failure WHERE kind = 'failure')))
  UNION ALL SELECT 'has_events', EXISTS (
    SELECT 1
    FROM process p
    WHERE p.id IN run_process
      AND EXISTS (SELECT 1 FROM chromium_event_row WHERE record_id BETWEEN p.first_record_id AND p.last_record_id))
  UNION ALL SELECT 'has_source', (
    EXISTS (SELECT 1 FROM compile WHERE process_id IN run_process AND stack_id IS NOT NULL)
    OR EXISTS (SELECT 1 FROM output_code_row WHERE compile_id IN run_compile AND path_id IS NOT NULL)
    OR EXISTS (SELECT 1 FROM graph_break_row WHERE compile_id IN run_compile AND user_file_id IS NOT NULL)
    OR EXISTS (SELECT 1 FROM failure_row WHERE compile_id IN run_compile AND user_file_id IS NOT NULL)
    OR EXISTS (SELECT 1 FROM record_row WHERE (stack_id IS NOT NULL OR user_stack_id IS NOT NULL) AND process_id IN run_process))
  UNION ALL SELECT 'has_issued', EXISTS (
    SELECT 1
    FROM collective_run_row c
      LEFT JOIN profile p ON p.id = c.profile_id
      LEFT JOIN record_row r ON r.id = c.record_id
    WHERE c.sequence_number IS NOT NULL
      AND c.group_id IS NOT NULL
      AND (c.is_p2p = 0 OR p.kind = 'flight_recorder')
      AND (p.run_id = :run OR r.process_id IN run_process))
  UNION ALL SELECT 'has_export', EXISTS (
    SELECT 1
    FROM text_row k
    WHERE k.text IN (
        'guard_added', 'guard_added_fast', 'propagate_real_tensors', 'propagate_real_tensors_provenance',
        'guard_on_data_dependent_error', 'missing_fake_kernel', 'mismatched_fake_kernel', 'exported_program')
      AND EXISTS (SELECT 1 FROM record_row r WHERE r.kind_id > 8 AND r.kind_id = k.id AND r.process_id IN run_process))
  -- torch.compile writes guards and symbols of sizes as well.
  UNION ALL SELECT 'is_export', EXISTS (
    SELECT 1
    FROM text_row k
    WHERE k.text IN (
        'propagate_real_tensors', 'propagate_real_tensors_provenance', 'guard_on_data_dependent_error', 'missing_fake_kernel',
        'mismatched_fake_kernel', 'exported_program')
      AND EXISTS (SELECT 1 FROM record_row r WHERE r.kind_id > 8 AND r.kind_id = k.id AND r.process_id IN run_process))
  UNION ALL SELECT 'import_log', (SELECT count(*) FROM import_log WHERE run_id = :run)
  UNION ALL SELECT 'import_log_first', (SELECT min(id) FROM import_log WHERE run_id = :run)
  UNION ALL SELECT 'import_log_last', (SELECT max(id) FROM import_log WHERE run_id = :run)
  UNION ALL SELECT 'torch_log', (SELECT count(*) FROM torch_log_line_row WHERE profile_id IN (SELECT id FROM profile WHERE run_id = :run))
  UNION ALL SELECT 'torch_log_first', (SELECT min(id) FROM torch_log_line_row WHERE profile_id IN (SELECT id FROM profile WHERE run_id = :run))
  UNION ALL SELECT 'torch_log_last', (SELECT max(id) FROM torch_log_line_row WHERE profile_id IN (SELECT id FROM profile WHERE run_id = :run))
  UNION ALL SELECT 'provenance_graphs', (
    SELECT count(*)
    FROM graph
    WHERE provenance_content_id IS NOT NULL
      AND compile_id IN run_compile)
  UNION ALL SELECT 'collectives', (SELECT count(DISTINCT content_id) FROM collective WHERE process_id IN run_process)
  UNION ALL SELECT 'executions', (SELECT count(*) FROM graph_execution WHERE process_id IN run_process));

-- table: cache_state
SELECT coalesce(n.ordinal, 1) AS launch, count(*) AS events, count(DISTINCT e.process_id) AS processes, 0 AS "|", e.layer, e.state
FROM cache_event e
  JOIN process p ON p.id = e.process_id
  LEFT JOIN launch n ON n.id = p.launch_id
WHERE e.process_id IN run_process
GROUP BY 1, e.layer, e.state
ORDER BY 1, e.layer, e.state;

-- table: import_code
SELECT count(*) AS entries, 0 AS "|", severity, code
FROM import_log
WHERE run_id = :run
GROUP BY severity, code
ORDER BY severity, code;

-- table: profile
SELECT p.id, p.process_id, p.rank, p.pid, p.start_us - :origin AS start_us, p.end_us - :origin AS end_us, p.event_count,
  p.kept_count, p.overlaps_id, p.size_bytes, coalesce(k.n, 0) AS kernels, coalesce(o.n, 0) AS ops,
  coalesce(g.n, 0) AS graph_calls, coalesce(c.n, 0) AS collectives, coalesce(i.n, 0) AS problems,
  0 AS "|",
  p.path, p.kind, p.process_note, i.message AS problem
FROM profile p
  LEFT JOIN (SELECT profile_id, count(*) AS n FROM kernel_run_row GROUP BY profile_id) k ON k.profile_id = p.id
  LEFT JOIN (SELECT profile_id, count(*) AS n FROM op_run_row GROUP BY profile_id) o ON o.profile_id = p.id
  LEFT JOIN (
    SELECT s.profile_id, count(*) AS n
    FROM compiled_slice_link_row l
      JOIN compiled_slice_row s ON s.id = l.slice_id
    WHERE l.is_call = 1
    GROUP BY s.profile_id
  ) g ON g.profile_id = p.id
  LEFT JOIN (SELECT profile_id, count(*) AS n FROM collective_run_row GROUP BY profile_id) c ON c.profile_id = p.id
  LEFT JOIN (
    SELECT profile_id, count(*) AS n, min(message) AS message
    FROM import_log
    WHERE run_id = :run
      AND severity <> 'info'
    GROUP BY profile_id
  ) i ON i.profile_id = p.id
WHERE p.run_id = :run
ORDER BY p.rank IS NULL, p.rank, p.id;

-- Recordings of an allocator: devices of snapshots, and of profiles with memory events.
-- table: memory
SELECT id, profile_id, process_id, rank, device, event_count, start_us - :origin AS start_us, taken_us - start_us AS span_us, base_bytes, peak_bytes,
  peak_ordinal, end_bytes, end_reserved_bytes, oom_ordinal, 0 AS "|", path, kind, source
FROM memory_snapshot
WHERE run_id = :run
  AND (event_count > 0 OR end_bytes > 0)
ORDER BY rank, path, id;
