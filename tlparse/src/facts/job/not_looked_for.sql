-- Whether a run (NULL: any run) has logs, and text of TORCH_LOGS.
-- query LogsAmongInputs(run_id INTEGER?)
SELECT EXISTS (SELECT 1 FROM log_file WHERE :run_id IS NULL OR run_id = :run_id)
    AS has_logs /*BOOLEAN*/,
  EXISTS (SELECT 1 FROM profile WHERE (:run_id IS NULL OR run_id = :run_id) AND kind = 'torch_logs')
    AS has_text /*BOOLEAN*/;
