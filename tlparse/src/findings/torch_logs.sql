-- The functions that text of TORCH_LOGS says were compiled again, or refused at the recompile limit.
-- Texts of processes with a structured trace repeat it.
-- query TextRecompiles(run_id INTEGER)
SELECT t.function /*TEXT*/, t.file /*TEXT*/, t.function_line /*INTEGER*/,
  t.is_refused = 1 AS is_refused /*BOOLEAN*/, count(DISTINCT t.profile_id || ' ' || coalesce(t.label, t.line)) AS times /*INTEGER*/,
  max(t.guard) AS guard /*TEXT*/, max(t.reason) AS reason /*TEXT*/, min(t.message) AS message /*TEXT*/, count(DISTINCT t.guard) AS guards /*INTEGER*/,
  min(p.path) AS path /*TEXT*/
FROM torch_log_recompile t JOIN profile p ON p.id = t.profile_id
WHERE p.run_id = :run_id AND t.process_id IS NULL AND t.function IS NOT NULL
GROUP BY t.function, t.file, t.function_line, t.is_refused ORDER BY t.is_refused DESC, times DESC, t.function;

-- Their graph breaks, by place and reason.
-- query TextGraphBreaks(run_id INTEGER)
SELECT t.reason /*TEXT*/, min(t.message) AS message /*TEXT*/, count(*) AS times /*INTEGER*/, min(p.path) AS path /*TEXT*/,
  t.file /*TEXT*/, t.user_line /*INTEGER*/, min(t.hint) AS hint /*TEXT*/
FROM torch_log_graph_break t JOIN profile p ON p.id = t.profile_id
WHERE p.run_id = :run_id AND t.process_id IS NULL
GROUP BY t.file, t.user_line, t.reason, CASE WHEN t.reason IS NULL THEN t.message END
ORDER BY times DESC, min(t.line);
