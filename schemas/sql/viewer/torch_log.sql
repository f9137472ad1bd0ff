-- Lines :first … :last of texts of TORCH_LOGS.

-- table: torch_log
SELECT l.id, l.profile_id, l.line, l.rank, l.process_id, l.compile_id, l.source_line,
  0 AS "|",
  l.level, l.local_time, l.artifact, l.label, l.source_file, l.text
FROM torch_log_line l
  JOIN profile p ON p.id = l.profile_id
WHERE p.run_id = :run
  AND l.id BETWEEN :first AND :last
ORDER BY l.id;
