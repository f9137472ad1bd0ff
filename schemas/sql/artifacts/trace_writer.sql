-- The writer of a log, and its losses: libtrace_version, libtrace_loss. NULL: not in the log.
CREATE TABLE trace_writer (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),
  libtrace_version TEXT,
  language TEXT,            -- of the program: C++
  program TEXT,             -- file name of the executable
  host TEXT,                -- name of the machine
  time_ns INTEGER,          -- when this was written, UTC
  utc_offset_s INTEGER      -- local time minus UTC
) STRICT;
-- One kind of loss that a libtrace writer reports.
CREATE TABLE trace_loss (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  ordinal INTEGER NOT NULL,
  kind TEXT,                -- queue_full, write_failed, …
  record_count INTEGER,     -- since the last such record
  total_record_count INTEGER,
  reason TEXT,              -- of the first loss of this kind
  first_us INTEGER,         -- when losses of any kind began; NULL: unknown
  last_us INTEGER,
  PRIMARY KEY (record_id, ordinal)
) STRICT, WITHOUT ROWID;
-- The number of lost records of one name (libtrace).
CREATE TABLE lost_record (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  ordinal INTEGER NOT NULL,
  name TEXT NOT NULL,       -- record key or artifact name
  record_count INTEGER,
  PRIMARY KEY (record_id, ordinal)
) STRICT, WITHOUT ROWID;
