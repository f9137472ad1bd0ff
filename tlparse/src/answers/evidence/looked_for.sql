-- What the inputs of a run hold of whom; of traces those of a launch. NULL as rank and process: it is
-- not known of whom. A file is named by its profile_kind.
-- query InputThere(run_id INTEGER, launch INTEGER)
WITH damaged AS MATERIALIZED (SELECT DISTINCT process_id FROM log_damage WHERE run_id = :run_id),
  trace AS MATERIALIZED (SELECT p.id, p.rank, p.id IN (SELECT process_id FROM damaged) AS is_damaged
    FROM process p JOIN log_file f ON f.id = p.log_file_id LEFT JOIN launch n ON n.id = p.launch_id
    WHERE f.run_id = :run_id AND (n.ordinal = :launch OR n.ordinal IS NULL)),
  file AS MATERIALIZED (SELECT p.id, p.kind, p.rank, p.process_id, EXISTS (SELECT 1 FROM import_log i
      WHERE i.profile_id = p.id AND i.is_damage) AS is_damaged
    FROM profile p WHERE p.run_id = :run_id)
SELECT 'trace' AS input /*TEXT*/, rank /*INTEGER?*/, id AS process_id /*INTEGER?*/,
  is_damaged /*BOOLEAN*/
FROM trace
UNION ALL SELECT 'trace', name_rank, NULL, 0 FROM log_file
WHERE run_id = :run_id AND record_count = 0 AND name_rank IS NOT NULL
UNION ALL SELECT 'failure', rank, id, 0 FROM trace
WHERE id IN (SELECT k.process_id FROM failure_row f JOIN compile k ON k.id = f.compile_id
  UNION SELECT r.process_id FROM failure_row f JOIN record_row r ON r.id = f.record_id
  WHERE f.compile_id IS NULL)
UNION ALL SELECT 'cache_lookup', rank, id, 0 FROM trace
WHERE id IN (SELECT k.process_id FROM cache_event_row e JOIN compile k ON k.id = e.compile_id
  UNION SELECT r.process_id FROM cache_event_row e JOIN record_row r ON r.id = e.record_id
  WHERE e.compile_id IS NULL)
UNION ALL SELECT 'output_hash', rank, id, 0 FROM trace
WHERE id IN (SELECT k.process_id FROM run_digest d JOIN compile k ON k.id = d.compile_id
  UNION SELECT r.process_id FROM run_digest d JOIN record_row r ON r.id = d.record_id
  WHERE d.compile_id IS NULL)
UNION ALL SELECT kind, rank, process_id, is_damaged FROM file
UNION ALL SELECT 'profile', f.rank, f.process_id, f.is_damaged
FROM file f JOIN profile_kind k ON k.name = f.kind WHERE k.has_times
UNION ALL SELECT 'memory_snapshot', f.rank, f.process_id, f.is_damaged
FROM file f WHERE f.id IN (SELECT profile_id FROM memory_snapshot_row)
UNION ALL SELECT 'traceback', e.rank, NULL, f.is_damaged
FROM file f JOIN (SELECT profile_id, rank FROM uncaught_exception
  UNION SELECT profile_id, rank FROM printed_abort
  UNION SELECT profile_id, rank FROM launcher_failure) e ON e.profile_id = f.id
-- A launcher, where the ranks have processes of their own.
WHERE e.rank IS NOT NULL OR f.kind <> 'run'
  OR NOT EXISTS (SELECT 1 FROM run_process q WHERE q.profile_id = f.id AND q.rank IS NOT NULL)
UNION ALL SELECT DISTINCT 'watchdog', NULL, NULL, f.is_damaged
FROM file f JOIN nccl_watchdog w ON w.profile_id = f.id;

-- Files of which nothing could be read, and files that are nothing which is read.
-- query InputLeftOut(run_id INTEGER)
SELECT path, is_damage /*BOOLEAN*/ FROM import_log
WHERE run_id = :run_id AND path IS NOT NULL AND (is_damage OR code = 'skipped_file');

-- query CallsOfGloo(run_id INTEGER)
SELECT coalesce(max(t.text LIKE 'gloo:%'), 0) AS has_gloo /*BOOLEAN*/,
  coalesce(max(t.text NOT LIKE 'gloo:%'), 0) AS has_others /*BOOLEAN*/
FROM (SELECT DISTINCT e.profiling_name_id AS id
    FROM profile p JOIN recorder_entry_row e ON e.profile_id = p.id WHERE p.run_id = :run_id) n
  JOIN text_row t ON t.id = n.id;
