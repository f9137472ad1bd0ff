-- Files and directories that may not be opened: "<path>: it cannot be read: Permission denied".
-- query UnreadInputRow(run_id INTEGER)
SELECT message FROM import_log WHERE run_id = :run_id AND code = 'damaged_input'
  AND log_file_id IS NULL AND profile_id IS NULL AND message LIKE '%: %cannot be read: %' ORDER BY id;
