-- query ProcessOfRun(run_id INTEGER)
SELECT p.id, p.rank, p.torch_version /*TEXT?*/, p.log_file_id
FROM process p JOIN log_file f ON f.id = p.log_file_id WHERE f.run_id = :run_id ORDER BY p.id;

-- query LogToPush(run_id INTEGER)
SELECT id, content_hash, path FROM log_file WHERE run_id = :run_id ORDER BY id;
