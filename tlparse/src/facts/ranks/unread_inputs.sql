-- Files and directories that could not be opened.
-- query UnreadInputRow(run_id INTEGER)
SELECT path, message FROM import_log WHERE run_id = :run_id AND code = 'unread_input' ORDER BY id;
