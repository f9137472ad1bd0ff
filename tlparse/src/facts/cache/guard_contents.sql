-- The trees of guards of compiles.
-- query GuardTreeOfCompile(in_logs SQL)
SELECT u.compile_id, u.content_id, u.record_id
FROM guard_use_row u JOIN record_row r ON r.id = u.record_id JOIN text_row k ON k.id = r.kind_id
WHERE u.compile_id IS NOT NULL AND k.text = 'dynamo_cpp_guards_str' AND {in_logs} ORDER BY u.record_id;
