-- What the watchdog of ProcessGroupNCCL printed to standard error, one row per line: the collective that timed out, and how far each rank
-- had come. Numbers are those of the collectives of one process group; NULL: the line does not say.
CREATE TABLE nccl_watchdog (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  line INTEGER NOT NULL,          -- 1-based, in the file
  rank INTEGER,                   -- of the "[rankN]:" before the line; without it that of the line, where it names no group or the one of all ranks
  group_name TEXT,                -- PG GUID, which is the same on all ranks of a group; in texts without one the PG ID: "0"
  group_description TEXT,         -- "default_pg"
  event TEXT NOT NULL,            -- timeout (a collective ran for longer than its limit), status (of the rank whose watchdog saw it), dump_signal (of a rank that was told of it), no_progress (the watchdog itself hung: a call of CUDA or NCCL did not return)
  sequence_number INTEGER,        -- of the collective that timed out
  op TEXT,                        -- "ALLREDUCE"
  numel_in INTEGER,               -- elements that a rank gave
  numel_out INTEGER,              -- elements that it got
  timeout_ms INTEGER,             -- its limit
  ran_ms INTEGER,                 -- how long it had run; of no_progress how long the watchdog hung
  last_enqueued INTEGER,          -- -1: none; a call that NCCL has not returned from is not counted
  last_completed INTEGER,         -- -1: none
  signal_rank INTEGER,            -- of a dump_signal: the rank whose watchdog gave it
  text TEXT NOT NULL              -- the line, without what precedes it
) STRICT;

-- A warning of NCCL (NCCL_DEBUG=WARN or more) in the text of a job: "n0:13571:14001 [0] misc/socket.cc:50 NCCL WARN …".
CREATE TABLE nccl_warning (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  line INTEGER NOT NULL,          -- of the text, 1-based
  host TEXT NOT NULL,             -- as NCCL names it
  pid INTEGER NOT NULL,
  device INTEGER NOT NULL,        -- of the process, numbered as CUDA does; -1: none yet
  rank INTEGER,                   -- in the largest communicator that the text says the process joined; NULL: it names none
  is_of_peer INTEGER NOT NULL,    -- 1: it says that another process was gone or did not answer
  text TEXT NOT NULL
) STRICT;
