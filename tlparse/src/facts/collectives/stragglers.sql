-- How much of a time the annotations of a rank's program take, without the profiler's own.
-- query AnnotationInTime(run_id INTEGER, rank INTEGER, from_ns INTEGER, to_ns INTEGER)
SELECT t.text AS name, min(a.start_ns + a.duration_ns, :to_ns) - max(a.start_ns, :from_ns) AS shared_ns /*INTEGER*/
FROM annotation_row a JOIN profile p ON p.id = a.profile_id JOIN text_row t ON t.id = a.name_id
WHERE p.run_id = :run_id AND p.rank = :rank AND a.device IS NULL AND a.step IS NULL
  AND a.start_ns < :to_ns AND a.start_ns + a.duration_ns > :from_ns
  AND t.text NOT LIKE 'gloo:%' AND t.text NOT LIKE 'nccl:%' AND t.text NOT LIKE 'c10d:%';

-- The time that the profiles of a rank cover.
-- query ProfiledTime(run_id INTEGER, rank INTEGER)
SELECT coalesce(min(p.start_us), 0) * 1000 AS start_ns /*INTEGER*/, coalesce(max(p.end_us), 0) * 1000 AS end_ns /*INTEGER*/
FROM profile p JOIN profile_kind k ON k.name = p.kind
WHERE p.run_id = :run_id AND p.rank = :rank AND k.has_times = 1;
