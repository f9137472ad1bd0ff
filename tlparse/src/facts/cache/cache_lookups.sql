-- Of these keys and those between them, by key.
-- query ComponentSetOfKey(first_key INTEGER, last_key INTEGER)
SELECT key_id, component_set_id, device_index FROM cache_key_set_row
WHERE key_id BETWEEN :first_key AND :last_key ORDER BY key_id, component_set_id;

-- The lookups of a job, each with the one of the layer around it.
-- query CacheLookup(in_logs SQL)
SELECT e.id, e.compile_id, e.graph_id, e.layer_id, e.state, e.key_id, e.component_set_id,
  e.guard_expression_id, e.bypass_reason_id, e.time_saved_ns, e.time_taken_ns, e.event_time_ns,
  e.remote_error_id, e.waited_ns, e.wait_given_up_id, o.layer_id AS outer_layer_id,
  o.time_saved_ns AS outer_saved_ns, o.time_taken_ns AS outer_taken_ns
FROM cache_event_row e LEFT JOIN cache_event_row o ON o.id = e.parent_event_id
WHERE {in_logs} ORDER BY e.record_id;
