-- Problems of inputs, by code.
-- query ProblemsByCode(where SQL)
SELECT i.code /*TEXT*/, count(*) AS count /*INTEGER*/,
  max(i.severity = 'error') AS has_error /*BOOLEAN*/, min(i.advice) AS advice /*TEXT*/,
  total(i.line_count) AS lines /*INTEGER*/
FROM import_log i WHERE {where} GROUP BY i.code ORDER BY 2 DESC, 1;

-- query InputWithProblem(where SQL)
SELECT DISTINCT coalesce(f.path, o.path, i.path) AS path /*TEXT?*/
FROM import_log i LEFT JOIN log_file f ON f.id = i.log_file_id
  LEFT JOIN profile o ON o.id = i.profile_id
WHERE {where};

-- query LogWithoutRecords(run_id INTEGER)
SELECT f.path, i.message
FROM import_log i JOIN log_file f ON f.id = i.log_file_id
WHERE i.run_id = :run_id AND i.code = 'log_without_records' ORDER BY i.id;
