-- AOTInductor packages (.pt2) and kernel_information.json among the inputs. Records of libtrace about a package that a program loaded
-- are in model_package; these tables are of the files themselves. Nothing in a package is executed or written to disk.

-- One model of a package, or of a kernel_information.json without a package.
CREATE TABLE package_model_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  name TEXT NOT NULL,             -- folder of the model in the package; a file's name for a kernel_information.json
  content_id INTEGER REFERENCES content_row(id), -- its kernels: kernel_row, kernel_source, kernel_node; NULL: the package names none
  kernel_count INTEGER NOT NULL,
  device TEXT,                    -- AOTI_DEVICE_KEY: cpu, cuda, …
  platform TEXT,                  -- AOTI_PLATFORM
  machine TEXT,                   -- AOTI_MACHINE
  compute_capability TEXT,        -- AOTI_COMPUTE_CAPABILITY; NULL: none
  is_standalone INTEGER NOT NULL, -- 1: sources and no shared object (package_cpp_only)
  metadata TEXT                   -- JSON: the model's metadata files, by their names
) STRICT;

-- One file of a package.
CREATE TABLE package_member_row (
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  ordinal INTEGER NOT NULL,
  name TEXT NOT NULL,             -- as in the package, U+FFFD for invalid UTF-8
  size_bytes INTEGER,             -- unpacked, from the package
  stored_bytes INTEGER,
  crc32 INTEGER,                  -- as the package says
  PRIMARY KEY (profile_id, ordinal)
) STRICT, WITHOUT ROWID;

-- Facts of kernel_information.json about a kernel other than name, nodes and stacks.
CREATE TABLE package_kernel_fact_row (
  kernel_id INTEGER PRIMARY KEY REFERENCES kernel_row(id),
  semantic_key TEXT,              -- of an extern kernel: what it does (linear)
  input_shapes TEXT,              -- JSON list of lists; symbols as text
  input_dtypes TEXT,              -- JSON list
  output_shape TEXT,              -- JSON list
  output_dtype TEXT,              -- torch.float32, …
  pre_grad_nodes TEXT             -- JSON list
) STRICT;

CREATE VIEW package_model AS
  SELECT m.id, m.profile_id, p.path, p.kind AS file_kind, m.name, m.kernel_count, m.device, m.platform, m.machine, m.compute_capability,
    m.is_standalone, m.metadata, m.content_id
  FROM package_model_row m JOIN profile p ON p.id = m.profile_id;

CREATE VIEW package_member AS
  SELECT m.profile_id, p.path, m.ordinal, m.name, m.size_bytes, m.stored_bytes, m.crc32
  FROM package_member_row m JOIN profile p ON p.id = m.profile_id;

-- Kernels of packages, with the Python line that each comes from (the innermost frame outside libraries; kernel_source has the whole stacks).
CREATE VIEW package_model_kernel AS
  SELECT m.id AS model_id, m.profile_id, m.name AS model, k.id AS kernel_id, k.ordinal, k.name, k.debug_handle, f.semantic_key,
    f.input_shapes, f.input_dtypes, f.output_shape, f.output_dtype, f.pre_grad_nodes,
    (SELECT json_group_array(n.post_grad_node) FROM kernel_node_row n WHERE n.kernel_id = k.id) AS post_grad_nodes
  FROM package_model_row m JOIN kernel_row k ON k.content_id = m.content_id
  LEFT JOIN package_kernel_fact_row f ON f.kernel_id = k.id;
