-- Profiles and recorder dumps: one row per measured item. Every row names its file (`profile_id`).
--
-- How these tables are shaped
--   * Measurements never change: the `_row` tables. Their joins can: a log may be loaded later than a profile, or be replaced. So
--     joins are in `_link_row` tables, which are rebuilt at the end of every load (tlparse/src/inputs/join/join.h).
--   * Times are nanoseconds since the epoch, UTC, in storage: a double rounds current times to quarters of a microsecond. The views have
--     `start_us` and `duration_us` (REAL) and `start_ns` (exact).
--   * `join_key` names the key of the join: K1 … K9 (profiles), J1 … J3 (recorder dumps). NULL: not joined; `join_note` says why not.
--       K1 graph cache key in the event's name    K5 i-th kernel of a graph call = i-th kernel of the generated code
--       K2 compile id in the region's name        K6 line of the generated code, from a Python frame
--       K3 sequence number of a backward          K7 compile id of a compile phase
--       K4 kernel by name inside its graph call   K8 collective by group and sequence number
--          (and by order, where the profile lost others of the call)
--       K9 Triton kernel inside its graph call, by the file of its source (kernel_file of the profile, "# kernel path" of the generated code;
--          compared by the hash that is the file's name): among several calls of it by order
--       J1 line of the generated code, from the frames of an entry    J2 order of a graph's collectives, for entries without frames
--       J3 graph call of the slice that is the entry's in a profile (K8)

-- What files beside the logs are, and what they measure.
CREATE TABLE profile_kind (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  has_times INTEGER,      -- runs of ops, kernels or graphs, with their times
  is_of_profiler INTEGER, -- a profiler wrote it beside the process; libtrace's times are in its log
  is_dump INTEGER,        -- a process left it, without times of runs
  has_ranks INTEGER       -- it names the ranks of the job
) STRICT;
INSERT INTO profile_kind VALUES (0, 'kineto', 1, 1, 0, 1), (1, 'nsys', 1, 1, 0, 0), (2, 'libtrace', 1, 0, 0, 0),
  (3, 'flight_recorder', 0, 0, 1, 1), (4, 'kernel_information', 0, 0, 0, 0), (5, 'tritonparse', 0, 0, 1, 0),
  (6, 'torch_logs', 0, 0, 1, 0), (7, 'run', 0, 0, 0, 0), (8, 'memory_snapshot', 0, 0, 1, 0), (9, 'nccl_ras', 0, 0, 0, 0),
  (10, 'debug_server', 0, 0, 0, 0);

-- One file of a profiler or recorder.
CREATE TABLE profile (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run(id),
  path TEXT NOT NULL,             -- as given on the command line or found in a directory
  kind TEXT NOT NULL,             -- profile_kind.name; run: run.json of tlparse run
  process_id INTEGER REFERENCES process(id), -- the process of a log that it measured; NULL: none found, process_note says why
  rank INTEGER,                   -- of the file, else of its process; NULL: unknown
  pid INTEGER,                    -- of the process that was measured; NULL: unknown
  start_us INTEGER,               -- first and last moment measured
  end_us INTEGER,
  event_count INTEGER NOT NULL,   -- events (entries, lines) of the file
  kept_count INTEGER NOT NULL,    -- those that became rows
  clock_offset_us INTEGER NOT NULL, -- 0: times are as in the file. Its process and the log have one clock; those of several hosts are taken to agree
  process_note TEXT,              -- how process_id was found, or why it was not
  overlaps_id INTEGER REFERENCES profile(id), -- an earlier profile of the same process that covers the same time
  own_rank INTEGER,               -- rank that the file itself names
  world_size INTEGER,             -- number of ranks of the job, from the file
  host TEXT,                      -- name of the machine, from the file
  format_version TEXT,            -- of the file's format, from the file
  size_bytes INTEGER NOT NULL,    -- decompressed
  compression TEXT NOT NULL,      -- none, gzip, zstd
  content_hash TEXT NOT NULL,     -- XXH3-128 over the decompressed bytes, hex: shows whether a file has changed
  metadata TEXT,                  -- JSON: other metadata of the file
  UNIQUE (run_id, path)
) STRICT;

-- A thread (or a row of the profiler's own) of a profile.
CREATE TABLE profile_thread (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  pid TEXT NOT NULL,              -- as in the file: a number, or text
  tid TEXT NOT NULL,              -- as in the file: a number (huge and negative ones occur), or text
  name TEXT                       -- NULL: the file has none
) STRICT;

-- Kinds of slices of compiled code: graph_call "## Call CompiledFxGraph <key> ##"; region "Torch-Compiled Region: <label>"; function
-- CompiledFunction; backward CompiledFunctionBackward; wrapper "graph_<n>_inductor_wrapper_call"; device a graph call on a device row;
-- libtrace a call as libtrace measured it; model a run of an AOTInductor model, made by the join: from its first kernel to the end of its
-- last.
CREATE TABLE compiled_slice_kind (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  is_call INTEGER  -- a call of compiled code, whoever marked it
) STRICT;
INSERT INTO compiled_slice_kind VALUES (0, 'graph_call', 1), (1, 'region', 0), (2, 'function', 0), (3, 'backward', 0), (4, 'wrapper', 0),
  (5, 'device', 0), (6, 'libtrace', 1), (7, 'model', 1);

-- Slices of compiled code: calls of Inductor's graphs, regions, and the functions of autograd around them.
CREATE TABLE compiled_slice_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  kind INTEGER NOT NULL REFERENCES compiled_slice_kind(id),
  name_id INTEGER REFERENCES text_row(id), -- graph_call, device: the key, NULL where the name says None; region, libtrace: the label;
                                           -- wrapper: the whole name; model: its name in the package
  thread_id INTEGER REFERENCES profile_thread(id),
  device INTEGER,                 -- kind device: its index
  stream INTEGER,                 -- kind device: its stream
  start_ns INTEGER NOT NULL,
  duration_ns INTEGER NOT NULL,
  sequence_number INTEGER,        -- of autograd; a backward has that of its forward
  external_id INTEGER,            -- the profiler's id of the slice; device work carries the id of the slice that enqueued it
  record_id INTEGER REFERENCES record_row(id), -- kind libtrace: its record
  op_run_id INTEGER REFERENCES op_run_row(id) -- function, backward: the op that is the same slice; NULL: none
) STRICT;

-- One run of one kernel: on a device, or a CPU kernel of Inductor. Of nsys exports that trace CUDA graphs as a whole also one run of a
-- graph, with the name "CUDA graph <graphId>".
CREATE TABLE kernel_run_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  name_id INTEGER NOT NULL REFERENCES text_row(id), -- as in the file
  thread_id INTEGER REFERENCES profile_thread(id), -- CPU kernels
  device INTEGER,                 -- index; NULL: CPU
  stream INTEGER,                 -- of the device
  start_ns INTEGER NOT NULL,
  duration_ns INTEGER NOT NULL,
  correlation INTEGER,            -- id that ties it to device_launch_row
  external_id INTEGER,            -- id of the op that enqueued it
  grid_id INTEGER REFERENCES text_row(id),  -- JSON list of 3
  block_id INTEGER REFERENCES text_row(id), -- JSON list of 3
  op_run_id INTEGER REFERENCES op_run_row(id), -- made by the join: an op on the CPU that ran as a kernel of the graph (extern kernel)
  frame_id INTEGER REFERENCES python_frame_row(id) -- made by the join: a Python frame that called a CPU kernel without a recorded event
) STRICT;

-- One copy or memset on a device.
CREATE TABLE device_copy_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  kind TEXT NOT NULL,             -- memcpy, memset
  name_id INTEGER NOT NULL REFERENCES text_row(id), -- as in the file: Memcpy HtoD (Pageable -> Device)
  device INTEGER,                 -- index
  stream INTEGER,                 -- of the device
  start_ns INTEGER NOT NULL,
  duration_ns INTEGER NOT NULL,
  size_bytes INTEGER,
  correlation INTEGER,            -- id that ties it to device_launch_row
  external_id INTEGER             -- id of the op that enqueued it
) STRICT;

-- A call of a device's runtime that queued device work: cudaLaunchKernel, hipMemcpyAsync …
CREATE TABLE device_launch_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  name_id INTEGER NOT NULL REFERENCES text_row(id), -- as in the file
  thread_id INTEGER REFERENCES profile_thread(id),
  start_ns INTEGER NOT NULL,
  duration_ns INTEGER NOT NULL,
  correlation INTEGER NOT NULL    -- that of the work it queued
) STRICT;

-- One op of the CPU, outside or inside a graph; slices that enqueue a Triton kernel, and compile phases, are among them.
CREATE TABLE op_run_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  name_id INTEGER NOT NULL REFERENCES text_row(id), -- as in the file
  thread_id INTEGER REFERENCES profile_thread(id),
  start_ns INTEGER NOT NULL,
  duration_ns INTEGER NOT NULL,
  external_id INTEGER,            -- the profiler's id of the slice
  sequence_number INTEGER,        -- of autograd
  shapes_id INTEGER REFERENCES text_row(id), -- "Input Dims" as JSON
  file_id INTEGER REFERENCES text_row(id)    -- kernel_file: the generated file of the Triton kernel that it enqueues
) STRICT;

-- A stretch that the program, the profiler or a library named: record_function, ProfilerStep#n, Optimizer.step#…
CREATE TABLE annotation_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  name_id INTEGER NOT NULL REFERENCES text_row(id), -- as in the file
  thread_id INTEGER REFERENCES profile_thread(id), -- NULL: on a device row
  device INTEGER,                 -- device rows: index of the device
  stream INTEGER,                 -- device rows: stream
  start_ns INTEGER NOT NULL,
  duration_ns INTEGER NOT NULL,
  step INTEGER                    -- the n of ProfilerStep#n
) STRICT;

-- A Python frame with a line of generated code, or of a module (module.sql); of a rank that calls Gloo, or asks a DataLoader, the user's of a millisecond and more;
-- all frames with --keep-python-frames.
CREATE TABLE python_frame_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  name_id INTEGER NOT NULL REFERENCES text_row(id), -- as in the file
  thread_id INTEGER REFERENCES profile_thread(id),
  start_ns INTEGER NOT NULL,
  duration_ns INTEGER NOT NULL,
  file_id INTEGER REFERENCES text_row(id), -- file of the line that called it; NULL: unknown
  line INTEGER                    -- 1-based
) STRICT;

-- One collective that a rank issued: from a profile, a recorder dump, or libtrace.
CREATE TABLE collective_run_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER REFERENCES profile(id),
  record_id INTEGER REFERENCES record_row(id),  -- libtrace's record
  entry_id INTEGER REFERENCES recorder_entry_row(id), -- entry of the dump
  thread_id INTEGER REFERENCES profile_thread(id),
  op_id INTEGER REFERENCES text_row(id),     -- as in the file: nccl:all_reduce, c10d::allreduce_, gloo:all_gather; libtrace: backend and op
  group_id INTEGER REFERENCES text_row(id),  -- name of the process group; NULL: unknown
  group_size INTEGER,             -- ranks in the group
  sequence_number INTEGER,        -- within the group; NULL: unknown
  is_p2p INTEGER NOT NULL,        -- 1: send or recv
  peer_rank INTEGER,              -- profiles with kernels of NCCL: the rank that it sends to or receives from
  peer_of_group INTEGER,          -- profiles with record_shapes, c10d's sends and receives: the same as a rank of its group, which the file does not name
  tag INTEGER,                    -- of these
  input_shapes TEXT,              -- JSON list of lists
  output_shapes TEXT,             -- JSON list of lists
  dtype_id INTEGER REFERENCES text_row(id),  -- of the first input
  reduce_op TEXT,                 -- as in the file
  state TEXT,                     -- scheduled, started, completed (profiles: its device kernel has ended), error (libtrace: the backend refused it, or it failed by end_ns); NULL: not in the file
  start_ns INTEGER,               -- issued
  device_start_ns INTEGER,        -- profiles: when its first kernel began on the device, which waits there for those of the other ranks
  end_ns INTEGER,                 -- completed: profiles have it from the device kernel; of their c10d ops, when the call returned. NULL: unknown, or not completed
  device INTEGER,                 -- profiles: index of the device of its kernel; NULL: the file has no kernel of it
  correlation INTEGER             -- profiles: of the device kernel
) STRICT;

-- The joins. One row per slice; join_note is NULL if there is no remark.
CREATE TABLE compiled_slice_link_row (
  slice_id INTEGER PRIMARY KEY REFERENCES compiled_slice_row(id),
  is_call INTEGER NOT NULL,       -- 1: counts as one call of a graph (of a region and the graph call in it, the inner one does)
  call_id INTEGER REFERENCES compiled_slice_row(id), -- kind device: the call on the CPU that queued it
  compile_id INTEGER REFERENCES compile(id),
  graph_id INTEGER REFERENCES graph(id),
  device_ns INTEGER,              -- sum of the device kernels that it enqueued; NULL: none
  join_key TEXT,                  -- K1, K2, K3, K5
  note_id INTEGER REFERENCES text_row(id), -- join_note
  region_id INTEGER REFERENCES compiled_slice_row(id) -- the region around it; in a backward that of its forward (K3); NULL: the profile has none
) STRICT;
CREATE TABLE kernel_run_link_row (
  kernel_run_id INTEGER PRIMARY KEY REFERENCES kernel_run_row(id),
  slice_id INTEGER REFERENCES compiled_slice_row(id), -- the graph call it ran in
  kernel_id INTEGER REFERENCES kernel_row(id),
  enqueued_ns INTEGER,            -- when the call that enqueued it began
  join_key TEXT,                  -- K4, K5, K6, K9
  note_id INTEGER REFERENCES text_row(id), -- join_note
  region_id INTEGER REFERENCES compiled_slice_row(id), -- the region in which it was enqueued, or ran on the CPU; in a backward that of its
                                                       -- forward; NULL: the profile has none there
  launch_op_id INTEGER REFERENCES op_run_row(id) -- the innermost op that enqueued it; NULL: unknown, or a CPU kernel
) STRICT;
CREATE TABLE op_run_link_row (
  op_run_id INTEGER PRIMARY KEY REFERENCES op_run_row(id),
  slice_id INTEGER REFERENCES compiled_slice_row(id), -- the graph call it ran in
  self_ns INTEGER NOT NULL,       -- its time less that of the ops and graph calls directly inside it
  device_ns INTEGER,              -- sum of the device kernels that it enqueued itself; NULL: none
  compile_id INTEGER REFERENCES compile(id), -- a phase of this compile
  join_key TEXT                   -- K7
) STRICT;
CREATE TABLE collective_run_link_row (
  collective_run_id INTEGER PRIMARY KEY REFERENCES collective_run_row(id),
  slice_id INTEGER REFERENCES compiled_slice_row(id), -- the graph call that issued it
  graph_id INTEGER REFERENCES graph(id),
  code_line INTEGER,              -- line of the generated code that holds the call
  file_id INTEGER REFERENCES text_row(id),   -- the user's line
  line INTEGER,
  reduce_op TEXT,                 -- from the generated code
  peer_id INTEGER REFERENCES collective_run_row(id), -- the same collective in another file of this rank (K8)
  join_key TEXT,                  -- K1, K2, K3 (slices of a profile in a graph call; K2: libtrace's label), K8, J1, J2, J3
  note_id INTEGER REFERENCES text_row(id) -- join_note
) STRICT;

-- What a kernel's time was divided by: the post-grad nodes that each line contributed; or its stacks, if the lines of some nodes are
-- unknown.
CREATE TABLE kernel_line_basis (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL
) STRICT;
INSERT INTO kernel_line_basis VALUES (0, 'nodes'), (1, 'stacks');

-- How the time of a kernel that ran is divided among its Python lines; the parts of one kernel add up to 1.
CREATE TABLE kernel_line_row (
  kernel_id INTEGER NOT NULL REFERENCES kernel_row(id),
  file_id INTEGER REFERENCES text_row(id),
  line INTEGER,
  function_id INTEGER REFERENCES text_row(id),
  code_id INTEGER REFERENCES text_row(id),
  part REAL NOT NULL,             -- of the kernel's time, above 0, at most 1
  basis INTEGER NOT NULL REFERENCES kernel_line_basis(id)
) STRICT;
CREATE INDEX kernel_line_by_kernel ON kernel_line_row(kernel_id);

CREATE VIEW kernel_line AS
  SELECT k.kernel_id, f.text AS file, k.line, u.text AS function, c.text AS code, k.part,
    (SELECT name FROM kernel_line_basis WHERE id = k.basis) AS basis
  FROM kernel_line_row k LEFT JOIN text_row f ON f.id = k.file_id LEFT JOIN text_row u ON u.id = k.function_id
  LEFT JOIN text_row c ON c.id = k.code_id;

-- One measured call of a compiled graph; graph_execution is the order as PyTorch logged it.
CREATE VIEW graph_call AS
  SELECT s.id, s.profile_id, p.process_id, p.rank, l.compile_id, l.graph_id,
    CASE WHEN s.kind = 0 THEN k.text END AS key, g.direction, s.start_ns / 1e3 AS start_us, s.duration_ns / 1e3 AS duration_us,
    l.device_ns / 1e3 AS device_us, l.join_key, n.text AS join_note, s.start_ns, s.duration_ns, s.thread_id,
    (SELECT name FROM compiled_slice_kind WHERE id = s.kind) AS basis, w.text AS region
  FROM compiled_slice_link_row l JOIN compiled_slice_row s ON s.id = l.slice_id JOIN profile p ON p.id = s.profile_id
  LEFT JOIN graph g ON g.id = l.graph_id LEFT JOIN text_row k ON k.id = s.name_id LEFT JOIN text_row n ON n.id = l.note_id
  LEFT JOIN compiled_slice_row e ON e.id = l.region_id LEFT JOIN text_row w ON w.id = e.name_id
  WHERE l.is_call = 1;

-- One run of a compiled region ("Torch-Compiled Region") in a profile.
CREATE VIEW compiled_region AS
  SELECT s.id, s.profile_id, p.process_id, p.rank, k.text AS label, l.compile_id, s.start_ns / 1e3 AS start_us,
    s.duration_ns / 1e3 AS duration_us, l.join_key, n.text AS join_note, s.start_ns, s.duration_ns, s.thread_id, l.is_call
  FROM compiled_slice_row s JOIN profile p ON p.id = s.profile_id LEFT JOIN compiled_slice_link_row l ON l.slice_id = s.id
  LEFT JOIN text_row k ON k.id = s.name_id LEFT JOIN text_row n ON n.id = l.note_id
  WHERE s.kind = 1;

-- `region`, `key`, `kernel_file`: what the profile itself says of the kernel, with or without a log: the label of the compiled region and the
-- cache key of the graph call in which it was enqueued; the file of a Triton kernel's source.
CREATE VIEW kernel_run AS
  SELECT k.id, k.profile_id, l.slice_id AS graph_call_id, l.kernel_id, t.text AS name, k.device, k.stream,
    k.start_ns / 1e3 AS start_us, k.duration_ns / 1e3 AS duration_us, l.enqueued_ns / 1e3 AS enqueued_us, g.text AS grid, b.text AS block,
    l.join_key, n.text AS join_note, k.start_ns, k.duration_ns, k.thread_id, k.op_run_id, p.rank, p.process_id,
    k.frame_id, w.text AS region, CASE WHEN s.kind = 0 THEN q.text END AS key, f.text AS kernel_file
  FROM kernel_run_row k JOIN profile p ON p.id = k.profile_id LEFT JOIN kernel_run_link_row l ON l.kernel_run_id = k.id
  LEFT JOIN text_row t ON t.id = k.name_id LEFT JOIN text_row g ON g.id = k.grid_id LEFT JOIN text_row b ON b.id = k.block_id
  LEFT JOIN text_row n ON n.id = l.note_id LEFT JOIN compiled_slice_row s ON s.id = l.slice_id LEFT JOIN text_row q ON q.id = s.name_id
  LEFT JOIN compiled_slice_row e ON e.id = l.region_id LEFT JOIN text_row w ON w.id = e.name_id
  LEFT JOIN op_run_row o ON o.id = l.launch_op_id LEFT JOIN text_row f ON f.id = o.file_id;

CREATE VIEW device_copy AS
  SELECT c.id, c.profile_id, c.kind, t.text AS name, c.device, c.stream, c.start_ns / 1e3 AS start_us, c.duration_ns / 1e3 AS duration_us,
    c.size_bytes, c.start_ns, c.duration_ns, p.rank, p.process_id
  FROM device_copy_row c JOIN profile p ON p.id = c.profile_id LEFT JOIN text_row t ON t.id = c.name_id;

CREATE VIEW op_run AS
  SELECT o.id, o.profile_id, l.slice_id AS graph_call_id, t.text AS name, o.start_ns / 1e3 AS start_us, o.duration_ns / 1e3 AS duration_us,
    l.device_ns / 1e3 AS device_us, h.tid AS thread, l.self_ns / 1e3 AS self_us, o.start_ns, o.duration_ns, o.thread_id, o.external_id,
    o.sequence_number, s.text AS shapes, f.text AS file, p.rank, p.process_id,
    l.compile_id, l.join_key
  FROM op_run_row o JOIN profile p ON p.id = o.profile_id LEFT JOIN op_run_link_row l ON l.op_run_id = o.id
  LEFT JOIN profile_thread h ON h.id = o.thread_id LEFT JOIN text_row t ON t.id = o.name_id LEFT JOIN text_row s ON s.id = o.shapes_id
  LEFT JOIN text_row f ON f.id = o.file_id;

CREATE VIEW annotation AS
  SELECT a.id, a.profile_id, t.text AS name, a.step, a.device, a.stream, a.start_ns / 1e3 AS start_us, a.duration_ns / 1e3 AS duration_us,
    a.start_ns, a.duration_ns, a.thread_id, p.rank, p.process_id
  FROM annotation_row a JOIN profile p ON p.id = a.profile_id LEFT JOIN text_row t ON t.id = a.name_id;

CREATE VIEW python_frame AS
  SELECT y.id, y.profile_id, t.text AS name, f.text AS file, y.line, y.start_ns / 1e3 AS start_us, y.duration_ns / 1e3 AS duration_us,
    y.start_ns, y.duration_ns, y.thread_id
  FROM python_frame_row y LEFT JOIN text_row t ON t.id = y.name_id LEFT JOIN text_row f ON f.id = y.file_id;

CREATE VIEW collective_run AS
  SELECT c.id, c.profile_id, coalesce(p.process_id, r.process_id) AS process_id, coalesce(p.rank, q.rank) AS rank,
    g.text AS group_name, c.sequence_number, o.text AS op, c.input_shapes, d.text AS dtype, coalesce(c.reduce_op, l.reduce_op) AS reduce_op,
    CASE WHEN c.state = 'completed' OR c.end_ns IS NOT NULL OR e.is_retired OR y.state = 'completed' OR y.end_ns IS NOT NULL OR z.is_retired
      THEN 'done' ELSE c.state END AS state,
    c.start_ns / 1e3 AS start_us, c.end_ns / 1e3 AS end_us, l.graph_id, f.text AS file, l.line, l.join_key, n.text AS join_note,
    c.start_ns, c.device_start_ns, c.end_ns, l.slice_id AS graph_call_id, l.code_line, c.is_p2p, c.peer_rank, c.peer_of_group, c.tag, c.group_size, c.output_shapes, l.peer_id, c.entry_id,
    c.record_id, c.thread_id, c.device
  FROM collective_run_row c LEFT JOIN profile p ON p.id = c.profile_id LEFT JOIN record_row r ON r.id = c.record_id
  LEFT JOIN process q ON q.id = r.process_id LEFT JOIN collective_run_link_row l ON l.collective_run_id = c.id
  LEFT JOIN recorder_entry_row e ON e.id = c.entry_id
  LEFT JOIN collective_run_row y ON y.id = l.peer_id LEFT JOIN recorder_entry_row z ON z.id = y.entry_id
  LEFT JOIN text_row g ON g.id = c.group_id LEFT JOIN text_row o ON o.id = c.op_id LEFT JOIN text_row d ON d.id = c.dtype_id
  LEFT JOIN text_row f ON f.id = l.file_id LEFT JOIN text_row n ON n.id = l.note_id;
