-- query CodeOfProcess(process_id INTEGER)
SELECT o.record_id, o.graph_id /*INTEGER*/, o.path, r.time_us /*INTEGER*/
FROM process p JOIN output_code o ON o.record_id BETWEEN p.first_record_id AND p.last_record_id
  JOIN record r ON r.id = o.record_id
WHERE p.id = :process_id AND r.process_id = :process_id AND o.path IS NOT NULL;

-- query CollectiveOfCode(record_id INTEGER)
SELECT op, group_name, shape, arguments, code_line /*INTEGER*/
FROM collective WHERE record_id = :record_id AND source = 'code' AND is_wait = 0 ORDER BY ordinal;
