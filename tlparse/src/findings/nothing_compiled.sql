-- What the metrics of compiles say of the operations in their graphs.
-- query OpsOfGraphs(in_logs SQL)
SELECT count(*) FILTER (WHERE m.graph_op_count = 0) AS no_ops /*INTEGER*/,
  count(*) FILTER (WHERE m.graph_op_count > 0) AS with_ops /*INTEGER*/
FROM compilation_metric_row m
WHERE {in_logs};
