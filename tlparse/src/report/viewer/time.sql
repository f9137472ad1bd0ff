-- query ProcessOfTimes(run_id INTEGER)
SELECT p.id, coalesce(n.ordinal, 1) AS launch /*INTEGER*/
FROM process p
  JOIN log_file f ON f.id = p.log_file_id
  LEFT JOIN launch n ON n.id = p.launch_id
WHERE f.run_id = :run_id
ORDER BY p.id;

-- query CompileOfTimes(process_id INTEGER)
SELECT id, function, file, line
FROM compile
WHERE process_id = :process_id;
