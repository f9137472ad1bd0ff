-- query RecompileOfJob(in_logs SQL)
SELECT compile_id FROM recompile_row WHERE ordinal = 0 AND {in_logs} ORDER BY record_id;

-- Failures that name the type of an exception: those of the limit are told by it.
-- query TypedFailure(in_logs SQL)
SELECT f.compile_id, t.text AS type, r.text AS reason
FROM failure_row f LEFT JOIN text_row t ON t.id = f.type_id
  LEFT JOIN text_row r ON r.id = f.reason_id
WHERE f.type_id IS NOT NULL AND {in_logs} ORDER BY f.record_id;

-- Files that end with a text; two tell that there are several.
-- query FileEndingWith(text TEXT)
SELECT DISTINCT file FROM stack_frame WHERE substr(file, -length(:text)) = :text LIMIT 2;
