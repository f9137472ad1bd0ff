-- Cache lookups.

-- table: cache_event
SELECT id, record_id, compile_id, graph_id, process_id, component_set_id, parent_event_id, time_saved_ns, time_taken_ns,
  device_index,
  0 AS "|",
  layer, state, key, direction, components_state, status_detailed, bypass_reason, guard_expression
FROM cache_event
WHERE process_id IN run_process
ORDER BY id;
