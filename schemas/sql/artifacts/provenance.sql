-- Kernel ↔ post-grad node ↔ pre-grad node ↔ source line. Kernels come from the generated code, the provenance artifacts of all
-- generations, and for 2.6 from the comments of the generated code. Stored once per distinct provenance of a graph: two graphs
-- (two ranks) with the same kernels share kernel ids.
CREATE TABLE kernel_row (
  id INTEGER PRIMARY KEY,
  content_id INTEGER NOT NULL REFERENCES content_row(id),
  ordinal INTEGER NOT NULL,        -- 0-based, in order of first call in the code, then by name
  name TEXT NOT NULL,              -- without the debug handle
  debug_handle INTEGER,            -- NULL: log has none
  code_line INTEGER                -- 1-based line of the call in the generated code; NULL: not found (the code only
                                   -- defines it, its calls are wrapped, or there is no code)
) STRICT;
CREATE INDEX kernel_row_by_content ON kernel_row(content_id);

-- Kernels of earlier graphs that PyTorch 2.14 repeats in the stack traces of this one: left out of kernel_row. The code of the
-- graph neither calls nor comments them, and an earlier graph of the process had the same name and handle.
CREATE TABLE leftover_kernel_row (
  content_id INTEGER NOT NULL REFERENCES content_row(id),
  ordinal INTEGER NOT NULL,        -- 0-based, by name
  name TEXT NOT NULL,              -- without the debug handle
  debug_handle INTEGER,            -- NULL: log has none
  PRIMARY KEY (content_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE kernel_node_row (
  kernel_id INTEGER NOT NULL REFERENCES kernel_row(id),
  post_grad_node TEXT NOT NULL,
  PRIMARY KEY (kernel_id, post_grad_node)
) STRICT, WITHOUT ROWID;

CREATE TABLE node_mapping_row (
  content_id INTEGER NOT NULL REFERENCES content_row(id),
  post_grad_node TEXT NOT NULL,
  pre_grad_node TEXT NOT NULL,
  PRIMARY KEY (content_id, post_grad_node, pre_grad_node)
) STRICT, WITHOUT ROWID;

-- The source of a kernel's lines: the artifact kernel_stack_traces; node mappings with the graphs' comments; comments of the generated code.
CREATE TABLE kernel_source_basis (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL
) STRICT;
INSERT INTO kernel_source_basis VALUES (0, 'kernel_stack_traces'), (1, 'node_mappings'), (2, 'code_comments');

CREATE TABLE kernel_source_row (
  kernel_id INTEGER NOT NULL REFERENCES kernel_row(id),
  stack_ordinal INTEGER NOT NULL,  -- a fused kernel has a stack per origin; equal ones are one
  frame_ordinal INTEGER NOT NULL,  -- 0: outermost
  file_id INTEGER REFERENCES text_row(id),
  line INTEGER,
  function_id INTEGER REFERENCES text_row(id),
  code_id INTEGER REFERENCES text_row(id),
  basis INTEGER NOT NULL REFERENCES kernel_source_basis(id),
  entry_count INTEGER,             -- entries of the log that have this stack: they differ in the columns that they mark (^^^); without stacks
                                   -- in the log the nodes of this line. NULL: unknown, an earlier tlparse wrote the row
  PRIMARY KEY (kernel_id, stack_ordinal, frame_ordinal)
) STRICT, WITHOUT ROWID;

CREATE VIEW kernel AS
  SELECT k.id, g.compile_id, g.id AS graph_id, k.name, k.debug_handle, k.code_line, g.code_record_id AS record_id, k.ordinal
  FROM graph g JOIN kernel_row k ON k.content_id = g.provenance_content_id;

CREATE VIEW leftover_kernel AS
  SELECT g.compile_id, g.id AS graph_id, k.name, k.debug_handle, g.code_record_id AS record_id, k.ordinal
  FROM graph g JOIN leftover_kernel_row k ON k.content_id = g.provenance_content_id;

-- One post-grad node that a kernel computes.
CREATE VIEW kernel_node AS
  SELECT n.kernel_id, n.post_grad_node, c.record_id
  FROM kernel_node_row n LEFT JOIN kernel_row k ON k.id = n.kernel_id LEFT JOIN content_row c ON c.id = k.content_id;

-- One post-grad node of a graph and a pre-grad node that it comes from.
CREATE VIEW node_mapping AS
  SELECT g.compile_id, g.id AS graph_id, m.post_grad_node, m.pre_grad_node, g.code_record_id AS record_id
  FROM graph g JOIN node_mapping_row m ON m.content_id = g.provenance_content_id;

-- One frame of the Python stacks that a kernel comes from.
CREATE VIEW kernel_source AS
  SELECT s.kernel_id, s.stack_ordinal, s.frame_ordinal, f.text AS file, s.line, u.text AS function, c.text AS code,
    (SELECT name FROM kernel_source_basis WHERE id = s.basis) AS basis,
    o.record_id, s.entry_count
  FROM kernel_source_row s
  LEFT JOIN text_row f ON f.id = s.file_id LEFT JOIN text_row u ON u.id = s.function_id LEFT JOIN text_row c ON c.id = s.code_id
  LEFT JOIN kernel_row k ON k.id = s.kernel_id LEFT JOIN content_row o ON o.id = k.content_id;
