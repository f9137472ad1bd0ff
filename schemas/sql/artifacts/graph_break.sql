-- Graph breaks: artifact dynamo_graph_break_reason.
CREATE TABLE graph_break_row (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),
  compile_id INTEGER REFERENCES compile(id),
  attempt INTEGER,
  reason_id INTEGER NOT NULL REFERENCES text_row(id),     -- the exception's message, without the traceback
  user_stack_id INTEGER REFERENCES text_row(id),          -- the user's stack as text, innermost last
  user_file_id INTEGER REFERENCES text_row(id),           -- its innermost frame outside libraries, if there is one
  user_line INTEGER,
  cause_id INTEGER NOT NULL REFERENCES text_row(id)       -- first line of the reason after the introduction of what was traced
) STRICT;

CREATE VIEW graph_break AS
  SELECT g.record_id, g.compile_id, g.attempt, r.text AS reason, s.text AS user_stack, f.text AS user_file, g.user_line,
    c.text AS cause
  FROM graph_break_row g
  LEFT JOIN text_row r ON r.id = g.reason_id LEFT JOIN text_row s ON s.id = g.user_stack_id LEFT JOIN text_row f ON f.id = g.user_file_id
  LEFT JOIN text_row c ON c.id = g.cause_id;
