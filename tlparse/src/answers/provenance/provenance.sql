-- Kernels with their nodes and source lines, narrowed down from one of three ends. A source line
-- matches if any frame of a stack of the kernel is there, not only the innermost.
-- `graphs`: the ids of those that are asked for. `most`: no more rows than these,
-- without the first ones that are skipped.
-- query KernelWithSource(kernel TEXT?, file TEXT?, line INTEGER?, node TEXT?, rank INTEGER?, run_id INTEGER?, launch INTEGER?, by_cost BOOLEAN, graphs INTEGER[], skipped INTEGER, most INTEGER?)
WITH measured AS MATERIALIZED (SELECT l.kernel_id, s.graph_id, count(*) AS calls,
    sum(r.duration_ns) / 1e3 AS us
  FROM profile p JOIN kernel_run_row r ON r.profile_id = p.id
    JOIN kernel_run_link_row l ON l.kernel_run_id = r.id
    JOIN compiled_slice_link_row s ON s.slice_id = l.slice_id
  WHERE p.run_id BETWEEN ifnull(:run_id, 0) AND ifnull(:run_id, 9223372036854775807)
    AND p.overlaps_id IS NULL AND l.kernel_id IS NOT NULL GROUP BY 1, 2)
SELECT k.rank /*INTEGER?*/, k.label || iif(c.generation > 0, '#' || (c.generation + 1), '') AS label /*TEXT*/, k.direction /*TEXT?*/, k.kernel /*TEXT*/,
  k.debug_handle /*INTEGER?*/, k.code_line /*INTEGER?*/, k.post_grad_nodes /*TEXT?*/,
  k.pre_grad_nodes /*TEXT?*/, k.file /*TEXT?*/, k.line /*INTEGER?*/, k.function /*TEXT?*/,
  k.code /*TEXT?*/, k.basis /*TEXT?*/, k.stack_ordinal /*INTEGER?*/, k.kernel_id /*INTEGER*/,
  k.graph_id /*INTEGER*/, k.compile_id /*INTEGER*/, r.name AS run, m.calls /*INTEGER?*/,
  m.us AS measured_us /*REAL?*/, n.ordinal AS launch /*INTEGER?*/
FROM kernel_provenance k
  LEFT JOIN measured m ON m.kernel_id = k.kernel_id AND m.graph_id = k.graph_id
  JOIN compile c ON c.id = k.compile_id JOIN process p ON p.id = c.process_id
  JOIN log_file f ON f.id = p.log_file_id JOIN run r ON r.id = f.run_id
  LEFT JOIN launch n ON n.id = p.launch_id
WHERE k.graph_id IN (SELECT value FROM json_each(:graphs))
  AND (:kernel IS NULL OR k.kernel = :kernel OR k.kernel || ':' || k.debug_handle = :kernel
    OR k.kernel GLOB :kernel)
  AND (:file IS NULL OR EXISTS (SELECT 1 FROM kernel_source s
    WHERE s.kernel_id = k.kernel_id AND s.stack_ordinal = k.stack_ordinal
      AND (:line IS NULL OR s.line = :line) AND (s.file = :file OR s.file LIKE '%/' || :file)))
  AND (:node IS NULL
    OR EXISTS (SELECT 1 FROM kernel_node_row n
      WHERE n.kernel_id = k.kernel_id AND n.post_grad_node = :node)
    OR EXISTS (SELECT 1 FROM kernel_node_row n JOIN graph g ON g.id = k.graph_id
        JOIN node_mapping_row m ON m.content_id = g.provenance_content_id
          AND m.post_grad_node = n.post_grad_node
      WHERE n.kernel_id = k.kernel_id AND m.pre_grad_node = :node))
  AND (:rank IS NULL OR k.rank = :rank) AND (:run_id IS NULL OR r.id = :run_id)
  AND (:launch IS NULL OR n.ordinal = :launch)
ORDER BY CASE WHEN :by_cost THEN coalesce(m.us, -1) END DESC, k.compile_id, k.graph_id, k.kernel_id,
  k.stack_ordinal
LIMIT ifnull(:most, -1) OFFSET :skipped;

-- Graphs that have kernels, and what those of equal ranks have in common. `is_measured`: a profile
-- has times of it alone.
-- query GraphWithKernels(rank INTEGER?, pid INTEGER?, run_id INTEGER?, launch INTEGER?)
SELECT g.id, g.compile_id /*INTEGER*/, g.ordinal, g.direction /*TEXT?*/,
  g.provenance_content_id AS content_id /*INTEGER*/, c.label /*TEXT*/, c.generation, c.rank,
  f.run_id, p.launch_id,
  g.id IN (SELECT graph_id FROM compiled_slice_link_row) AS is_measured /*BOOLEAN*/
FROM graph g JOIN compile c ON c.id = g.compile_id JOIN process p ON p.id = c.process_id
  JOIN log_file f ON f.id = p.log_file_id LEFT JOIN launch n ON n.id = p.launch_id
WHERE g.provenance_content_id IS NOT NULL AND (:rank IS NULL OR c.rank = :rank) AND (:pid IS NULL OR p.pid = :pid)
  AND (:run_id IS NULL OR f.run_id = :run_id) AND (:launch IS NULL OR n.ordinal = :launch)
ORDER BY g.id;
