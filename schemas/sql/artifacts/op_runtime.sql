-- Estimated runtime and output tensors per scheduled op: inductor_runtime_and_tensor_meta, and the two artifacts of 2025 it replaced
-- (inductor_tlparse_runtime, inductor_tlparse_tensor_meta).
CREATE TABLE op_row (
  content_id INTEGER NOT NULL REFERENCES content_row(id),
  ordinal INTEGER NOT NULL,
  name TEXT,                -- scheduler node, or python kernel name of an extern kernel or collective; NULL: it has none
  type TEXT,                -- collective, compute
  PRIMARY KEY (content_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE TABLE op_output_row (
  content_id INTEGER NOT NULL REFERENCES content_row(id),
  op_ordinal INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  shape TEXT,               -- JSON list
  stride TEXT,              -- JSON list
  dtype TEXT,
  PRIMARY KEY (content_id, op_ordinal, ordinal)
) STRICT, WITHOUT ROWID;
CREATE TABLE op_estimate_row (
  content_id INTEGER NOT NULL REFERENCES content_row(id),
  ordinal INTEGER NOT NULL,
  estimated_ns REAL,        -- nanoseconds; see op_list_use_row.unit
  PRIMARY KEY (content_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE TABLE op_list_use_row (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),
  compile_id INTEGER REFERENCES compile(id),
  graph_id INTEGER REFERENCES graph(id),
  content_id INTEGER NOT NULL REFERENCES content_row(id),        -- op_row, op_output_row
  estimate_content_id INTEGER REFERENCES content_row(id),        -- op_estimate_row
  unit TEXT NOT NULL        -- assumed unit of the log's numbers: ns, or ms (2.14 writes milliseconds in a member whose name ends in _ns)
) STRICT;

-- Where a log has estimates and tensors in two artifacts (mid 2025), only the one with estimates counts here.
CREATE VIEW op_runtime AS
  SELECT u.record_id, p.rank, u.compile_id, u.graph_id, o.ordinal, o.name, o.type, e.estimated_ns,
    u.unit AS assumed_unit, u.content_id, u.estimate_content_id, r.process_id
  FROM op_list_use_row u JOIN op_row o ON o.content_id = u.content_id
  LEFT JOIN op_estimate_row e ON e.content_id = u.estimate_content_id AND e.ordinal = o.ordinal
  JOIN record_row r ON r.id = u.record_id JOIN process p ON p.id = r.process_id AND u.record_id BETWEEN p.first_record_id AND p.last_record_id
  WHERE u.estimate_content_id IS NOT NULL;

-- One output tensor of an op: shape, stride, dtype.
CREATE VIEW tensor_meta AS
  SELECT u.record_id, p.rank, u.compile_id, u.graph_id, o.name AS op, t.ordinal, t.shape, t.stride,
    t.dtype, t.op_ordinal, u.content_id, r.process_id
  FROM op_list_use_row u JOIN op_output_row t ON t.content_id = u.content_id
  JOIN op_row o ON o.content_id = t.content_id AND o.ordinal = t.op_ordinal
  JOIN record_row r ON r.id = u.record_id JOIN process p ON p.id = r.process_id AND u.record_id BETWEEN p.first_record_id AND p.last_record_id;
