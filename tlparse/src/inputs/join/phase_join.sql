-- query PhaseAnnotation(profile_id INTEGER)
SELECT t.text AS name, coalesce(a.thread_id, 0) AS thread_id /*INTEGER*/, a.start_ns
FROM annotation_row a JOIN text_row t ON t.id = a.name_id
WHERE a.profile_id = :profile_id AND a.device IS NULL
  AND t.text LIKE '%\_data: %compile\_id=%' ESCAPE '\'
ORDER BY a.start_ns;

-- query OpOfNames(profile_id INTEGER, names TEXT)
SELECT t.text AS name, coalesce(o.thread_id, 0) AS thread_id /*INTEGER*/, o.id, o.start_ns,
  o.start_ns + o.duration_ns AS end_ns /*INTEGER*/
FROM op_run_row o JOIN text_row t ON t.id = o.name_id
WHERE o.profile_id = :profile_id AND o.name_id IN (SELECT n.id FROM text_row n
  JOIN json_each(:names) j ON j.value = n.text)
ORDER BY o.start_ns;
