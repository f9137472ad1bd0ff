-- Indexes, created after the load. There are few: each costs as much as the rows themselves.
CREATE INDEX IF NOT EXISTS compile_by_label ON compile(process_id, label);
-- These two have what the answers about ranks read of all rows.
CREATE INDEX IF NOT EXISTS graph_by_compile ON graph(compile_id, ordinal, direction);
CREATE INDEX IF NOT EXISTS graph_text_by_compile ON graph_text_row(compile_id, stage_id, content_id);
-- The typed rows of one compile. These tables have few rows compared with `record_row`.
CREATE INDEX IF NOT EXISTS cache_event_by_compile ON cache_event_row(compile_id);
CREATE INDEX IF NOT EXISTS collective_by_compile ON collective_use_row(compile_id);
CREATE INDEX IF NOT EXISTS failure_by_compile ON failure_row(compile_id);
CREATE INDEX IF NOT EXISTS graph_break_by_compile ON graph_break_row(compile_id);
CREATE INDEX IF NOT EXISTS guard_by_compile ON guard_use_row(compile_id);
CREATE INDEX IF NOT EXISTS metric_by_compile ON compilation_metric_row(compile_id);
CREATE INDEX IF NOT EXISTS op_list_by_compile ON op_list_use_row(compile_id);
CREATE INDEX IF NOT EXISTS output_code_by_compile ON output_code_row(compile_id);
CREATE INDEX IF NOT EXISTS recompile_by_compile ON recompile_row(compile_id);
-- Events that were never closed: those that were running at the end of a log. Few rows.
CREATE INDEX IF NOT EXISTS chromium_event_open ON chromium_event_row(compile_id) WHERE phase = 66;
-- Rows of a rank: the views find its processes by rank, and their rows by the range of record ids that each process has.
CREATE INDEX IF NOT EXISTS process_by_rank ON process(rank);
CREATE INDEX IF NOT EXISTS compile_by_rank ON compile(rank);
CREATE INDEX IF NOT EXISTS cache_event_by_record ON cache_event_row(record_id);
-- Records of a kind and an artifact's name: as in compile_record, without the most frequent kinds, whose entries would cost
-- 3 % of the ingest. The components of a key.
CREATE INDEX IF NOT EXISTS text_by_text ON text_row(text);
CREATE INDEX IF NOT EXISTS record_by_kind ON record_row(kind_id, name_id) WHERE kind_id > 8;
CREATE INDEX IF NOT EXISTS record_by_payload ON record_row(payload_id);
CREATE INDEX IF NOT EXISTS cache_key_by_key ON cache_key_row(key);
-- A call on all ranks. The rows of one profile: a job has one profile for each rank. Joins of calls, ops and device work begin with the same column: with two
-- indexes SQLite could choose the one of profiles, and compare all rows with all.
CREATE INDEX IF NOT EXISTS annotation_by_profile ON annotation_row(profile_id);
CREATE INDEX IF NOT EXISTS collective_run_by_entry ON collective_run_row(entry_id) WHERE entry_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS collective_run_by_number ON collective_run_row(group_id, sequence_number);
CREATE INDEX IF NOT EXISTS compiled_slice_by_profile ON compiled_slice_row(profile_id);
CREATE INDEX IF NOT EXISTS device_copy_by_correlation ON device_copy_row(profile_id, correlation);
CREATE INDEX IF NOT EXISTS device_copy_by_external ON device_copy_row(profile_id, external_id);
CREATE INDEX IF NOT EXISTS device_launch_by_correlation ON device_launch_row(profile_id, correlation);
CREATE INDEX IF NOT EXISTS kernel_run_by_correlation ON kernel_run_row(profile_id, correlation);
CREATE INDEX IF NOT EXISTS kernel_run_by_external ON kernel_run_row(profile_id, external_id);
CREATE INDEX IF NOT EXISTS op_run_by_external ON op_run_row(profile_id, external_id);
CREATE INDEX IF NOT EXISTS op_run_by_sequence ON op_run_row(profile_id, sequence_number) WHERE sequence_number IS NOT NULL;
-- An allocation of a profile finds its event.
CREATE INDEX IF NOT EXISTS memory_event_by_ordinal ON memory_event_row(snapshot_id, ordinal) WHERE thread_id IS NOT NULL;
