-- query HashWithPrefix(first TEXT, end TEXT)
SELECT id FROM payload_hash_row WHERE hash >= :first AND hash < :end;

-- query PayloadSize
SELECT id, size_bytes FROM payload_row;

-- The records that have a payload. Those of Chromium events (kind 1) are in the chunks args/.
-- query RecordWithText(run_id INTEGER)
SELECT r.id, r.payload_id AS payload_id /*INTEGER*/, r.compile_id, r.kind_id, r.name_id, p.rank
FROM record_row r
  JOIN process p ON p.id = r.process_id
  JOIN log_file f ON f.id = p.log_file_id
WHERE r.payload_id IS NOT NULL
  AND r.kind_id IS NOT 1
  AND f.run_id = :run_id
ORDER BY r.id;

-- What a text is: as TextKind. The first of a record counts.
-- query KindOfText()
SELECT 0 AS kind /*INTEGER*/, t.record_id /*INTEGER*/, g.direction FROM graph_text_row t LEFT JOIN graph g ON g.id = t.graph_id
UNION ALL
SELECT 1, o.record_id, g.direction FROM output_code_row o LEFT JOIN graph g ON g.id = o.graph_id
UNION ALL
SELECT 2, record_id, NULL FROM guard_use_row;
