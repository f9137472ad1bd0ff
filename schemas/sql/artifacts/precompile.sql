-- Precompiled code: what a process was about to save when it called torch.compiler.save_cache_artifacts, one row per function that
-- torch.compile was given: artifact dynamo_cache_entries. Each call of it writes all entries again.
CREATE TABLE precompile_entry (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  ordinal INTEGER NOT NULL,   -- 0-based
  key TEXT,                   -- SHA-256 of the function's qualified name and first line: its place in the store
  function TEXT,              -- qualified name
  line INTEGER,               -- first line of the function
  device_type TEXT,           -- cpu, cuda, …; of a function that used several the one that decides
  codes INTEGER,              -- code objects: the function itself, and what follows its graph breaks
  backends INTEGER,           -- compiled graphs that these call
  missing_backends INTEGER,   -- of those, what the process did not hold: the codes that call them are not saved
  PRIMARY KEY (record_id, ordinal)
) STRICT, WITHOUT ROWID;

-- Entries that could not be put together: artifact dynamo_cache_exception. They are not saved.
CREATE TABLE precompile_exception (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),
  key TEXT,                   -- as in precompile_entry
  error TEXT                  -- the text of the exception
) STRICT;
