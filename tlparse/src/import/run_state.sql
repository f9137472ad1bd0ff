-- query RunToAdd(name TEXT)
SELECT id FROM run WHERE name = :name;

-- query PayloadHash
SELECT hash, id FROM payload_hash_row ORDER BY hash;
