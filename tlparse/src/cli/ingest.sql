-- Files beside the logs that were not read whole.
-- query InputReadInPart(run_id INTEGER)
SELECT coalesce(p.path, i.path) AS path /*TEXT?*/, p.id IS NULL AS is_left_out /*BOOLEAN*/, i.message /*TEXT*/, count(*) OVER () AS all_count /*INTEGER*/
FROM import_log i LEFT JOIN profile p ON p.id = i.profile_id
WHERE i.run_id = :run_id AND i.severity = 'error'
  AND (p.id IS NOT NULL OR (i.path IS NOT NULL))
GROUP BY coalesce(p.id, -i.id) HAVING i.id = max(i.id)
ORDER BY p.id IS NULL, p.id, i.id LIMIT 3;

-- Stretches of records that belong to a compile without naming it.
-- query StretchesWithoutId(run_id INTEGER)
SELECT count(*) AS stretches /*INTEGER*/ FROM compile c JOIN process p ON p.id = c.process_id
  JOIN log_file f ON f.id = p.log_file_id
WHERE c.is_synthetic = 1 AND f.run_id = :run_id;

-- query ProcessesWithRank()
SELECT count(*) AS count /*INTEGER*/ FROM process WHERE rank IS NOT NULL;
