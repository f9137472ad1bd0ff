-- Triton kernels as tritonparse logged them. The texts of the IRs stay in the file; their kinds and sizes are here.
CREATE TABLE triton_compilation_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  line INTEGER NOT NULL,          -- 1-based, in the file
  pid INTEGER,                    -- of the process that compiled
  name_id INTEGER REFERENCES text_row(id), -- of the kernel
  hash TEXT,                      -- Triton's; launches refer to it
  label TEXT,                     -- compile that it belongs to, from pt_info: 0/0; NULL: not compiled by PyTorch
  attempt INTEGER,                -- of that compile
  num_warps INTEGER,              -- how it was compiled
  num_stages INTEGER,             -- how it was compiled
  num_ctas INTEGER,               -- how it was compiled
  shared_bytes INTEGER,           -- shared memory of a block
  target TEXT,                    -- JSON: backend, arch, warp size
  is_cache_hit INTEGER,           -- 1: Triton's own cache had it
  constants TEXT,                 -- JSON: src_constants
  file_id INTEGER REFERENCES text_row(id), -- Python source of the kernel; of Inductor's kernels the generated file
  start_line INTEGER,
  end_line INTEGER,
  user_file_id INTEGER REFERENCES text_row(id), -- innermost line outside libraries in the stack of the compilation
  user_line INTEGER,
  ir TEXT,                        -- JSON: bytes of each IR (ttir, ttgir, llir, ptx, …)
  times TEXT                      -- JSON: as logged
) STRICT;

-- One launch of a Triton kernel.
CREATE TABLE triton_launch_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  line INTEGER NOT NULL,          -- 1-based, in the file
  pid INTEGER,
  name_id INTEGER REFERENCES text_row(id),
  hash TEXT,                      -- of the compilation
  grid TEXT,                      -- JSON list
  stream INTEGER,                 -- of the device
  arguments TEXT                  -- JSON: extracted_args, without addresses
) STRICT;

-- compile_id: the latest compile of that label in the process that wrote the file, NULL: no log of it, or no such label.
CREATE VIEW triton_compilation AS
  SELECT t.id, t.profile_id, p.process_id, p.rank, t.line, t.pid, n.text AS name, t.hash, t.label, t.attempt,
    (SELECT max(k.id) FROM compile k WHERE k.process_id = p.process_id AND k.label = t.label) AS compile_id,
    t.num_warps, t.num_stages, t.num_ctas, t.shared_bytes, t.target, t.is_cache_hit, t.constants, f.text AS file, t.start_line, t.end_line,
    u.text AS user_file, t.user_line, t.ir, t.times
  FROM triton_compilation_row t JOIN profile p ON p.id = t.profile_id LEFT JOIN text_row n ON n.id = t.name_id
  LEFT JOIN text_row f ON f.id = t.file_id LEFT JOIN text_row u ON u.id = t.user_file_id;

CREATE VIEW triton_launch AS
  SELECT t.id, t.profile_id, p.process_id, p.rank, t.line, t.pid, n.text AS name, t.hash, t.grid, t.stream, t.arguments
  FROM triton_launch_row t JOIN profile p ON p.id = t.profile_id LEFT JOIN text_row n ON n.id = t.name_id;
