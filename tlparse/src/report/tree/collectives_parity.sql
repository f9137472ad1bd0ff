-- The collectives of a schedule or of generated code.
-- query CollectiveOfRecord(record_id INTEGER, source collective_source)
SELECT c.op, c.is_wait, u.graph_id FROM collective_use_row u
  JOIN collective_row c ON c.content_id = u.content_id
WHERE u.record_id = :record_id AND u.source = :source;

-- query GraphOfSchedule(record_id INTEGER, schedule collective_source)
SELECT graph_id FROM collective_use_row WHERE record_id = :record_id AND source = :schedule;
