-- The thread that steps: that of the marks, the busiest of several.
-- query StepThread(profile_id INTEGER, first_step INTEGER, last_step INTEGER)
SELECT thread_id /*INTEGER*/ FROM annotation_row
WHERE profile_id = :profile_id AND device IS NULL AND thread_id IS NOT NULL
  AND step BETWEEN :first_step AND :last_step
GROUP BY thread_id ORDER BY sum(duration_ns) DESC, thread_id LIMIT 1;

-- record_function() of PyTorch (its optimizers, its DataLoader) and of the program.
-- query AnnotationOfThread(profile_id INTEGER, thread_id INTEGER, start_ns INTEGER, end_ns INTEGER)
SELECT a.start_ns, a.start_ns + a.duration_ns AS end_ns /*INTEGER*/, t.text AS name /*TEXT*/
FROM annotation_row a JOIN text_row t ON t.id = a.name_id
WHERE a.profile_id = :profile_id AND a.thread_id = :thread_id AND a.device IS NULL
  AND a.step IS NULL AND a.duration_ns > 0
  AND a.start_ns < :end_ns AND a.start_ns + a.duration_ns > :start_ns
ORDER BY a.start_ns, a.duration_ns DESC, a.id;

-- query OpOfThread(profile_id INTEGER, thread_id INTEGER, start_ns INTEGER, end_ns INTEGER)
SELECT o.start_ns, o.start_ns + o.duration_ns AS end_ns /*INTEGER*/, t.text AS name /*TEXT*/
FROM op_run_row o JOIN text_row t ON t.id = o.name_id
WHERE o.profile_id = :profile_id AND o.thread_id = :thread_id AND o.duration_ns > 0
  AND o.start_ns < :end_ns AND o.start_ns + o.duration_ns > :start_ns
ORDER BY o.start_ns, o.duration_ns DESC, o.id;
