-- What is alive at the peak of each recording, by its site. A recording belongs to a profile's process by the join, or by its rank.
-- query HeldAtPeak(run_id INTEGER?, all_processes BOOLEAN, profile_ids INTEGER[])
WITH counted AS MATERIALIZED (SELECT id, process_id, rank FROM profile WHERE id IN (SELECT value FROM json_each(:profile_ids))),
  recording AS MATERIALIZED (SELECT s.id, s.peak_ordinal FROM memory_snapshot_row s JOIN profile p ON p.id = s.profile_id
    WHERE (:run_id IS NULL OR p.run_id = :run_id) AND (:all_processes OR EXISTS (SELECT 1 FROM counted c
      WHERE c.id = p.id OR c.process_id = p.process_id OR (p.process_id IS NULL AND c.rank = p.rank))))
SELECT r.id AS snapshot_id /*INTEGER*/, coalesce(l.graph_id, 0) AS graph_id /*INTEGER*/, coalesce(l.kernel_id, 0) AS kernel_id /*INTEGER*/,
  coalesce(t.text, '') AS file /*TEXT*/, coalesce(l.line, 0) AS line /*INTEGER*/, sum(a.size_bytes) AS size_bytes /*INTEGER*/
FROM recording r JOIN memory_allocation_row a ON a.snapshot_id = r.id AND (a.alloc_ordinal IS NULL OR a.alloc_ordinal <= r.peak_ordinal)
    AND (a.free_ordinal IS NULL OR a.free_ordinal > r.peak_ordinal)
  JOIN memory_site_link_row l ON l.site_id = a.site_id LEFT JOIN text_row t ON t.id = l.file_id
GROUP BY r.id, l.site_id ORDER BY r.id;

-- query NodeOfKernel(kernel_id INTEGER)
SELECT post_grad_node FROM kernel_node_row WHERE kernel_id = :kernel_id;
