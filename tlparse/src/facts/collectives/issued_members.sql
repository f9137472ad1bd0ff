-- Members of groups, as the pg_config of dumps and of profiles says.
-- query ConfiguredRanks(run_id INTEGER)
SELECT DISTINCT j.key AS group_name /*TEXT*/, j.value ->> '$.ranks' AS ranks /*TEXT*/
FROM profile p, json_each(p.metadata, '$.pg_config') j
WHERE p.run_id = :run_id AND p.kind = 'flight_recorder' AND json_type(j.value) = 'object'
UNION SELECT DISTINCT j.value ->> '$.pg_name', j.value ->> '$.ranks'
FROM profile p, json_each(p.metadata, '$.distributedInfo.pg_config') j
WHERE p.run_id = :run_id AND p.kind = 'kineto' AND json_type(j.value) = 'object';

-- What dumps count of calls, by the local number of the group: 0 is c10d's group of all ranks. -1: none.
-- query CallsOfStatus(run_id INTEGER)
SELECT p.rank /*INTEGER*/, sum(CAST(j.value ->> '$.last_enqueued_collective' AS INTEGER)) AS calls /*INTEGER*/,
  max(CASE WHEN j.key = '0' THEN CAST(j.value ->> '$.last_enqueued_collective' AS INTEGER) ELSE 0 END) AS last_of_all /*INTEGER*/
FROM profile p, json_each(p.metadata, '$.pg_status') j
WHERE p.run_id = :run_id AND p.kind = 'flight_recorder' AND p.rank IS NOT NULL
  AND json_type(j.value) = 'object'
  AND CAST(j.value ->> '$.last_enqueued_collective' AS INTEGER) > 0
GROUP BY p.rank;

-- The ranks whose generated code has a collective of the group.
-- query ScheduledGroup(run_id INTEGER, launch INTEGER?)
SELECT DISTINCT c.group_name, p.rank /*INTEGER*/
FROM (SELECT DISTINCT u.content_id, r.process_id FROM collective_use_row u
  JOIN record_row r ON r.id = u.record_id) x JOIN collective_row c ON c.content_id = x.content_id
  JOIN process p ON p.id = x.process_id JOIN log_file f ON f.id = p.log_file_id
  LEFT JOIN launch n ON n.id = p.launch_id
WHERE f.run_id = :run_id AND c.group_name IS NOT NULL AND p.rank IS NOT NULL
  AND (:launch IS NULL OR n.ordinal IS NULL OR n.ordinal = :launch);

-- query RankOfLogs(run_id INTEGER, launch INTEGER?)
SELECT DISTINCT p.rank /*INTEGER*/
FROM process p JOIN log_file f ON f.id = p.log_file_id LEFT JOIN launch n ON n.id = p.launch_id
WHERE f.run_id = :run_id AND p.rank IS NOT NULL
  AND (:launch IS NULL OR n.ordinal IS NULL OR n.ordinal = :launch);

-- query RankOfProfiles(run_id INTEGER, kind TEXT)
SELECT DISTINCT rank /*INTEGER*/
FROM profile WHERE run_id = :run_id AND kind = :kind AND rank IS NOT NULL;

-- The ranks whose recorder was on: one that is off has no groups.
-- query RankOfRecorder(run_id INTEGER)
SELECT DISTINCT p.rank /*INTEGER*/
FROM profile p, json_each(p.metadata, '$.pg_config') j
WHERE p.run_id = :run_id AND p.kind = 'flight_recorder' AND p.rank IS NOT NULL;

-- Dumps of which a part could not be read, and that have no whole twin.
-- query DamagedDump(run_id INTEGER)
WITH damage AS (SELECT i.profile_id, min(i.id) AS id FROM import_log i WHERE i.run_id = :run_id
  AND i.profile_id IS NOT NULL AND i.is_cut
  GROUP BY i.profile_id)
SELECT p.rank, p.path, i.byte_offset, i.message
FROM damage d JOIN profile p ON p.id = d.profile_id JOIN import_log_row i ON i.id = d.id
WHERE p.kind = 'flight_recorder' AND NOT EXISTS (SELECT 1 FROM profile w WHERE w.run_id = p.run_id
  AND w.kind = p.kind AND w.id <> p.id AND w.rank IS p.rank
  AND replace(w.path, '.json', '') = replace(p.path, '.json', '')
  AND w.id NOT IN (SELECT profile_id FROM damage))
ORDER BY p.rank IS NULL, p.rank, p.path;
