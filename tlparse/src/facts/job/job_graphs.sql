-- query GraphOfJob(in_compiles SQL)
SELECT id, compile_id, direction FROM graph WHERE {in_compiles} ORDER BY compile_id, ordinal;
