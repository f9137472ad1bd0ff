-- The processes whose generated code is in the frames of a dump.
-- query ProcessOfFrames(profile_id INTEGER)
WITH RECURSIVE frame(id) AS (SELECT stack_id FROM recorder_entry_row WHERE profile_id = :profile_id
  AND stack_id IS NOT NULL UNION SELECT s.parent_id FROM frame f JOIN stack_frame s ON s.id = f.id
  WHERE s.parent_id IS NOT NULL)
SELECT DISTINCT r.process_id /*INTEGER*/ FROM output_code o JOIN record_row r ON r.id = o.record_id
WHERE o.path IN (SELECT s.file FROM frame f JOIN stack_frame s ON s.id = f.id);

-- query ProcessToMatch(run_id INTEGER)
SELECT p.id, p.pid, p.rank, p.first_record_us, p.last_record_us
FROM process p JOIN log_file f ON f.id = p.log_file_id WHERE f.run_id = :run_id ORDER BY p.id;

-- query DumpToMatch(run_id INTEGER)
SELECT id, kind, own_rank, pid, start_us, end_us
FROM profile WHERE run_id = :run_id AND kind IN (SELECT name FROM profile_kind WHERE is_dump)
ORDER BY id;

-- query EntryWithFrames(profile_id INTEGER)
SELECT id FROM recorder_entry_row WHERE profile_id = :profile_id AND stack_id IS NOT NULL LIMIT 1;

-- The processes whose generated code is in the stacks of a snapshot of the allocator.
-- query ProcessOfMemory(profile_id INTEGER)
WITH RECURSIVE frame(id) AS (SELECT stack_id FROM memory_site_row WHERE profile_id = :profile_id
  AND stack_id IS NOT NULL UNION SELECT s.parent_id FROM frame f JOIN stack_frame s ON s.id = f.id
  WHERE s.parent_id IS NOT NULL)
SELECT DISTINCT r.process_id /*INTEGER*/ FROM output_code o JOIN record_row r ON r.id = o.record_id
WHERE o.path IN (SELECT s.file FROM frame f JOIN stack_frame s ON s.id = f.id);
