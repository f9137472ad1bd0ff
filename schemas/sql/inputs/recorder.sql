-- One entry of a flight-recorder dump (c10d), with its original values.
CREATE TABLE recorder_entry_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  ordinal INTEGER NOT NULL,       -- 0-based, in the order of the file
  recorder_id INTEGER,            -- record_id of the file: running number of this rank's ring
  pg_id INTEGER,                  -- index of the group in this process; other ranks may count otherwise
  group_id INTEGER REFERENCES text_row(id),     -- process_group[0], the group's name
  group_desc_id INTEGER REFERENCES text_row(id), -- process_group[1]
  collective_seq_id INTEGER,      -- number of the collective within the group; TorchComms: of the call, over all groups, from 0
  p2p_seq_id INTEGER,             -- number of the send or recv within the group
  op_id INTEGER,                  -- counts unrecorded ops too, within the group; TorchComms: over all groups
  profiling_name_id INTEGER REFERENCES text_row(id), -- nccl:all_reduce, gloo:…, c10d:allreduce
  is_p2p INTEGER,                 -- 1: send or recv
  is_retired INTEGER,             -- 1: the work object is gone ("retired")
  input_sizes TEXT,               -- JSON
  input_dtypes TEXT,              -- JSON
  output_sizes TEXT,              -- JSON
  output_dtypes TEXT,             -- JSON
  state TEXT,                     -- scheduled, started, completed
  time_created_ns INTEGER,        -- since the epoch
  time_discovered_started_ns INTEGER,   -- NULL: never
  time_discovered_completed_ns INTEGER, -- NULL: never
  duration_ms REAL,               -- with TORCH_NCCL_ENABLE_TIMING; NULL: the dump has none, or no possible one
  timeout_ms INTEGER,             -- of the group
  thread_id TEXT,                 -- 2.8 and later
  thread_name TEXT,               -- 2.8 and later
  stack_id INTEGER REFERENCES stack_frame(id), -- innermost frame; JSON dumps have none
  extra TEXT                      -- JSON: unknown members
) STRICT;

-- state: done, where a file of the rank has it as completed or retired, as in collective_run; else the file's word, which is recorded_state:
-- gloo's entries stay scheduled.
CREATE VIEW recorder_entry AS
  SELECT e.id, e.profile_id, p.process_id, p.rank, e.ordinal, e.recorder_id, e.pg_id, g.text AS group_name, d.text AS group_desc,
    e.collective_seq_id, e.p2p_seq_id, e.op_id, n.text AS profiling_name, e.is_p2p, e.is_retired, e.input_sizes, e.input_dtypes,
    e.output_sizes, e.output_dtypes,
    CASE WHEN e.state = 'completed' OR e.time_discovered_completed_ns IS NOT NULL OR e.is_retired OR EXISTS (
      SELECT 1 FROM collective_run_row c JOIN collective_run_link_row l ON l.collective_run_id = c.id
        JOIN collective_run_row y ON y.id = l.peer_id LEFT JOIN recorder_entry_row z ON z.id = y.entry_id
      WHERE c.entry_id = e.id AND (y.state = 'completed' OR y.end_ns IS NOT NULL OR z.is_retired)) THEN 'done' ELSE e.state END AS state,
    e.state AS recorded_state, e.time_created_ns, e.time_discovered_started_ns, e.time_discovered_completed_ns,
    e.duration_ms, e.timeout_ms, e.thread_id, e.thread_name, e.stack_id, e.extra
  FROM recorder_entry_row e JOIN profile p ON p.id = e.profile_id LEFT JOIN text_row g ON g.id = e.group_id
  LEFT JOIN text_row d ON d.id = e.group_desc_id LEFT JOIN text_row n ON n.id = e.profiling_name_id;
