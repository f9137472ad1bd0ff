-- query BreakOfCompile(compile_id INTEGER)
SELECT reason, user_file /*TEXT?*/, user_line /*INTEGER*/
FROM graph_break WHERE compile_id = :compile_id ORDER BY record_id;

-- query GuardOfCompile(compile_id INTEGER)
SELECT normalized_expression /*TEXT*/, user_code, user_file, user_line /*INTEGER*/,
  min(ordinal) AS first_ordinal /*INTEGER*/
FROM guard
WHERE compile_id = :compile_id AND kind NOT LIKE '%Manager' AND normalized_expression <> ''
GROUP BY 1;

-- query KernelOfCompile(compile_id INTEGER)
SELECT k.name FROM graph g JOIN kernel_row k ON k.content_id = g.provenance_content_id
WHERE g.compile_id = :compile_id;

-- query CodeOfCompile(compile_id INTEGER)
SELECT coalesce(g.direction, '') AS direction /*TEXT*/, c.hash, o.record_id
FROM output_code_row o JOIN content_row c ON c.id = o.content_id
  LEFT JOIN graph g ON g.id = o.graph_id
WHERE o.compile_id = :compile_id ORDER BY o.record_id;

-- query LookupOfCompile(compile_id INTEGER)
SELECT l.text AS layer, (SELECT name FROM cache_state WHERE id = e.state) AS state /*TEXT*/,
  coalesce(g.direction, '') AS direction /*TEXT*/, k.key, b.text AS bypass_reason,
  u.text AS guard_expression, re.text AS remote_error,
  coalesce(max(x.component_set_id), e.component_set_id) AS component_set_id /*INTEGER*/,
  x.device_index
FROM cache_event_row e LEFT JOIN cache_key_set_row x ON x.key_id = e.key_id
    AND x.component_set_id = coalesce(e.component_set_id, x.component_set_id)
  LEFT JOIN text_row l ON l.id = e.layer_id LEFT JOIN cache_key_row k ON k.id = e.key_id
  LEFT JOIN text_row b ON b.id = e.bypass_reason_id
  LEFT JOIN text_row u ON u.id = e.guard_expression_id
  LEFT JOIN text_row re ON re.id = e.remote_error_id LEFT JOIN graph g ON g.id = e.graph_id
WHERE e.compile_id = :compile_id GROUP BY e.id ORDER BY e.record_id;

-- query PhaseTimesOfCompile(compile_id INTEGER)
SELECT sum(dynamo_us) AS dynamo_us /*INTEGER?*/, sum(aot_autograd_us) AS aot_autograd_us /*INTEGER?*/,
  sum(inductor_us) AS inductor_us /*INTEGER?*/, sum(code_gen_us) AS code_gen_us /*INTEGER?*/,
  sum(triton_us) AS triton_us /*INTEGER?*/, sum(backward_us) AS backward_us /*INTEGER?*/
FROM compilation_metric_row WHERE compile_id = :compile_id;

-- query FunctorchConfig(compile_id INTEGER)
SELECT r.payload_id /*INTEGER*/
FROM compile_record_row m JOIN record_row r ON r.id = m.record_id
WHERE m.compile_id = :compile_id
  AND r.name_id = (SELECT id FROM text_row WHERE text = 'torch._functorch.config')
ORDER BY r.id LIMIT 1;
