-- Estimated run times of the ops of a run's graphs; of a profile: those of its process.
-- query OpEstimate(run_id INTEGER, profile_id INTEGER?)
SELECT o.graph_id /*INTEGER*/, o.name, o.estimated_ns /*REAL*/
FROM op_runtime o JOIN process p ON p.id = o.process_id JOIN log_file f ON f.id = p.log_file_id
WHERE f.run_id = :run_id AND o.graph_id IS NOT NULL AND o.name IS NOT NULL
  -- Records of a process lie within a range: the range is found by key.
  AND (:profile_id IS NULL OR o.record_id BETWEEN
    (SELECT q.first_record_id FROM profile x JOIN process q ON q.id = x.process_id
      WHERE x.id = :profile_id)
    AND (SELECT q.last_record_id FROM profile x JOIN process q ON q.id = x.process_id
      WHERE x.id = :profile_id))
ORDER BY o.graph_id, o.record_id, o.ordinal;

-- The kernels that the code of a graph calls, in the order of the code.
-- query KernelCalledInCode(graph_id INTEGER)
SELECT id FROM kernel
WHERE graph_id = :graph_id AND code_line IS NOT NULL AND (debug_handle IS NOT NULL
  OR NOT EXISTS (SELECT 1 FROM kernel k WHERE k.graph_id = :graph_id
    AND k.debug_handle IS NOT NULL AND k.code_line IS NOT NULL))
ORDER BY code_line, ordinal;
