-- The version of PyTorch that wrote the log: artifact torch_version, the second record of a file (2.14). The version is also process.torch_version.
CREATE VIEW torch_version AS
  SELECT r.id AS record_id, r.process_id, r.rank, p.content ->> '$.pytorch_version' AS pytorch_version,
    p.content ->> '$.commit' AS commit_hash, p.content ->> '$.oss' AS is_open_source
  FROM record r JOIN payload_row p ON p.id = r.payload_id
  WHERE r.kind = 'artifact' AND r.name = 'torch_version' AND json_valid(p.content);
