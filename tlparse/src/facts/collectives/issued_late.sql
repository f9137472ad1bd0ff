-- query LabelInTime(process_id INTEGER, from_us INTEGER, to_us INTEGER)
SELECT c.label /*TEXT?*/
FROM record_row r JOIN process p ON p.id = r.process_id LEFT JOIN compile c ON c.id = r.compile_id
WHERE p.id = :process_id AND r.local_us + p.time_shift_us BETWEEN :from_us AND :to_us GROUP BY 1
ORDER BY min(r.id);
