-- query LastRecordBefore(process_id INTEGER, time_us INTEGER)
SELECT max(r.local_us) + p.time_shift_us AS time_us /*INTEGER?*/
FROM process p JOIN record_row r ON r.process_id = p.id
WHERE p.id = :process_id AND r.local_us + p.time_shift_us < :time_us;

-- The first compile, by a process, of the function of a graph.
-- query CompileOfFunction(process_id INTEGER, graph_id INTEGER)
SELECT c.label, c.start_time_us, c.start_time_us + c.duration_us AS end_us /*INTEGER?*/
FROM compile c JOIN graph g ON g.id = :graph_id JOIN compile o ON o.id = g.compile_id
WHERE c.process_id = :process_id AND c.function IS o.function AND c.line IS o.line ORDER BY c.id
LIMIT 1;
