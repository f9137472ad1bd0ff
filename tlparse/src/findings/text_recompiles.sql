-- Guards that failed, by text of TORCH_LOGS, and warnings at the recompile limit. Texts of processes with a structured trace repeat it.
-- query RecompileInText(run_id INTEGER)
SELECT t.profile_id /*INTEGER*/, t.rank /*INTEGER?*/, t.function /*TEXT*/, t.file /*TEXT*/, coalesce(t.function_line, 0) AS function_line /*INTEGER*/,
  t.label /*TEXT?*/, t.prior_label /*TEXT?*/, t.reason /*TEXT*/, t.guard /*TEXT*/, t.message /*TEXT*/, t.is_refused = 1 AS is_refused /*BOOLEAN*/, p.path
FROM torch_log_recompile t JOIN profile p ON p.id = t.profile_id
WHERE p.run_id = :run_id AND t.process_id IS NULL AND t.function IS NOT NULL
ORDER BY t.profile_id, t.line;

-- query RaisedInText(run_id INTEGER)
SELECT DISTINCT e.profile_id /*INTEGER*/, e.type FROM uncaught_exception e JOIN profile p ON p.id = e.profile_id WHERE p.run_id = :run_id;
