-- A record with its payload, up to a length.
-- query EvidenceRecord(record_id INTEGER)
SELECT f.path, r.line, r.byte_offset, coalesce(n.text, k.text) AS record /*TEXT*/, r.envelope,
  substr(y.content, 1, 262144) AS payload /*TEXT*/
FROM record_row r JOIN process p ON p.id = r.process_id JOIN log_file f ON f.id = p.log_file_id
  LEFT JOIN text_row k ON k.id = r.kind_id LEFT JOIN text_row n ON n.id = r.name_id
  LEFT JOIN payload_row y ON y.id = r.payload_id
WHERE r.id = :record_id;

-- The records of a compile whose name is like one of `names`, in the order of `names`.
-- query EvidenceOfCompile(compile_id INTEGER, names TEXT[])
SELECT c.record_id
FROM json_each(:names) j JOIN compile_record_row c ON c.compile_id = :compile_id
  JOIN record_row r ON r.id = c.record_id LEFT JOIN text_row k ON k.id = r.kind_id
  LEFT JOIN text_row n ON n.id = r.name_id
WHERE coalesce(n.text, k.text) GLOB j.value ORDER BY j.key, c.record_id LIMIT 20;

-- Where a process begins and ends, and the event that is open at its end.
-- query EvidenceOfProcess(process_id INTEGER)
SELECT first_record_id /*INTEGER*/, last_record_id /*INTEGER*/,
  (SELECT s.open_record_id FROM rank_status s WHERE s.process_id = :process_id)
    AS open_record_id /*INTEGER?*/
FROM process WHERE id = :process_id;

-- The compiles of a process, the first ones.
-- query EvidenceCompiles(process_id INTEGER)
SELECT id FROM compile WHERE process_id = :process_id ORDER BY id LIMIT 20;

-- The record that a row of another table came from.
-- query RecordOfCacheEvent(id INTEGER)
SELECT record_id FROM cache_event_row WHERE id = :id;

-- query RecordOfFailure(id INTEGER)
SELECT record_id FROM failure_row WHERE id = :id;

-- A row of import_log.
-- query EvidenceProblem(id INTEGER)
SELECT coalesce(f.path, p.path) AS path /*TEXT*/, i.line /*INTEGER?*/, i.byte_offset /*INTEGER?*/,
  i.message, i.text
FROM import_log_row i LEFT JOIN log_file f ON f.id = i.log_file_id
  LEFT JOIN profile p ON p.id = i.profile_id
WHERE i.id = :id;

-- query EvidenceLogFile(id INTEGER)
SELECT path, record_count, size_bytes FROM log_file WHERE id = :id;

-- query EvidenceProfile(id INTEGER)
SELECT path, kind, event_count FROM profile WHERE id = :id;

-- Where processes were at the last time at which `tlparse run` judged that its command hangs.
-- query EvidenceOfHang(id INTEGER)
SELECT p.path, t.value AS text /*TEXT*/
FROM run_command c JOIN profile p ON p.id = c.profile_id, json_each(c.hangs, '$[#-1].taken') t
WHERE c.profile_id = :id AND t.value NOT GLOB '[0-9]*' ORDER BY t.key LIMIT 8;

-- A collective that a rank issued: the record of a log, or the entry of a dump.
-- query EvidenceCollective(id INTEGER)
SELECT c.record_id /*INTEGER?*/, p.path AS path /*TEXT*/, e.ordinal AS ordinal /*INTEGER?*/,
  o.text AS op /*TEXT*/, g.text AS group_name /*TEXT*/, c.sequence_number /*INTEGER?*/,
  c.input_shapes /*TEXT*/,
  (SELECT s.state FROM collective_run s WHERE s.id = :id) AS state /*TEXT*/,
  strftime('%H:%M:%f', c.start_ns / 1e9, 'unixepoch') AS issued /*TEXT*/
FROM collective_run_row c LEFT JOIN profile p ON p.id = c.profile_id
  LEFT JOIN recorder_entry_row e ON e.id = c.entry_id LEFT JOIN text_row g ON g.id = c.group_id
  LEFT JOIN text_row o ON o.id = c.op_id
WHERE c.id = :id;

-- A call of Gloo in a profile, or another stretch that has a name there.
-- query EvidenceAnnotation(id INTEGER)
SELECT p.path, CAST(NULL AS INTEGER) AS line /*INTEGER?*/,
  coalesce('rank ' || p.rank || ': ', '') || t.text || ', ' || round(a.duration_ns / 1e6, 3) || ' ms' AS text /*TEXT*/
FROM annotation_row a JOIN profile p ON p.id = a.profile_id JOIN text_row t ON t.id = a.name_id
WHERE a.id = :id;

-- An exception of a run.json or of a text, with its traceback; a failure that a launcher reported.
-- query EvidenceException(id INTEGER)
SELECT p.path, e.line, e.type || ': ' || e.message AS text /*TEXT*/, e.traceback,
  coalesce('File "' || e.user_file || '", line ' || e.user_line || ',', '') AS place /*TEXT*/
FROM uncaught_exception e JOIN profile p ON p.id = e.profile_id WHERE e.id = :id;

-- query EvidenceOfLauncher(id INTEGER)
SELECT p.path, l.line, coalesce('rank ' || l.rank, 'local rank ' || l.local_rank) AS who /*TEXT*/, coalesce(l.exit_code, 0) AS exit_code /*INTEGER*/
FROM launcher_failure l JOIN profile p ON p.id = l.profile_id WHERE l.id = :id;

-- What a report of NCCL's RAS says of a rank or process, or of several.
-- query EvidenceOfRasState(id INTEGER)
SELECT p.path, s.line, iif(s.rank IS NULL, s.rank_count || ' ranks', 'rank ' || s.rank) || ' of ' || s.communicator || ': '
  || s.topic || coalesce(' ' || s.launched || ' ' || s.operation, '') || coalesce(' ' || s.text, '') AS text /*TEXT*/
FROM nccl_ras_state s JOIN profile p ON p.id = s.profile_id WHERE s.id = :id;

-- Where a rank was by the debug server.
-- query EvidenceOfServerRank(id INTEGER)
SELECT p.path, r.line, 'rank ' || r.rank || ': ' || coalesce(r.error, r.stopped_at, 'no Python frame') AS text /*TEXT*/
FROM debug_server_rank r JOIN profile p ON p.id = r.profile_id WHERE r.id = :id;

-- query EvidenceOfRasProcess(id INTEGER)
SELECT p.path, r.line, coalesce('process ' || r.pid || ' on node ' || r.node, r.process_count || ' processes') || ': ' || r.state AS text /*TEXT*/
FROM nccl_ras_process r JOIN profile p ON p.id = r.profile_id WHERE r.id = :id;
