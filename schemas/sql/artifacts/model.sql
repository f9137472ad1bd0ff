-- Models that C++ programs compiled, loaded and shipped: libtrace_model_load, libtrace_package, libtrace_torchscript_signature,
-- libtrace_cache_bundle. NULL: not in the log.
CREATE TABLE model_load (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),
  compile_id INTEGER REFERENCES compile(id),
  model TEXT,               -- what the program calls it
  kind TEXT,                -- torchscript, aotinductor
  state TEXT,               -- loaded, compiled, memory_hit (the process had it), cache_hit
  cache_key TEXT,           -- as in cache_event; NULL: no cache lookup
  duration_ns INTEGER,
  memory_before_bytes INTEGER, -- resident, of the process
  memory_after_bytes INTEGER,
  weight_size_bytes INTEGER, -- every storage counted once
  device_peak_before_bytes INTEGER, -- the most that was allocated on GPUs at one time so far, summed over them
  device_peak_after_bytes INTEGER,
  clone_size_bytes INTEGER, -- of a copy of the model that the program made for the load
  excess_bytes INTEGER,     -- what the process took beyond the weights that lie on no GPU (and beyond the copy, where device_excess_bytes is NULL)
  device_excess_bytes INTEGER -- what the GPUs' peak rose beyond the weights that lie there and the copy
) STRICT;
-- One package that a model was loaded from (libtrace).
CREATE TABLE model_package (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),
  compile_id INTEGER REFERENCES compile(id),
  path TEXT,                -- file of the package
  kind TEXT,                -- aotinductor, exported_program, …
  size_bytes INTEGER,
  weight_size_bytes INTEGER,
  metadata TEXT,            -- JSON object of strings
  unread_files TEXT         -- JSON list: files that could not be read, so that weights, kernels or code of them are missing
) STRICT;
-- One file in a model_package.
CREATE TABLE package_file (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  ordinal INTEGER NOT NULL,
  name TEXT,
  size_bytes INTEGER,
  crc32 INTEGER,            -- of the file, from the package
  PRIMARY KEY (record_id, ordinal)
) STRICT, WITHOUT ROWID;
-- One op that the generated code of a package calls by its index (libtrace).
CREATE TABLE package_extern_kernel (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  ordinal INTEGER NOT NULL,
  model TEXT,               -- folder of the model within the package
  kernel_index INTEGER,     -- by which generated code calls it; over all subgraphs of the model
  name TEXT,                -- of the buffer or node that it makes
  op TEXT,                  -- torch.ops.acme.twice.default
  PRIMARY KEY (record_id, ordinal)
) STRICT, WITHOUT ROWID;
-- The machine and libraries that the code of one model of a package was built for and linked with (libtrace).
CREATE TABLE package_code (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  ordinal INTEGER NOT NULL,
  model TEXT,               -- folder of the model within the package
  linkage TEXT,             -- shared, static, sources (nothing is compiled yet)
  is_cpp_only INTEGER,      -- 1: sources and a CMake project instead of a shared object
  machine TEXT,             -- x86_64, aarch64; NULL: no shared object, or it was not read
  libraries TEXT,           -- JSON list: libraries that the shared object needs
  PRIMARY KEY (record_id, ordinal)
) STRICT, WITHOUT ROWID;
-- One kernel in a model_package.
CREATE TABLE package_kernel (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  ordinal INTEGER NOT NULL,
  name TEXT,
  pre_grad_nodes TEXT,      -- JSON list
  post_grad_nodes TEXT,     -- JSON list
  stack_traces TEXT,        -- JSON list
  PRIMARY KEY (record_id, ordinal)
) STRICT, WITHOUT ROWID;
-- One weight of a package or model (libtrace).
CREATE TABLE model_weight (
  record_id INTEGER NOT NULL REFERENCES record_row(id),  -- of a model_load or a model_package
  ordinal INTEGER NOT NULL,
  name TEXT,
  shape TEXT,               -- JSON list
  dtype TEXT,
  device TEXT,              -- cpu, cuda:0, …
  size_bytes INTEGER,
  storage_id INTEGER,       -- weights of a record with equal storage_id share their memory
  PRIMARY KEY (record_id, ordinal)
) STRICT, WITHOUT ROWID;

-- One input or output of a specialised TorchScript graph (libtrace).
CREATE TABLE graph_value (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  role TEXT NOT NULL,       -- input, output
  ordinal INTEGER NOT NULL,
  compile_id INTEGER REFERENCES compile(id),
  model TEXT,               -- what the program calls it
  name TEXT,
  type TEXT,                -- Tensor, or libtorch's kind of value
  dtype TEXT,
  device TEXT,              -- cpu, cuda:0, …
  shape TEXT,               -- JSON list
  stride TEXT,              -- JSON list, in elements
  requires_grad INTEGER,    -- 0 or 1; NULL: not a tensor
  PRIMARY KEY (record_id, role, ordinal)
) STRICT, WITHOUT ROWID;

-- Cache entries that libtrace saved or restored in one bundle.
CREATE TABLE cache_bundle (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),
  compile_id INTEGER REFERENCES compile(id),
  action TEXT,              -- serialize, populate
  path TEXT,                -- NULL: in memory
  entry_count INTEGER,      -- a key has several, one per set of guards
  size_bytes INTEGER,
  skipped_count INTEGER
) STRICT;
-- One key of a cache_bundle.
CREATE TABLE cache_bundle_key (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  ordinal INTEGER NOT NULL,
  layer TEXT NOT NULL,      -- cache it belongs to
  key TEXT NOT NULL,        -- as in cache_event
  PRIMARY KEY (record_id, ordinal)
) STRICT, WITHOUT ROWID;
