-- What a thread that Python started runs, of the stack of a call: its outermost function outside of Python's own
-- modules of threads. No row: the stack is of no such thread, or it is not known.
-- query ThreadOfCall(call_id INTEGER)
WITH RECURSIVE up(id, parent_id, depth) AS (
  SELECT f.id, f.parent_id, 0 FROM collective_run c JOIN recorder_entry e ON e.id = c.entry_id
    JOIN stack_frame f ON f.id = e.stack_id WHERE c.id = :call_id
  UNION ALL SELECT f.id, f.parent_id, u.depth + 1 FROM up u JOIN stack_frame f ON f.id = u.parent_id)
SELECT f.function /*TEXT*/, f.file /*TEXT*/, f.line /*INTEGER*/
FROM up u JOIN stack_frame f ON f.id = u.id
WHERE f.file NOT LIKE '%/threading.py' AND f.file NOT LIKE '%/concurrent/futures/thread.py'
  AND EXISTS (SELECT 1 FROM up w JOIN stack_frame b ON b.id = w.id
    WHERE b.function = '_bootstrap' AND b.file LIKE '%/threading.py')
ORDER BY u.depth DESC LIMIT 1;
