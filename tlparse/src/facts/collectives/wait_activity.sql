-- The annotations of a rank's program, without the profiler's own.
-- query AnnotationOfRank(run_id INTEGER, rank INTEGER)
SELECT t.text AS name, a.start_ns, a.start_ns + a.duration_ns AS end_ns /*INTEGER*/
FROM annotation_row a JOIN profile p ON p.id = a.profile_id JOIN text_row t ON t.id = a.name_id
WHERE p.run_id = :run_id AND p.rank = :rank AND p.kind = 'kineto' AND a.device IS NULL AND a.step IS NULL
  AND t.text NOT LIKE 'gloo:%' AND t.text NOT LIKE 'nccl:%' AND t.text NOT LIKE 'c10d:%';

-- How long each rank was in an annotation of that name.
-- query TimeInAnnotation(run_id INTEGER, name TEXT)
SELECT p.rank /*INTEGER*/, sum(a.duration_ns) AS ns /*INTEGER*/
FROM annotation_row a JOIN profile p ON p.id = a.profile_id
WHERE p.run_id = :run_id AND p.kind = 'kineto' AND p.rank IS NOT NULL AND a.device IS NULL
  AND a.name_id = (SELECT id FROM text_row WHERE text = :name)
GROUP BY 1;
