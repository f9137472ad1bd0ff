-- Artifacts and record kinds that are known, kept whole, and need no table: their payload is a text or JSON for people.
CREATE VIEW artifact AS
  SELECT r.id AS record_id, r.process_id, r.rank, r.compile_id, r.attempt, r.name, r.metadata ->> '$.encoding' AS encoding, r.time_us,
    p.content, r.payload_hash
  FROM record r LEFT JOIN payload_row p ON p.id = r.payload_id
  WHERE r.kind = 'artifact';
