-- Of these keys and those between them, by key.
-- query ComponentSetOfKey(first_key INTEGER, last_key INTEGER)
SELECT key_id, component_set_id, device_index FROM cache_key_set_row
WHERE key_id BETWEEN :first_key AND :last_key ORDER BY key_id, component_set_id;

-- query CacheLookup(in_logs SQL)
SELECT id, compile_id /*INTEGER?*/, graph_id /*INTEGER?*/, layer_id, state, key_id /*INTEGER*/,
  component_set_id /*INTEGER*/, guard_expression_id /*INTEGER*/, bypass_reason_id /*INTEGER*/,
  time_saved_ns /*INTEGER*/, time_taken_ns /*INTEGER*/, event_time_ns /*INTEGER*/,
  remote_error_id /*INTEGER*/, waited_ns /*INTEGER*/, wait_given_up_id /*INTEGER*/,
  parent_event_id /*INTEGER*/
FROM cache_event_row WHERE {in_logs} ORDER BY record_id;

-- All lookups of a launch, and those of processes that a rank started.
-- query LookupsOfLaunch(run_id INTEGER, launch INTEGER)
SELECT count(*) AS all_count /*INTEGER*/,
  count(p.parent_process_id) AS child_count /*INTEGER*/
FROM cache_event_row e JOIN record_row r ON r.id = e.record_id JOIN process p ON p.id = r.process_id
  JOIN log_file f ON f.id = p.log_file_id LEFT JOIN launch n ON n.id = p.launch_id
WHERE f.run_id = :run_id AND coalesce(n.ordinal, 1) = :launch;

-- The lookup that another one is a part of.
-- query OuterLookup(id INTEGER)
SELECT layer_id, time_saved_ns /*INTEGER*/, time_taken_ns /*INTEGER*/ FROM cache_event_row
WHERE id = :id;
