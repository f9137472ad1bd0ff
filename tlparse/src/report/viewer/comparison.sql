-- Times of the forward's counters, which contain each other, and of the backward.
-- query CountersOfCompile(compile_id INTEGER)
SELECT coalesce(sum(m.dynamo_us), 0) AS dynamo_us /*INTEGER*/,
  coalesce(sum(m.aot_autograd_us), 0) AS aot_autograd_us /*INTEGER*/,
  coalesce(sum(m.inductor_us), 0) AS inductor_us /*INTEGER*/,
  coalesce(sum(m.code_gen_us), 0) AS code_gen_us /*INTEGER*/,
  coalesce((SELECT backward_duration_us FROM compile WHERE id = :compile_id), 0) AS
    backward_us /*INTEGER*/
FROM compilation_metric m
WHERE m.compile_id = :compile_id
  AND m.kind = 'compilation_metrics';
