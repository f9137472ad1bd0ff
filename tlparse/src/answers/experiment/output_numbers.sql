-- What compiled graphs of a run gave, as `tlparse run --numbers` recorded it.
-- query OutputOfRun(run_id INTEGER)
SELECT p.rank, c.label, c.function, d.graph, d.call, d.name, d.hash, d.norm,
  coalesce(d.nan_count, 0) AS nan_count /*INTEGER*/, coalesce(d.inf_count, 0) AS inf_count /*INTEGER*/
FROM run_digest d JOIN compile c ON c.id = d.compile_id JOIN process p ON p.id = c.process_id
  JOIN log_file f ON f.id = p.log_file_id
WHERE f.run_id = :run_id AND d.kind = 'output' ORDER BY d.record_id, d.ordinal;

-- Each so many calls of a graph were looked at; 0: of each graph only the first.
-- query CallsOfRun(run_id INTEGER)
SELECT count(*) AS count /*INTEGER*/, coalesce(min(nullif(d.call, 0)), 0) AS every /*INTEGER*/
FROM run_digest d JOIN compile c ON c.id = d.compile_id JOIN process p ON p.id = c.process_id
  JOIN log_file f ON f.id = p.log_file_id
WHERE f.run_id = :run_id;
