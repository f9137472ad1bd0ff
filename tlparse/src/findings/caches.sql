-- Lookups that ended in a state, with the reason.
-- query LookupWithReason(reason_id SQL, state cache_state, in_logs SQL)
SELECT e.compile_id, l.text AS layer, b.text AS reason, e.id
FROM cache_event_row e JOIN text_row l ON l.id = e.layer_id
  LEFT JOIN text_row b ON b.id = {reason_id}
WHERE e.state = :state AND {in_logs} ORDER BY e.id;
