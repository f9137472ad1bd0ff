-- Whether records that follow one another are equal to those `distance` ids further on. The payload of the last one may be cut.
-- query SameRecords(first INTEGER, last INTEGER, distance INTEGER)
SELECT NOT EXISTS (SELECT 1 FROM record_row a LEFT JOIN record_row b ON b.id = a.id + :distance
  WHERE a.id BETWEEN :first AND :last AND (a.byte_offset IS NOT b.byte_offset
    OR a.local_us IS NOT b.local_us OR a.envelope IS NOT b.envelope
    OR (a.payload_id IS NOT b.payload_id AND (a.id < :last OR a.payload_state = 1)))) AS are_equal /*BOOLEAN*/;

-- The files of the stack on which a process began its first compile, the outermost frame first.
-- query FirstCompileFrame(process_id INTEGER)
WITH RECURSIVE frame(id, depth) AS (
  SELECT (SELECT stack_id FROM compile
    WHERE process_id = :process_id AND stack_id IS NOT NULL ORDER BY +id LIMIT 1), 0
  UNION ALL SELECT s.parent_id, f.depth + 1 FROM frame f JOIN stack_frame s ON s.id = f.id)
SELECT s.file FROM frame f JOIN stack_frame s ON s.id = f.id ORDER BY f.depth DESC;
