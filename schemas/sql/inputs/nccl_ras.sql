-- What NCCL's RAS subsystem answered (ncclras, NCCL 2.24 and newer; text or JSON). A file may hold several reports, one behind the other.
CREATE TABLE nccl_ras_report (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  number INTEGER NOT NULL,        -- of the file, from 1
  line INTEGER,                   -- where it begins, 1-based; NULL: JSON
  nccl_version TEXT,              -- "2.30.7"; texts before NCCL 2.26 need not have it
  taken_at TEXT,                  -- local time, "2025-12-19 13:06:53"; NULL: text has none
  process_count INTEGER,          -- of the job; NULL: JSON
  gpu_count INTEGER,              -- of the job; NULL: JSON
  timeout_count INTEGER           -- times that RAS waited in vain for data of a process; NULL: not said
) STRICT;

-- Processes that did not answer RAS: a row for each that the report names, and one for those that it only counts.
CREATE TABLE nccl_ras_process (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  report_id INTEGER NOT NULL REFERENCES nccl_ras_report(id),
  line INTEGER,                   -- 1-based, in the file; NULL: JSON
  state TEXT NOT NULL,            -- no_data: it gave none for this report; dead: RAS has given up reaching it
  process_count INTEGER NOT NULL, -- 1, or how many are counted
  pid INTEGER,                    -- NULL: processes that are counted
  node TEXT,                      -- address
  gpus TEXT                       -- "5", "0,1", "0 (NVML 4)"
) STRICT;

-- A line of the summary of a text: communicators of one size and state.
CREATE TABLE nccl_ras_group (
  id INTEGER PRIMARY KEY,
  report_id INTEGER NOT NULL REFERENCES nccl_ras_report(id),
  number INTEGER NOT NULL,        -- x of "#x-y"
  communicator_count INTEGER NOT NULL,
  rank_count INTEGER NOT NULL,    -- of each communicator
  status TEXT NOT NULL,           -- INIT, RUNNING, FINALIZE, ABORT
  errors TEXT NOT NULL            -- OK, MISMATCH, INCOMPLETE, ERROR
) STRICT;

-- What a report says of the ranks of one communicator: a row for each rank that it names, and one for ranks that it only counts.
CREATE TABLE nccl_ras_state (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  report_id INTEGER NOT NULL REFERENCES nccl_ras_report(id),
  line INTEGER,                   -- 1-based, in the file; NULL: JSON
  communicator TEXT NOT NULL,     -- its hash, as in NCCL's debug output: "27a079b828ff1a75"
  size INTEGER,                   -- ranks of the communicator; NULL: not known
  topic TEXT NOT NULL,            -- launched (operations), status, missing (no data of the rank), error
  operation TEXT,                 -- launched: "AllReduce"; "collective": of any kind, before NCCL 2.26
  rank INTEGER,                   -- within the communicator; NULL: ranks that are counted
  rank_count INTEGER NOT NULL,    -- 1, or how many ranks are counted
  launched INTEGER,               -- launched: the number of the last one; 0: none
  text TEXT,                      -- status: "RUNNING", "NOCOMM"; error: "Remote process error"
  pid INTEGER,
  node TEXT,                      -- address
  gpu TEXT                        -- "3", "2 (NVML 6)"
) STRICT;
