-- Autotuning of Triton kernels: artifact triton_kernel_info, one row per kernel.
CREATE TABLE triton_kernel_row (
  content_id INTEGER NOT NULL REFERENCES content_row(id),
  name TEXT NOT NULL,
  autotune_cache_state TEXT,   -- hit, miss, only 1 config, force_disabled, or NULL: not considered
  num_configs INTEGER,         -- launch configurations that were tried
  compile_time_us INTEGER,
  config TEXT,                 -- JSON list of [key, value]: best_config, else only_config
  info TEXT NOT NULL,          -- the whole entry, JSON
  PRIMARY KEY (content_id, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE triton_kernel_use_row (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),
  compile_id INTEGER REFERENCES compile(id),
  graph_id INTEGER REFERENCES graph(id),
  content_id INTEGER NOT NULL REFERENCES content_row(id)
) STRICT;

CREATE VIEW triton_kernel AS
  SELECT u.record_id, u.compile_id, u.graph_id, k.name, k.autotune_cache_state, k.num_configs, k.compile_time_us, k.config, k.info
  FROM triton_kernel_use_row u JOIN triton_kernel_row k ON k.content_id = u.content_id;
