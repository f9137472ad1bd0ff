-- Guards of a compile: record kinds dynamo_cpp_guards_str (guard tree) and dynamo_guards (JSON list of early logs).
-- A tree is stored once per distinct content with addresses and timings removed; `expression` is the text of the first
-- tree seen with that content (addresses in it are that process's), the payload holds each process's own.
CREATE TABLE guard_row (
  content_id INTEGER NOT NULL REFERENCES content_row(id),
  ordinal INTEGER NOT NULL,        -- 0-based line of the tree
  depth INTEGER NOT NULL,          -- 0: root
  kind_id INTEGER NOT NULL REFERENCES text_row(id),     -- TENSOR_MATCH, GuardManager, …
  expression TEXT NOT NULL,
  normalized_expression TEXT,      -- addresses replaced by <addr>; NULL: the same as expression
  source TEXT,                     -- L['x'], of the nearest manager
  user_file_id INTEGER REFERENCES text_row(id),
  user_line INTEGER,
  user_code TEXT,                  -- the text of that line
  user_function_id INTEGER REFERENCES text_row(id),
  hint TEXT,                       -- PyTorch's hint about the check (2.14): "type MLP"
  PRIMARY KEY (content_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE guard_use_row (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),
  compile_id INTEGER REFERENCES compile(id),
  content_id INTEGER NOT NULL REFERENCES content_row(id)
) STRICT;

CREATE VIEW guard AS
  SELECT u.record_id, u.compile_id, g.ordinal, g.depth, k.text AS kind, g.expression,
    coalesce(g.normalized_expression, g.expression) AS normalized_expression, g.source, f.text AS user_file, g.user_line,
    g.user_code, u.content_id, n.text AS user_function, g.hint
  FROM guard_use_row u JOIN guard_row g ON g.content_id = u.content_id
  LEFT JOIN text_row k ON k.id = g.kind_id LEFT JOIN text_row f ON f.id = g.user_file_id
  LEFT JOIN text_row n ON n.id = g.user_function_id;
