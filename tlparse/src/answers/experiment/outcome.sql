-- What `tlparse run` recorded of the command of a run.
-- query CommandOfRun(run_id INTEGER)
SELECT c.command, c.directory, c.environment, c.recorded, c.exit_code, c.started_us, c.ended_us
FROM run_command c JOIN profile p ON p.id = c.profile_id
WHERE p.run_id = :run_id ORDER BY c.started_us LIMIT 1;

-- Variables of such a command that were not set to record it.
-- query VariableOfCommand(environment TEXT, recorded TEXT)
SELECT v.key AS name /*TEXT*/, v.value AS value /*TEXT*/
FROM json_each(:environment) v
WHERE v.key <> 'PYTHONPATH' AND coalesce(
  (SELECT json_extract(r.value, '$.is_users') FROM json_each(:recorded) r WHERE r.key = v.key), 1)
ORDER BY v.key;

-- Elements of a command as it is recorded.
-- query WordOfCommand(command TEXT)
SELECT value AS word /*TEXT*/ FROM json_each(:command) ORDER BY key;

-- Processes that compiled, and the compile time of the one that took longest.
-- query CompileTimeOfRun(run_id INTEGER)
SELECT count(*) AS processes /*INTEGER*/, count(DISTINCT rank) AS ranks /*INTEGER*/,
  max(us) AS longest_us /*INTEGER?*/
FROM (SELECT p.rank, sum(c.duration_us + coalesce(c.backward_duration_us, 0)) AS us
  FROM compile c JOIN process p ON p.id = c.process_id JOIN log_file f ON f.id = p.log_file_id
  WHERE f.run_id = :run_id GROUP BY p.id);

-- query HitsOfRun(run_id INTEGER)
SELECT count(*) AS count /*INTEGER*/ FROM cache_event_row e JOIN cache_state s ON s.id = e.state
JOIN record_row r ON r.id = e.record_id JOIN process p ON p.id = r.process_id JOIN log_file f ON f.id = p.log_file_id
WHERE f.run_id = :run_id AND s.is_hit;

-- query CompilesOfFunction(run_id INTEGER, function TEXT)
SELECT count(*) AS count /*INTEGER*/
FROM compile c JOIN process p ON p.id = c.process_id JOIN log_file f ON f.id = p.log_file_id
WHERE f.run_id = :run_id AND c.function = :function;

-- The first failure of a compile of a function.
-- query FailureOfFunction(run_id INTEGER, function TEXT)
SELECT coalesce(f.type, '') AS type /*TEXT*/, coalesce(f.reason, '') AS reason /*TEXT*/,
  coalesce(f.user_file, '') AS file /*TEXT*/, f.user_line AS line /*INTEGER?*/
FROM failure f JOIN compile c ON c.id = f.compile_id JOIN process p ON p.id = c.process_id
  JOIN log_file l ON l.id = p.log_file_id
WHERE l.run_id = :run_id AND c.function = :function AND f.kind <> 'restart' AND f.user_line IS NOT NULL
ORDER BY f.record_id LIMIT 1;

-- The durations of the profiled steps, ascending.
-- query StepOfRun(run_id INTEGER)
SELECT a.duration_ns FROM annotation_row a JOIN profile p ON p.id = a.profile_id
WHERE p.run_id = :run_id AND a.step IS NOT NULL AND a.device IS NULL ORDER BY a.duration_ns;

-- query AddExperimentRow(finding_id TEXT, base_run_id INTEGER, run_id INTEGER?, change TEXT, verdict experiment_verdict, reason TEXT, command TEXT, directory TEXT, started_us INTEGER, base_compile_us INTEGER?, compile_us INTEGER?, base_step_us INTEGER?, step_us INTEGER?, base_command_us INTEGER?, command_us INTEGER?, came TEXT)
INSERT INTO experiment (finding_id, base_run_id, run_id, change, verdict, reason, command,
  directory, started_us, base_compile_us, compile_us, base_step_us, step_us, base_command_us,
  command_us, came)
VALUES (:finding_id, :base_run_id, :run_id, :change, :verdict, :reason, :command, :directory,
  :started_us, :base_compile_us, :compile_us, :base_step_us, :step_us, :base_command_us,
  :command_us, :came);
