-- The generated codes of a run, in the order of the log.
-- query CodeOfExperiment(run_id INTEGER)
SELECT p.rank, c.label, c.function, coalesce(g.direction, '') AS direction /*TEXT*/,
  t.hash, c.id AS compile_id
FROM output_code_row o JOIN content_row t ON t.id = o.content_id JOIN compile c ON c.id = o.compile_id
  JOIN process p ON p.id = c.process_id JOIN log_file f ON f.id = p.log_file_id
  LEFT JOIN graph g ON g.id = o.graph_id
WHERE f.run_id = :run_id ORDER BY o.record_id;

-- Steps that the hook of `tlparse run` profiled: it names the files.
-- query ProfiledStepOfRun(run_id INTEGER)
SELECT coalesce(min(a.step), 0) AS first_step /*INTEGER*/, coalesce(max(a.step), 0) AS last_step /*INTEGER*/
FROM annotation_row a JOIN profile p ON p.id = a.profile_id
WHERE p.run_id = :run_id AND a.step IS NOT NULL AND a.device IS NULL
  AND p.path LIKE '%/profile\_pid\_%' ESCAPE '\';
