-- Names of kernels and artifacts, for the search.

-- table: kernel
SELECT g.provenance_content_id AS content_id, k.id, k.debug_handle, k.code_line, 0 AS "|", k.name
FROM kernel k
  JOIN graph g ON g.id = k.graph_id
WHERE g.id IN (
  SELECT min(id)
  FROM graph
  WHERE provenance_content_id IS NOT NULL
    AND compile_id IN run_compile
  GROUP BY provenance_content_id)
ORDER BY k.id;

-- table: artifact
SELECT g.records, g.compiles, g.compile_id, g.record_id, 0 AS "|", coalesce(n.text, k.text) AS title
FROM (
  SELECT r.kind_id, r.name_id, count(*) AS records, count(DISTINCT r.compile_id) AS compiles, r.compile_id,
    min(r.id) AS record_id
  FROM compile_record_row m
    CROSS JOIN record_row r ON r.id = m.record_id
  WHERE r.process_id IN run_process
  GROUP BY r.kind_id, r.name_id) g
  LEFT JOIN text_row k ON k.id = g.kind_id
  LEFT JOIN text_row n ON n.id = g.name_id
ORDER BY title;
