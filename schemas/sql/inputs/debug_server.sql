-- Stacks of all ranks as the debug server of torch.distributed writes them (torch.distributed.debug.start_debug_server; PyTorch 2.10 and newer): its files
-- stacks_*.txt and pyspy_dump_*.txt, or the pages /stacks and /pyspy_dump, saved. One row for each file.
CREATE TABLE debug_server_dump (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  endpoint TEXT NOT NULL,         -- dump_traceback, pyspy_dump
  taken_at TEXT                   -- local time of the server, of the file's name: "2026-12-01 04:57:23"; NULL: the name has none
) STRICT;

-- One rank in it.
CREATE TABLE debug_server_rank (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  dump_id INTEGER NOT NULL REFERENCES debug_server_dump(id),
  line INTEGER NOT NULL,          -- 1-based, in the file
  rank INTEGER NOT NULL,
  address TEXT NOT NULL,          -- of its server: "http://node3:36153"
  error TEXT,                     -- it gave no stacks: "Error: 408"; NULL: it did
  stopped_at TEXT,                -- where its main thread was: "file:line in f, which called g"; NULL: not known
  is_in_collective INTEGER NOT NULL, -- that function, or one that it called, is one of torch.distributed that waits for other ranks
  stacks TEXT                     -- of all its threads, innermost frames first; cut after 64 KiB
) STRICT;
