-- query TunedKernelOfJob(in_logs SQL)
SELECT record_id /*INTEGER*/, process_id /*INTEGER*/, compile_id /*INTEGER?*/, is_at_run_time /*BOOLEAN*/, kernel /*TEXT*/, shapes /*TEXT*/, strides /*TEXT*/, dtypes /*TEXT*/,
  choices /*INTEGER?*/, triton_choices /*INTEGER?*/, best /*TEXT*/, best_description /*TEXT*/, best_ms /*REAL?*/, triton_place /*INTEGER?*/,
  best_triton /*TEXT*/, best_triton_description /*TEXT*/, best_triton_ms /*REAL?*/, precompile_us /*REAL?*/, precompile_record_id /*INTEGER?*/, duration_us /*REAL*/
FROM autotune WHERE {in_logs} ORDER BY process_id, record_id;

-- query FailedChoiceOfJob(in_logs SQL)
SELECT record_id /*INTEGER*/, process_id /*INTEGER*/, compile_id /*INTEGER?*/, kernel /*TEXT*/, choice /*TEXT*/, exception /*TEXT*/, message /*TEXT*/,
  is_out_of_memory /*BOOLEAN*/
FROM autotune_failure WHERE {in_logs} ORDER BY process_id, record_id, ordinal;
