-- Symbolic shapes and draft-export (D) records, as views over the record: their volume is small and their members many.
CREATE VIEW symbol AS
  SELECT id AS record_id, process_id, rank, compile_id, kind, metadata ->> '$.symbol' AS name, metadata ->> '$.val' AS value,
    metadata ->> '$.vr' AS range, metadata ->> '$.source' AS source, metadata ->> '$.node_id' AS node_id, user_stack_id
  FROM record WHERE kind IN ('create_symbol', 'create_unbacked_symbol');

-- One guard on symbolic shapes.
CREATE VIEW symbolic_guard AS
  SELECT id AS record_id, process_id, rank, compile_id, kind, metadata ->> '$.expr' AS expression,
    metadata ->> '$.expr_node_id' AS node_id, metadata -> '$.symbol_to_sources' AS symbol_to_sources,
    metadata -> '$.frame_locals' AS frame_locals, user_stack_id, stack_id
  FROM record WHERE kind IN ('guard_added', 'guard_added_fast');

-- One symbolic dimension that became a constant.
CREATE VIEW specialization AS
  SELECT id AS record_id, process_id, rank, compile_id, metadata ->> '$.symbol' AS symbol, metadata ->> '$.value' AS value,
    metadata ->> '$.reason' AS reason, metadata -> '$.sources' AS sources, user_stack_id
  FROM record WHERE kind = 'symbolic_shape_specialization';

-- One guard or value that draft export took from real tensors.
CREATE VIEW real_tensor_propagation AS
  SELECT id AS record_id, process_id, rank, compile_id, kind, metadata ->> '$.expr' AS expression,
    metadata ->> '$.result' AS result, metadata ->> '$.expr_node_id' AS node_id, user_stack_id, stack_id
  FROM record WHERE kind IN ('propagate_real_tensors', 'propagate_real_tensors_provenance', 'guard_on_data_dependent_error');

-- One symbolic expression that was created.
CREATE VIEW symbolic_expression AS
  SELECT id AS record_id, process_id, rank, compile_id, metadata ->> '$.method' AS method, metadata ->> '$.result' AS result,
    metadata ->> '$.result_id' AS result_id, metadata -> '$.arguments' AS arguments, metadata -> '$.argument_ids' AS argument_ids,
    user_stack_id, stack_id
  FROM record WHERE kind = 'expression_created';

-- One op whose fake kernel is missing or does not match the real one (draft export).
CREATE VIEW fake_kernel_issue AS
  SELECT id AS record_id, process_id, rank, compile_id, kind, metadata ->> '$.op' AS op, metadata ->> '$.reason' AS reason
  FROM record WHERE kind IN ('missing_fake_kernel', 'mismatched_fake_kernel');
