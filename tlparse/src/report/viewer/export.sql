-- query HashWithPrefix(first TEXT, end TEXT)
SELECT id FROM payload_hash_row WHERE hash >= :first AND hash < :end;

-- query PayloadSize
SELECT id, size_bytes FROM payload_row;
