-- A command that `tlparse run` started, by its run.json: one row per file.
CREATE TABLE run_command (
  profile_id INTEGER PRIMARY KEY REFERENCES profile(id),
  command TEXT,                   -- JSON: program and arguments
  directory TEXT,                 -- in which it was started
  host TEXT,                      -- name of the machine
  started_us INTEGER,
  ended_us INTEGER,
  exit_code INTEGER,              -- as tlparse run returned it: 128 + n if signal n ended it
  environment TEXT,               -- JSON: variables that say how PyTorch ran
  recorded TEXT,                  -- JSON: what was set to record it
  hangs TEXT                      -- JSON: when it seemed to hang, why, and what was taken
) STRICT;

-- One process of such a command.
CREATE TABLE run_process (
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  ordinal INTEGER NOT NULL,       -- 0-based, in the order of the file: 0 is the command
  pid INTEGER NOT NULL,
  parent_pid INTEGER,             -- of its parent when it was first seen
  rank INTEGER,                   -- in its process group, else its argument that is the rank of others like it, else RANK of its environment; NULL: none, or
                                  -- the child of a process with that RANK
  command TEXT,
  exit_code INTEGER,              -- NULL: not known, or a signal ended it
  signal INTEGER,                 -- that ended it
  stopped_at TEXT,                -- where its main thread was then, or where it called sys.exit or os._exit: "file:line in f, which called g"; NULL: not known
  fault_thread TEXT,              -- in which a fatal signal came: main; python (another, and stopped_at is its place); native (one that runs
                                  -- no Python code); NULL: none came, or not known
  started_us INTEGER,
  ended_us INTEGER,               -- NULL: it lived on when the command had ended
  PRIMARY KEY (profile_id, ordinal)
) STRICT;
