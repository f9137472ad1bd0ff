-- Kernels without a graph, and ops.
-- query UnjoinedRun(profile_id INTEGER)
SELECT k.id /*INTEGER*/, 0 AS is_op /*BOOLEAN*/, t.text AS name, k.thread_id /*INTEGER*/,
  k.start_ns /*INTEGER*/, k.start_ns + k.duration_ns AS end_ns /*INTEGER*/
FROM kernel_run_row k JOIN text_row t ON t.id = k.name_id
  LEFT JOIN kernel_run_link_row l ON l.kernel_run_id = k.id
WHERE k.profile_id = :profile_id AND k.device IS NULL AND k.op_run_id IS NULL
  AND l.kernel_id IS NULL
UNION ALL SELECT o.id, 1, t.text, o.thread_id, o.start_ns, o.start_ns + o.duration_ns
FROM op_run_row o JOIN text_row t ON t.id = o.name_id
WHERE o.profile_id = :profile_id AND o.id NOT IN (SELECT op_run_id FROM kernel_run_row
  WHERE profile_id = :profile_id AND op_run_id IS NOT NULL)
ORDER BY 5, 1;

-- query KinetoProfile(run_id INTEGER)
SELECT id FROM profile WHERE run_id = :run_id AND kind = 'kineto' ORDER BY id;

-- query ModelOfLog(run_id INTEGER)
SELECT g.id, k.id AS kernel_id, k.name AS kernel_name, NULL AS name /*TEXT*/, g.id AS graph_id,
  g.compile_id
FROM graph g JOIN compile c ON c.id = g.compile_id AND c.is_synthetic = 1
  JOIN process p ON p.id = c.process_id JOIN log_file f ON f.id = p.log_file_id
  JOIN kernel_row k ON k.content_id = g.provenance_content_id
WHERE f.run_id = :run_id AND k.debug_handle IS NOT NULL AND k.code_line IS NOT NULL
ORDER BY g.id, k.code_line, k.ordinal;

-- query ModelOfPackage(run_id INTEGER)
SELECT m.content_id AS id /*INTEGER*/, k.id AS kernel_id, k.name AS kernel_name, m.name,
  0 AS graph_id /*INTEGER*/, 0 AS compile_id /*INTEGER*/
FROM package_model_row m JOIN profile p ON p.id = m.profile_id
  JOIN kernel_row k ON k.content_id = m.content_id
WHERE p.run_id = :run_id ORDER BY m.id, k.ordinal;
