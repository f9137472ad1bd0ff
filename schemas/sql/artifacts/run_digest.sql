-- Hashes of one run of a graph (kernels, choices, outputs), by libtrace::RunDigest or `tlparse run --numbers`: libtrace_run_digest. Two runs of a
-- deterministic program have equal hashes.
CREATE TABLE run_digest (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  ordinal INTEGER NOT NULL,
  compile_id INTEGER REFERENCES compile(id),
  graph TEXT,               -- the program's name of the graph: forward, backward, …
  call INTEGER,             -- of the graph, counted from 0 by the program
  kind TEXT,                -- output, kernel, choice (of autotuning), input (one that holds NaN or infinity)
  name TEXT,                -- for an output or input its position
  hash TEXT,                -- 51 characters of base32 of a SHA-256
  value TEXT,               -- the type of an output or input, a choice itself; NULL: not in the log
  norm REAL,                -- the Euclidean norm of an output, if it is finite; NULL: not in the log
  nan_count INTEGER,        -- elements that are NaN; NULL: none, or not looked for
  inf_count INTEGER,        -- elements that are infinite; NULL: none, or not looked for
  PRIMARY KEY (record_id, ordinal)
) STRICT, WITHOUT ROWID;
