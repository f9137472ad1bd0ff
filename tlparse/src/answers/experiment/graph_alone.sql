-- The script of the graph that was begun last in the compiles of these labels, of these ranks; of all
-- ranks if none is named.
-- query ScriptOfCompiles(run_id INTEGER, labels TEXT, ranks TEXT)
SELECT p.content AS text /*TEXT*/
FROM record_row r JOIN text_row n ON n.id = r.name_id JOIN payload_row p ON p.id = r.payload_id
  JOIN compile c ON c.id = r.compile_id JOIN process s ON s.id = c.process_id
  JOIN log_file l ON l.id = s.log_file_id
WHERE l.run_id = :run_id AND n.text = 'fx_graph_runnable'
  AND c.label IN (SELECT value FROM json_each(:labels))
  AND (json_array_length(:ranks) = 0 OR s.rank IN (SELECT value FROM json_each(:ranks)))
ORDER BY r.id DESC LIMIT 1;
