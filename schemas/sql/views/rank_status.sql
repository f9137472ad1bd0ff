-- The state of each process at the end of its log: one row per process. `state`:
--   compiling         the log ends inside a compile: an event of it is open, or (logs without events) it has no metrics. torch.export
--                     writes no metrics; its events are closed. A compile of one event that cannot be read has begun
--   failed            the last compile failed, and no other followed
--   between_compiles  the last compile is done
-- There is no state for the end of the process: neither PyTorch nor libtrace writes a record of it.
-- An open event inside one that ended has lost its end to damage: the log does not end inside it.
-- `is_backward`: whether that is in the backward (events entire_backward_compile and bw_compiler). `open_record_id`: the innermost open event.
-- `since_us`: when the innermost open event began (compiling), else when the last compile's last record was written.
-- Compiles without frame id (compiled autograd alone, stretches of records without ids) do not count, except in a log that has no others
-- (AOTInductor, export): there `compiles_done` counts the stretches that made a graph. One record that is no metrics is no compile.
CREATE VIEW rank_status AS
  WITH last_compile AS (
    SELECT p.id AS process_id, p.log_file_id, p.launch_id, p.rank, p.pid, p.time_shift_us, p.first_record_us, p.last_record_us,
      (SELECT c.id FROM compile c WHERE c.process_id = p.id AND c.frame_id IS NOT NULL AND c.is_synthetic = 0
        ORDER BY c.last_record_id DESC LIMIT 1) AS last_compile_id
    FROM process p),
  open AS (
    SELECT l.process_id, l.log_file_id, l.launch_id, l.rank, l.pid, l.time_shift_us, l.first_record_us, l.last_record_us, c.id AS compile_id,
      c.status, c.label, c.function, c.last_record_id, c.start_time_us,
      (SELECT max(e.record_id) FROM chromium_event_row e WHERE e.compile_id = c.id AND e.phase = 66 AND (c.status = 'unfinished'
        OR e.record_id > (SELECT max(m.record_id) FROM compilation_metric_row m WHERE m.compile_id = c.id))
        AND NOT EXISTS (SELECT 1 FROM chromium_event_row x WHERE x.record_id BETWEEN e.record_id AND c.last_record_id
          AND x.phase = 88 AND x.begin_record_id < e.record_id AND x.compile_id = c.id AND x.tid IS e.tid)) AS open_record_id,
      (c.status = 'unfinished' OR c.first_record_id = c.last_record_id AND (SELECT k.text FROM record_row r JOIN text_row k ON k.id = r.kind_id
        WHERE r.id = c.first_record_id) = 'chromium_event') AND NOT EXISTS (SELECT 1 FROM chromium_event_row e
        WHERE e.record_id BETWEEN c.first_record_id AND c.last_record_id AND e.compile_id = c.id) AS has_no_events
    FROM last_compile l LEFT JOIN compile c ON c.id = l.last_compile_id)
  SELECT f.run_id, n.ordinal AS launch, coalesce(o.rank, f.name_rank) AS rank, o.pid,
    CASE WHEN o.has_no_events OR e.record_id IS NOT NULL THEN 'compiling' WHEN o.status = 'failed' THEN 'failed'
      ELSE 'between_compiles' END AS state,
    o.label AS compile, o.function, t.text AS phase,
    CASE WHEN e.start_us IS NOT NULL THEN CAST(e.start_us AS INTEGER)
      WHEN o.has_no_events AND o.start_time_us IS NOT NULL THEN o.start_time_us
      ELSE (SELECT r.local_us + o.time_shift_us FROM record_row r WHERE r.id = o.last_record_id) END AS since_us,
    o.last_record_us,
    CASE WHEN o.compile_id IS NULL THEN
      (SELECT count(*) FROM compile d WHERE d.process_id = o.process_id AND d.status NOT IN ('unfinished', 'failed', 'skipped')
        AND d.is_synthetic = 1 AND EXISTS (SELECT 1 FROM graph g WHERE g.compile_id = d.id))
    ELSE
      (SELECT count(*) FROM compile d WHERE d.process_id = o.process_id AND d.status NOT IN ('unfinished', 'failed', 'skipped')
        AND d.frame_id IS NOT NULL AND d.is_synthetic = 0 AND (d.last_record_id > d.first_record_id
          OR EXISTS (SELECT 1 FROM compilation_metric_row m WHERE m.record_id = d.first_record_id)))
    END AS compiles_done,
    o.first_record_us, o.process_id, o.compile_id, o.log_file_id,
    EXISTS (SELECT 1 FROM chromium_event_row b JOIN text_row w ON w.id = b.name_id WHERE b.compile_id = o.compile_id AND b.phase = 66
      AND b.record_id <= e.record_id AND b.tid IS e.tid AND w.text IN ('entire_backward_compile', 'compile_fx.<locals>.bw_compiler')
      AND (o.status = 'unfinished' OR b.record_id > (SELECT max(m.record_id) FROM compilation_metric_row m WHERE m.compile_id = o.compile_id)))
      AS is_backward,
    e.record_id AS open_record_id
  FROM open o
  JOIN log_file f ON f.id = o.log_file_id
  LEFT JOIN launch n ON n.id = o.launch_id
  LEFT JOIN chromium_event_row e ON e.record_id = o.open_record_id
  LEFT JOIN text_row t ON t.id = e.name_id;
