-- Entries of the last call of each process that saved them.
-- query EntryOfProcess(in_logs SQL)
SELECT e.record_id, e.key, e.function, e.line /*INTEGER*/, e.device_type, e.codes, e.backends /*INTEGER*/,
  e.missing_backends /*INTEGER*/, r.process_id /*INTEGER*/
FROM precompile_entry e JOIN record_row r ON r.id = e.record_id
WHERE {in_logs} AND e.record_id = (SELECT max(l.record_id) FROM precompile_entry l
    JOIN record_row o ON o.id = l.record_id WHERE o.process_id = r.process_id)
ORDER BY e.record_id, e.ordinal;

-- query ExceptionOfEntry(in_logs SQL)
SELECT e.record_id, e.key, e.error, r.process_id /*INTEGER*/
FROM precompile_exception e JOIN record_row r ON r.id = e.record_id WHERE {in_logs} ORDER BY e.record_id;

-- Compiles that an earlier compile of the same frame had failed guards for.
-- query CompileWithReason(in_logs SQL)
SELECT DISTINCT m.compile_id /*INTEGER*/ FROM recompile_row m WHERE {in_logs} AND m.compile_id IS NOT NULL;
