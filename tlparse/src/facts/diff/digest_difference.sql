-- query DigestOfCall(in_logs SQL)
SELECT r.process_id, d.record_id, c.label, c.function, d.graph, d.call, d.kind, d.name,
  d.hash, d.value
FROM run_digest d JOIN record_row r ON r.id = d.record_id
  LEFT JOIN compile c ON c.id = d.compile_id
WHERE {in_logs} ORDER BY d.record_id, d.ordinal;
