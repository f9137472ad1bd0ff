-- Graph breaks, and whether their compile failed for an unsupported construct.
-- query BreakOfLog(in_logs SQL)
SELECT g.compile_id /*INTEGER*/, r.text AS reason, EXISTS (SELECT 1 FROM failure_row f
    JOIN text_row t ON t.id = f.type_id WHERE f.compile_id = g.compile_id
    AND (t.text = 'Unsupported' OR t.text LIKE '%.Unsupported')) AS is_unsupported /*BOOLEAN*/
FROM graph_break_row g JOIN text_row r ON r.id = g.reason_id WHERE {in_logs};

-- Compiles of functions that were called from a transform of torch.func outside of any compiled code.
-- query FailureInTransform(in_logs SQL)
SELECT DISTINCT f.compile_id /*INTEGER*/ FROM failure_row f JOIN text_row r ON r.id = f.reason_id
WHERE instr(r.text, 'If you are reaching here, it means dynamo failed for one of') > 0
  AND f.compile_id IS NOT NULL AND {in_logs};

-- How many of these compiles had torch._dynamo.config.suppress_errors set.
-- query CompilesWithSuppressedErrors(compile_ids INTEGER[])
SELECT count(DISTINCT m.compile_id) AS compiles /*INTEGER*/
FROM compilation_metric_row m JOIN record_row r ON r.id = m.record_id
WHERE m.compile_id IN (SELECT value FROM json_each(:compile_ids))
  AND (instr(r.envelope, '"config_suppress_errors": true')
    OR instr(r.envelope, '"config_suppress_errors":true'));
