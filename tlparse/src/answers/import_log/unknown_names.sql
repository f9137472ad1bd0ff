-- Names of the records :first to :last of a database, with their number and the first record.
-- query UnknownRecordName(first INTEGER, last INTEGER)
SELECT CASE code WHEN 'unknown_artifact' THEN 'artifact' ELSE 'record' END AS kind /*TEXT*/,
  coalesce(n.text, k.text) AS name /*TEXT*/,
  (SELECT count(*) FROM record_row s WHERE s.id BETWEEN :first AND :last
    AND s.kind_id = r.kind_id AND s.name_id IS r.name_id) AS count /*INTEGER*/,
  min(r.id) AS first_record_id /*INTEGER*/
FROM import_log i JOIN record_row r ON r.id = i.record_id
  LEFT JOIN text_row k ON k.id = r.kind_id LEFT JOIN text_row n ON n.id = r.name_id
WHERE code IN ('unknown_artifact', 'unknown_record_kind') AND i.record_id BETWEEN :first AND :last
GROUP BY r.kind_id, r.name_id;

-- query PhaseName(first INTEGER, last INTEGER)
SELECT t.text AS name, count(*) AS count /*INTEGER*/, min(e.record_id)
  AS first_record_id /*INTEGER*/
FROM chromium_event_row e JOIN text_row t ON t.id = e.name_id
WHERE e.record_id BETWEEN :first AND :last GROUP BY e.name_id;

-- query MetricName(first INTEGER, last INTEGER)
SELECT j.key AS name /*TEXT*/, count(*) AS count /*INTEGER*/, min(m.record_id)
  AS first_record_id /*INTEGER*/
FROM compilation_metric m JOIN json_each(m.metrics) j
WHERE m.record_id BETWEEN :first AND :last GROUP BY j.key;

-- Stored once for all runs: of one run, those of the keys that its records look up.
-- query ComponentName(first INTEGER, last INTEGER)
SELECT t.text AS name, count(*) AS count /*INTEGER*/, 0 AS first_record_id /*INTEGER*/
FROM component_row c JOIN text_row t ON t.id = c.name_id
WHERE :first = 0 OR c.id IN (SELECT l.component_id
  FROM cache_event_row e JOIN cache_key_set_row s ON s.key_id = e.key_id
    JOIN component_run_row u ON u.set_id = s.component_set_id
    JOIN component_list_row l ON l.list_id = u.list_id AND l.ordinal >= u.list_ordinal
      AND l.ordinal < u.list_ordinal + u.length
  WHERE e.record_id BETWEEN :first AND :last)
GROUP BY c.name_id;

-- query RecordsOfRun(run_id INTEGER)
SELECT min(first_record_id) AS first /*INTEGER*/, max(last_record_id) AS last /*INTEGER*/
FROM log_file WHERE run_id = :run_id;

-- query PlaceOfRecord(id INTEGER)
SELECT f.path, r.line, p.torch_version
FROM record_row r JOIN process p ON p.id = r.process_id JOIN log_file f ON f.id = p.log_file_id
WHERE r.id = :id;
