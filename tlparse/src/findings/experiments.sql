-- The experiments with findings of a run, in their order.
-- query ExperimentOfRun(run_id INTEGER)
SELECT id, finding_id, verdict, reason FROM experiment WHERE base_run_id = :run_id ORDER BY id;
