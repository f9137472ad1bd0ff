-- What one run of a graph used and gave, as hashes: libtrace_run_digest. Two runs of a program that is deterministic have equal ones.
CREATE TABLE run_digest (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  ordinal INTEGER NOT NULL,
  compile_id INTEGER REFERENCES compile(id),
  graph TEXT,               -- what the program calls the graph: forward, backward, a name
  call INTEGER,             -- of the graph, counted from 0 by the program
  kind TEXT,                -- output, kernel, choice (what autotuning took)
  name TEXT,                -- of an output its position
  hash TEXT,                -- 51 characters of base32 of a SHA-256
  value TEXT,               -- the type of an output, a choice itself; NULL: not in the log
  PRIMARY KEY (record_id, ordinal)
) STRICT, WITHOUT ROWID;
