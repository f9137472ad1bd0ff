-- query RecordsOfProcess
SELECT id, first_record_id, last_record_id FROM process ORDER BY first_record_id;

-- The records of the compiles :first to :last.
-- query RecordsOfCompiles(first INTEGER, last INTEGER, run_id INTEGER)
SELECT min(c.first_record_id) AS first_record_id /*INTEGER?*/,
  max(c.last_record_id) AS last_record_id /*INTEGER?*/
FROM compile c CROSS JOIN process p ON p.id = c.process_id
  JOIN log_file f ON f.id = p.log_file_id
WHERE c.id BETWEEN :first AND :last AND f.run_id = :run_id;

-- query RecordsOfProcesses(first INTEGER, last INTEGER, run_id INTEGER)
SELECT p.first_record_id /*INTEGER?*/, p.last_record_id /*INTEGER?*/
FROM process p JOIN log_file f ON f.id = p.log_file_id
WHERE p.id BETWEEN :first AND :last AND f.run_id = :run_id;

-- Payloads whose hash begins with a prefix: behind :first, before :end.
-- query TextOfPage(first TEXT, end TEXT)
SELECT hash, content /*TEXT*/, size_bytes, typeof(content) = 'blob' AS is_binary /*INTEGER*/
FROM payload WHERE hash >= :first AND hash < :end ORDER BY hash;

-- Blocks of 1024 records in which a process has records.
-- query BlocksOfProcess(run_id INTEGER)
SELECT p.first_record_id / 1024 AS first /*INTEGER*/, p.last_record_id / 1024 AS last /*INTEGER*/
FROM process p JOIN log_file f ON f.id = p.log_file_id
WHERE f.run_id = :run_id ORDER BY p.first_record_id;

-- query EventOfBlock(block INTEGER)
SELECT record_id FROM chromium_event_row
WHERE record_id BETWEEN :block * 1024 AND :block * 1024 + 1023 LIMIT 1;

-- query RunOfDatabase()
SELECT id, name
FROM run
ORDER BY id;
