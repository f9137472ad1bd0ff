-- The functions that text of TORCH_LOGS says were compiled again, or refused at the recompile limit.
-- Texts of processes with a structured trace repeat it.
-- A text may hold several processes: `times` is of the one with most, `processes` have some.
-- query TextRecompiles(run_id INTEGER)
WITH one AS (SELECT t.function, t.file, t.function_line, t.is_refused, t.profile_id, t.rank,
    count(DISTINCT coalesce(t.label, t.line)) AS times, max(t.guard) AS guard,
    max(t.reason) AS reason, min(t.message) AS message, min(p.path) AS path
  FROM torch_log_recompile t JOIN profile p ON p.id = t.profile_id
  WHERE p.run_id = :run_id AND t.process_id IS NULL AND t.function IS NOT NULL
  GROUP BY t.function, t.file, t.function_line, t.is_refused, t.profile_id, t.rank)
SELECT o.function /*TEXT*/, o.file /*TEXT*/, o.function_line /*INTEGER*/,
  o.is_refused = 1 AS is_refused /*BOOLEAN*/, max(o.times) AS times /*INTEGER*/, min(o.times) AS least /*INTEGER*/,
  count(*) AS processes /*INTEGER*/, group_concat(DISTINCT o.rank) AS ranks /*TEXT?*/,
  max(o.guard) AS guard /*TEXT*/, max(o.reason) AS reason /*TEXT*/, min(o.message) AS message /*TEXT*/,
  (SELECT count(DISTINCT t.guard) FROM torch_log_recompile t JOIN profile p ON p.id = t.profile_id
    WHERE p.run_id = :run_id AND t.process_id IS NULL AND t.function = o.function AND t.file IS o.file
      AND t.function_line IS o.function_line AND t.is_refused = o.is_refused) AS guards /*INTEGER*/,
  min(o.path) AS path /*TEXT*/, count(DISTINCT o.path) AS paths /*INTEGER*/
FROM one o
GROUP BY o.function, o.file, o.function_line, o.is_refused ORDER BY o.is_refused DESC, times DESC, o.function;

-- Their graph breaks, by place and reason.
-- query TextGraphBreaks(run_id INTEGER)
WITH one AS (SELECT t.reason, min(t.message) AS message, count(*) AS times, min(p.path) AS path, t.file, t.user_line,
    min(t.hint) AS hint, min(t.line) AS line, t.rank
  FROM torch_log_graph_break t JOIN profile p ON p.id = t.profile_id
  WHERE p.run_id = :run_id AND t.process_id IS NULL
  GROUP BY t.file, t.user_line, t.reason, CASE WHEN t.reason IS NULL THEN t.message END, t.profile_id, t.rank)
SELECT o.reason /*TEXT*/, min(o.message) AS message /*TEXT*/, max(o.times) AS times /*INTEGER*/, min(o.times) AS least /*INTEGER*/,
  count(*) AS processes /*INTEGER*/, group_concat(DISTINCT o.rank) AS ranks /*TEXT?*/, min(o.path) AS path /*TEXT*/,
  count(DISTINCT o.path) AS paths /*INTEGER*/, o.file /*TEXT*/, o.user_line /*INTEGER*/, min(o.hint) AS hint /*TEXT*/
FROM one o
GROUP BY o.file, o.user_line, o.reason, CASE WHEN o.reason IS NULL THEN o.message END
ORDER BY times DESC, min(o.line);
