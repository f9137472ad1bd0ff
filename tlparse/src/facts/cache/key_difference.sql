-- The records of a kind that belong to a compile.
-- query RecordOfCompile(compile_id INTEGER, name_id INTEGER)
SELECT r.payload_id, r.id FROM compile_record_row m JOIN record_row r ON r.id = m.record_id
WHERE m.compile_id = :compile_id AND r.name_id = :name_id ORDER BY r.id;
