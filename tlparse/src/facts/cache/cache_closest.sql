-- Lookups of earlier runs whose key has known components, the latest first.
-- query KeyOfEarlierRun(run_id INTEGER, most INTEGER)
SELECT k.component_set_id, k.device_index, e.key_id, e.layer_id, g.direction, c.function, c.label,
  u.name AS run_name, p.torch_version, p.python_version
FROM cache_event_row e
  JOIN cache_key_set_row k
    ON k.key_id = e.key_id AND k.component_set_id = e.component_set_id
  JOIN compile c ON c.id = e.compile_id JOIN process p ON p.id = c.process_id
  JOIN log_file f ON f.id = p.log_file_id JOIN run u ON u.id = f.run_id
  LEFT JOIN graph g ON g.id = e.graph_id
WHERE f.run_id < :run_id ORDER BY e.record_id DESC LIMIT :most;
