-- query SideOfProcess(run_id INTEGER, process_id INTEGER)
SELECT coalesce(n.ordinal, 1) AS launch /*INTEGER*/
FROM process p
  JOIN log_file f ON f.id = p.log_file_id
  LEFT JOIN launch n ON n.id = p.launch_id
WHERE f.run_id = :run_id
  AND p.id = :process_id;

-- query RunBefore(run_id INTEGER)
SELECT max(id) AS id /*INTEGER?*/
FROM run
WHERE id < :run_id;

-- To compare schedules of millions takes more memory than a load may.
-- query CollectivesOfReport
SELECT EXISTS (SELECT 1 FROM collective_row LIMIT 1 OFFSET 100000) AS are_many /*BOOLEAN*/;
