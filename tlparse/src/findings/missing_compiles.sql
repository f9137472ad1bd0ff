-- The collectives of a compile, without waits.
-- query CollectiveOfCompile(compile_id INTEGER)
SELECT DISTINCT r.op /*TEXT*/ FROM collective_use_row u JOIN collective_row r ON r.content_id = u.content_id
WHERE u.compile_id = :compile_id AND r.is_wait = 0 ORDER BY r.ordinal LIMIT 3;
