-- The compile ids of a process.
-- query CompileOfTree(process_id INTEGER)
SELECT id, compiled_autograd_id, frame_id, frame_compile_id FROM compile
WHERE process_id = :process_id AND NOT is_synthetic;
