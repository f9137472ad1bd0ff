-- Inputs of a compile: record kinds describe_storage, describe_tensor, describe_source, as views over the record.
CREATE VIEW tensor_description AS
  SELECT id AS record_id, process_id, rank, compile_id, metadata ->> '$.describer_id' AS describer_id, metadata ->> '$.id' AS tensor_id,
    metadata ->> '$.ndim' AS ndim, metadata ->> '$.dtype' AS dtype, metadata ->> '$.device' AS device, metadata -> '$.size' AS size,
    metadata -> '$.stride' AS stride, metadata ->> '$.storage' AS storage_id, metadata ->> '$.requires_grad' AS requires_grad,
    metadata ->> '$.is_parameter' AS is_parameter, metadata AS description
  FROM record WHERE kind = 'describe_tensor';

-- One storage behind the tensors that go into a compile.
CREATE VIEW storage_description AS
  SELECT id AS record_id, process_id, rank, compile_id, metadata ->> '$.describer_id' AS describer_id, metadata ->> '$.id' AS storage_id,
    metadata ->> '$.size' AS size_bytes
  FROM record WHERE kind = 'describe_storage';

-- Where a tensor that goes into a compile comes from.
CREATE VIEW tensor_source AS
  SELECT id AS record_id, process_id, rank, compile_id, metadata ->> '$.describer_id' AS describer_id, metadata ->> '$.id' AS tensor_id,
    metadata ->> '$.source' AS source
  FROM record WHERE kind = 'describe_source';
