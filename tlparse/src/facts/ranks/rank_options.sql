-- The members of an object that is given as a JSON string. Lists are compared as sets: PyTorch writes
-- some in the order of a set. None where a damaged log makes it no object.
-- query OptionOfCompile(options TEXT)
SELECT o.key AS name /*TEXT*/,
  CASE WHEN o.type = 'array'
    THEN (SELECT '[' || group_concat(e.value, ', ') || ']'
      FROM (SELECT value FROM json_each(o.value) ORDER BY value) e)
    ELSE CAST(coalesce(CASE o.type WHEN 'true' THEN 'True' WHEN 'false' THEN 'False'
      ELSE o.value END, 'None') AS TEXT) END AS value /*TEXT*/
FROM json_each(CASE WHEN NOT json_valid(:options) THEN '{}'
  WHEN json_valid(json_extract(:options, '$')) THEN json_extract(:options, '$') ELSE '{}' END) o;

-- query MetricsOfCompile(compile_id INTEGER)
SELECT coalesce(r.metadata, r.envelope) AS metrics /*TEXT*/
FROM compilation_metric_row m JOIN record_row r ON r.id = m.record_id
WHERE m.compile_id = :compile_id ORDER BY r.id;
