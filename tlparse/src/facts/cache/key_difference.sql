-- The records that hold torch._functorch.config: each compile has one.
-- query ConfigOfCompile(in_whole_records SQL)
SELECT compile_id /*INTEGER*/, payload_id /*INTEGER*/ FROM record_row
WHERE kind_id > 8 AND kind_id = (SELECT id FROM text_row WHERE text = 'artifact')
  AND name_id = (SELECT id FROM text_row WHERE text = 'torch._functorch.config')
  AND compile_id IS NOT NULL AND payload_id IS NOT NULL AND {in_whole_records} ORDER BY id;
