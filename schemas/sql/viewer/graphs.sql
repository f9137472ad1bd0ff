-- Graphs, and where their code and provenance is.

-- table: graph
SELECT id, compile_id, ordinal, record_id, code_record_id, provenance_content_id,
  0 AS "|",
  direction, subgraph_name, aot_id, cache_key
FROM graph
WHERE compile_id IN run_compile
ORDER BY id;
