-- query ClearRolesOfProcesses(run_id INTEGER)
UPDATE process SET role_id = NULL
WHERE role_id IS NOT NULL AND log_file_id IN (SELECT id FROM log_file WHERE run_id = :run_id);

-- query RemoveRoles(run_id INTEGER)
DELETE FROM role WHERE run_id = :run_id;

-- Those of processes that were removed too.
-- query RemoveEnds(run_id INTEGER)
DELETE FROM process_end WHERE process_id NOT IN (SELECT p.id FROM process p
  JOIN log_file f ON f.id = p.log_file_id WHERE f.run_id <> :run_id);

-- query AddRole(run_id INTEGER, launch INTEGER, ordinal INTEGER, name TEXT, is_sure BOOLEAN, evidence TEXT)
INSERT INTO role (run_id, launch_id, ordinal, name, is_sure, evidence, process_count)
SELECT :run_id, n.id, :ordinal, :name, :is_sure, :evidence, 0
FROM launch n WHERE n.run_id = :run_id AND n.ordinal = :launch;

-- query SetRole(process_id INTEGER, run_id INTEGER, launch INTEGER, ordinal INTEGER)
UPDATE process SET role_id = (SELECT r.id FROM role r JOIN launch n ON n.id = r.launch_id
  WHERE n.run_id = :run_id AND n.ordinal = :launch AND r.ordinal = :ordinal)
WHERE id = :process_id AND child_kind IS NULL;

-- query SetRoleCounts(run_id INTEGER)
UPDATE role SET process_count = (SELECT count(*) FROM process p WHERE p.role_id = role.id)
WHERE run_id = :run_id;

-- query AddEnd(process_id INTEGER, kind TEXT, last_us INTEGER?, exit_code INTEGER?, signal INTEGER?, is_bystander BOOLEAN, ended_by INTEGER?, evidence TEXT)
INSERT INTO process_end (process_id, kind, last_record_id, last_us, exit_code, signal,
  is_bystander, ended_by_process_id, evidence)
SELECT p.id, :kind, p.last_record_id, :last_us, :exit_code, :signal, :is_bystander, :ended_by, :evidence
FROM process p WHERE p.id = :process_id;
