-- What was dropped, odd or damaged; errors first.
-- query ProblemOfInput(severity TEXT?, run_id INTEGER?, launch INTEGER?, rank INTEGER?, pid INTEGER?)
SELECT i.id, r.name AS run, coalesce(f.path, o.path, i.path) AS path /*TEXT*/,
  i.line /*INTEGER?*/, i.byte_offset /*INTEGER?*/, i.severity /*TEXT*/, i.code /*TEXT*/,
  i.message /*TEXT*/, i.advice /*TEXT*/, i.line_count /*INTEGER*/, i.record_id /*INTEGER?*/,
  i.text /*TEXT*/
FROM import_log i JOIN run r ON r.id = i.run_id LEFT JOIN log_file f ON f.id = i.log_file_id
  LEFT JOIN profile o ON o.id = i.profile_id
WHERE (:severity IS NULL OR i.severity = :severity) AND (:run_id IS NULL OR r.id = :run_id)
  AND (:launch IS NULL OR EXISTS (SELECT 1 FROM process p JOIN launch n ON n.id = p.launch_id
    WHERE p.log_file_id = i.log_file_id AND n.ordinal = :launch))
  AND (:rank IS NULL OR o.rank = :rank
    OR EXISTS (SELECT 1 FROM process p WHERE p.log_file_id = i.log_file_id AND p.rank = :rank))
  AND (:pid IS NULL OR o.pid = :pid
    OR EXISTS (SELECT 1 FROM process p WHERE p.log_file_id = i.log_file_id AND p.pid = :pid))
ORDER BY i.run_id, i.severity = 'info', i.severity = 'warning', i.log_file_id, i.line, i.id;
