-- query CompileOfIndex(process_id INTEGER)
SELECT id, stack_id, label, status /*TEXT*/, function, file /*TEXT?*/, line, duration_us,
  backward_duration_us
FROM compile WHERE process_id = :process_id;
