-- The profiles of ranks.
-- query ProfileOfRank(run_id INTEGER)
SELECT rank /*INTEGER*/, host, start_us /*INTEGER*/, end_us /*INTEGER*/ FROM profile
WHERE run_id = :run_id AND kind = 'kineto' AND rank IS NOT NULL AND start_us IS NOT NULL AND end_us IS NOT NULL;

-- The calls that last until other ranks come to theirs: a send of Gloo until its data are received. A
-- barrier is there to wait in.
-- query BlockingCall(run_id INTEGER)
SELECT p.rank /*INTEGER*/, a.start_ns, a.start_ns + a.duration_ns AS end_ns /*INTEGER*/,
  CASE t.text WHEN 'gloo:send' THEN 'sends' WHEN 'gloo:recv' THEN 'receives' ELSE 'collectives' END AS kind /*TEXT*/
FROM annotation_row a JOIN profile p ON p.id = a.profile_id JOIN text_row t ON t.id = a.name_id
WHERE p.run_id = :run_id AND p.kind = 'kineto' AND p.rank IS NOT NULL AND a.device IS NULL
  AND t.text LIKE 'gloo:%' AND t.text <> 'gloo:barrier';

-- The annotations of a rank's program, without the profiler's own.
-- query AnnotationOfRank(run_id INTEGER, rank INTEGER)
SELECT t.text AS name, a.start_ns, a.start_ns + a.duration_ns AS end_ns /*INTEGER*/
FROM annotation_row a JOIN profile p ON p.id = a.profile_id JOIN text_row t ON t.id = a.name_id
WHERE p.run_id = :run_id AND p.rank = :rank AND p.kind = 'kineto' AND a.device IS NULL AND a.step IS NULL
  AND t.text NOT LIKE 'gloo:%' AND t.text NOT LIKE 'nccl:%' AND t.text NOT LIKE 'c10d:%';

-- How many steps of a rank began in a time.
-- query StepsInTime(run_id INTEGER, rank INTEGER, from_ns INTEGER, to_ns INTEGER)
SELECT count(DISTINCT a.step) AS count /*INTEGER*/
FROM annotation_row a JOIN profile p ON p.id = a.profile_id
WHERE p.run_id = :run_id AND p.rank = :rank AND p.kind = 'kineto' AND a.device IS NULL AND a.step IS NOT NULL
  AND a.start_ns + a.duration_ns > :from_ns AND a.start_ns < :to_ns;
