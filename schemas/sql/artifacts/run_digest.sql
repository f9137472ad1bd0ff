-- Hashes of one run of a graph (kernels, choices, outputs): libtrace_run_digest. Two runs of a deterministic program have equal hashes.
CREATE TABLE run_digest (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  ordinal INTEGER NOT NULL,
  compile_id INTEGER REFERENCES compile(id),
  graph TEXT,               -- the program's name of the graph: forward, backward, …
  call INTEGER,             -- of the graph, counted from 0 by the program
  kind TEXT,                -- output, kernel, choice (of autotuning)
  name TEXT,                -- for an output its position
  hash TEXT,                -- 51 characters of base32 of a SHA-256
  value TEXT,               -- the type of an output, a choice itself; NULL: not in the log
  PRIMARY KEY (record_id, ordinal)
) STRICT, WITHOUT ROWID;
