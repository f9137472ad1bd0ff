-- Collectives of a graph: from inductor_collective_schedule, and from the generated code (which is logged on a cache hit as well).
CREATE TABLE collective_row (
  content_id INTEGER NOT NULL REFERENCES content_row(id),
  ordinal INTEGER NOT NULL,
  op TEXT,                -- torch.ops._c10d_functional.all_reduce_.default; NULL: kernel without python name
  is_wait INTEGER NOT NULL,
  arguments TEXT,         -- as in the code, without the first tensor
  group_name TEXT,        -- process group
  shape TEXT,             -- JSON list, of its tensor; NULL: not in the code
  dtype TEXT,             -- without "torch."
  code_line INTEGER,
  PRIMARY KEY (content_id, ordinal)
) STRICT, WITHOUT ROWID;

-- Where a collective was found: in inductor_collective_schedule, or in the generated code.
CREATE TABLE collective_source (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL
) STRICT;
INSERT INTO collective_source VALUES (0, 'schedule'), (1, 'code');

-- (The key's columns come first: integrity_check of SQLite 3.40 misreads rows of a WITHOUT ROWID table otherwise.)
CREATE TABLE collective_use_row (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  source INTEGER NOT NULL REFERENCES collective_source(id),
  compile_id INTEGER REFERENCES compile(id),
  graph_id INTEGER REFERENCES graph(id),
  content_id INTEGER NOT NULL REFERENCES content_row(id),
  PRIMARY KEY (record_id, source)
) STRICT, WITHOUT ROWID;

CREATE VIEW collective AS
  SELECT u.record_id, p.rank, u.compile_id, u.graph_id, c.ordinal, c.op,
    (SELECT name FROM collective_source WHERE id = u.source) AS source, c.is_wait, c.arguments, c.group_name, c.shape, c.dtype,
    c.code_line, u.content_id, r.process_id
  FROM collective_use_row u JOIN collective_row c ON c.content_id = u.content_id
  JOIN record_row r ON r.id = u.record_id JOIN process p ON p.id = r.process_id AND u.record_id BETWEEN p.first_record_id AND p.last_record_id;
