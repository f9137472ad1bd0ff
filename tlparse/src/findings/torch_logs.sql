-- Graph breaks of texts of processes without a structured trace, which else repeat it, by place and reason.
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
