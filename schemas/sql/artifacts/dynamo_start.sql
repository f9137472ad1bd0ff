-- Where a compile begins: record kind dynamo_start. Its stack is record.stack_id and compile.stack_id; no table of its own.
CREATE VIEW interned_string AS
  SELECT r.id AS record_id, r.process_id, json_extract(r.metadata, '$[1]') AS id, json_extract(r.metadata, '$[0]') AS text
  FROM record r WHERE r.kind = 'str';
