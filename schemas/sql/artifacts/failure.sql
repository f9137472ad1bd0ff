-- Failed compiles and restarts: dynamo_error, eager_compile_backwards_failure, make_fx_fail_partial, fx_interpreter_error,
-- and compilation_metrics (fail_type, restart_reasons).
CREATE TABLE failure_row (
  id INTEGER PRIMARY KEY,
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  compile_id INTEGER REFERENCES compile(id),
  attempt INTEGER,
  kind_id INTEGER NOT NULL REFERENCES text_row(id),   -- failure, restart, error, or the artifact's name
  type_id INTEGER REFERENCES text_row(id),            -- exception type
  reason_id INTEGER REFERENCES text_row(id),
  user_file_id INTEGER REFERENCES text_row(id),
  user_line INTEGER
) STRICT;

CREATE VIEW failure AS
  SELECT f.id, f.record_id, f.compile_id, f.attempt, k.text AS kind, t.text AS type, r.text AS reason,
    uf.text AS user_file, f.user_line
  FROM failure_row f
  LEFT JOIN text_row k ON k.id = f.kind_id LEFT JOIN text_row t ON t.id = f.type_id LEFT JOIN text_row r ON r.id = f.reason_id
  LEFT JOIN text_row uf ON uf.id = f.user_file_id;
