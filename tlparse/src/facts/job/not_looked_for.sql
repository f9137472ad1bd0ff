-- Whether a run (NULL: any run) has logs, and text of TORCH_LOGS.
-- query LogsAmongInputs(run_id INTEGER?)
SELECT EXISTS (SELECT 1 FROM log_file WHERE :run_id IS NULL OR run_id = :run_id)
    AS has_logs /*BOOLEAN*/,
  EXISTS (SELECT 1 FROM profile WHERE (:run_id IS NULL OR run_id = :run_id) AND kind = 'torch_logs')
    AS has_text /*BOOLEAN*/;

-- The calls of gloo that dumps count (op_id) and do not hold: sends and receives.
-- query UnrecordedMessages(run_id INTEGER)
SELECT coalesce(sum(calls), 0) AS calls /*INTEGER*/, count(*) AS ranks /*INTEGER*/
FROM (SELECT rank, max(calls) AS calls FROM (SELECT id, rank, sum(calls) AS calls
    FROM (SELECT p.id, p.rank, max(e.op_id) - count(*) - iif(f.first_entry = 0, 0, min(e.op_id) - 1) AS calls
      FROM profile p JOIN recorder_entry_row e ON e.profile_id = p.id
        JOIN text_row t ON t.id = e.profiling_name_id
        JOIN (SELECT profile_id, min(recorder_id) AS first_entry FROM recorder_entry_row GROUP BY 1) f
          ON f.profile_id = p.id
      WHERE p.run_id = :run_id AND p.kind = 'flight_recorder' AND t.text LIKE 'gloo:%'
      GROUP BY p.id, e.pg_id)
    GROUP BY id)
  GROUP BY rank)
WHERE calls > 0;
