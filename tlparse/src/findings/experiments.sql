-- The experiments with findings of a run, in their order.
-- query ExperimentOfRun(run_id INTEGER)
SELECT id, finding_id, verdict, reason,
  change = '[]' OR EXISTS (SELECT 1 FROM json_each(change)
    WHERE value ->> 'kind' IN ('fullgraph', 'backend')) AS is_check /*BOOLEAN*/
FROM experiment WHERE base_run_id = :run_id ORDER BY id;
