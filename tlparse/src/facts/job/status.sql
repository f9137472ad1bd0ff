-- Rows of view rank_status, without processes of which a changed digit made the only record.
-- query StatusOfProcess(run_id INTEGER, launch INTEGER)
SELECT s.launch /*INTEGER*/, s.rank /*INTEGER?*/, s.pid /*INTEGER*/, s.state /*TEXT*/,
  s.compile || iif(c.generation > 0, '#' || (c.generation + 1), '') AS compile /*TEXT*/, s.function, s.phase,
  s.since_us /*INTEGER?*/, s.first_record_us /*INTEGER*/,
  s.last_record_us /*INTEGER*/, s.compiles_done /*INTEGER*/,
  s.process_id /*INTEGER*/, s.compile_id /*INTEGER*/, f.path, f.id AS log_file_id, s.is_backward /*BOOLEAN*/,
  s.open_record_id /*INTEGER*/
FROM rank_status s JOIN log_file f ON f.id = s.log_file_id
  LEFT JOIN compile c ON c.id = s.compile_id
WHERE s.run_id = :run_id AND s.launch = :launch AND s.process_id NOT IN (SELECT p.id
  FROM import_log i JOIN process p ON p.log_file_id = i.log_file_id
    AND p.first_record_id = i.record_id AND p.last_record_id = i.record_id
  WHERE i.code = 'stray_record')
ORDER BY s.rank IS NULL, s.rank, s.process_id;

-- By log file: the bytes before the first that cannot be read.
-- query ReadableBytesOfLog(run_id INTEGER)
SELECT log_file_id /*INTEGER*/, min(coalesce(byte_offset, 0)) AS readable_bytes /*INTEGER*/
FROM import_log WHERE run_id = :run_id AND code = 'damaged_input' AND log_file_id IS NOT NULL
GROUP BY log_file_id;

-- The files beside logs, and their ranks.
-- query RankOfFile(run_id INTEGER)
SELECT kind, rank, count(*) AS files /*INTEGER*/
FROM profile WHERE run_id = :run_id AND kind <> 'run' GROUP BY kind, rank
ORDER BY kind, rank IS NULL, rank;
