-- A flag that is false is not in the log.
-- query DescribedTensor(compile_id INTEGER)
SELECT m ->> '$.describer_id' AS describer_id /*TEXT*/,
  coalesce(m ->> '$.source', '') AS source /*TEXT*/, coalesce(m ->> '$.id', '') AS id /*TEXT*/,
  coalesce(m ->> '$.dtype', '') AS dtype /*TEXT*/,
  coalesce(replace(replace(m -> '$.size', ' ', ''), ',', ', '), '') AS size /*TEXT*/,
  coalesce(replace(replace(m -> '$.stride', ' ', ''), ',', ', '), '') AS stride /*TEXT*/,
  iif(m ->> '$.requires_grad', 'True', 'False') AS requires_grad /*TEXT*/,
  iif(m ->> '$.is_parameter', 'True', 'False') AS is_parameter /*TEXT*/,
  coalesce(m ->> '$.layout', '') AS layout /*TEXT*/
FROM (SELECT r.id AS record_id, coalesce(r.metadata, r.envelope -> ('$."' || k.text || '"')) AS m
  FROM compile c
    JOIN record_row r ON r.id BETWEEN c.first_record_id AND c.last_record_id AND r.compile_id = c.id
    JOIN text_row k ON k.id = r.kind_id
  WHERE c.id = :compile_id AND k.text IN ('describe_tensor', 'describe_source'))
ORDER BY record_id;
