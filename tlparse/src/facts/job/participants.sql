-- Whether the database has the table `experiment`: an earlier tlparse wrote none.
-- query TableOfExperiments
SELECT count(*) AS is_there /*BOOLEAN*/ FROM sqlite_schema WHERE name = 'experiment';

-- The latest run.
-- query LatestRun
SELECT max(id) AS id /*INTEGER?*/ FROM run;

-- The latest run that is no experiment.
-- query LatestOwnRun
SELECT max(id) AS id /*INTEGER?*/ FROM run
WHERE id NOT IN (SELECT run_id FROM experiment WHERE run_id IS NOT NULL);

-- query RunOfName(name TEXT)
SELECT id FROM run WHERE name = :name;

-- query RunWithName(run_id INTEGER)
SELECT name FROM run WHERE id = :run_id;

-- For a message: the first runs of the database.
-- query FirstRuns
SELECT group_concat(name, ', ') AS names /*TEXT*/ FROM (SELECT name FROM run ORDER BY id LIMIT 20);

-- query LaunchOfRun(run_id INTEGER)
SELECT id, ordinal, start_time_us, end_time_us, process_count
FROM launch WHERE run_id = :run_id ORDER BY ordinal;

-- query LogOfRun(run_id INTEGER)
SELECT id, path, first_record_id, last_record_id, name_rank, content_hash
FROM log_file WHERE run_id = :run_id ORDER BY id;

-- The processes of the logs of a run, without those of which a changed digit made the only record:
-- they belong to no participant.
-- query ProcessOfLog(run_id INTEGER)
SELECT p.log_file_id, p.id, p.pid, p.rank, p.rank_source = 'record' AS is_rank_in_records /*BOOLEAN*/,
  p.time_shift_us, p.first_record_id, p.last_record_id, p.torch_version, p.python_version,
  n.ordinal AS launch, p.first_record_us, coalesce(p.child_kind, '') AS child_kind /*TEXT*/,
  p.parent_process_id
FROM process p JOIN log_file f ON f.id = p.log_file_id LEFT JOIN launch n ON n.id = p.launch_id
WHERE f.run_id = :run_id AND p.id NOT IN (SELECT s.id
  FROM import_log i JOIN process s ON s.log_file_id = i.log_file_id
    AND s.first_record_id = i.record_id AND s.last_record_id = i.record_id
  WHERE i.code = 'stray_record')
ORDER BY p.id;

-- Whether there are several runs, and several launches of one (of this).
-- query SeveralParts(run_id INTEGER?)
SELECT (SELECT count(*) > 1 FROM run) AS has_runs /*BOOLEAN*/,
  EXISTS (SELECT 1 FROM launch WHERE ordinal > 1 AND (:run_id IS NULL OR run_id = :run_id))
    AS has_launches /*BOOLEAN*/;
