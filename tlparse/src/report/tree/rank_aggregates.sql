-- The ops of an estimate, in order.
-- query EstimatedOp(record_id INTEGER)
SELECT o.name, e.estimated_ns /*REAL*/ FROM op_list_use_row u
  JOIN op_row o ON o.content_id = u.content_id
  LEFT JOIN op_estimate_row e
    ON e.content_id = u.estimate_content_id AND e.ordinal = o.ordinal
WHERE u.record_id = :record_id ORDER BY o.ordinal;
