-- Memory: snapshots of the allocator (torch.cuda.memory._dump_snapshot) and the [memory] events of profiles.
--
-- How these tables are shaped
--   * One row of memory_snapshot for each device of a file. Its events have ordinals from 0, in the order of the file (profiles: of time).
--   * An allocation is one life of one block: from the event that made it to the event that freed it. It is alive at the event t if
--     alloc_ordinal is NULL (before the recording began) or <= t, and free_ordinal is NULL (it still lives at the end) or > t. So the bytes at the
--     peak are the sum over allocations that are alive at peak_ordinal.
--   * A block of a snapshot lives until free_completed: a block whose free was only requested still holds its memory (another stream may
--     use it). This is what PyTorch counts as active_bytes. Sizes are those that were asked for; the allocator rounds them up.
--   * What an allocation belongs to is said of its site (memory_site): its stack and compiled region, or, in profiles, the graph call, op
--     and annotation that were open on its thread. The joins are rebuilt at the end of every load.

-- What the allocator recorded. Names as in the file; profiles have alloc and free.
CREATE TABLE memory_action (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  is_alloc INTEGER,    -- a block begins to live
  is_free INTEGER,     -- a block ends to live
  is_reserve INTEGER,  -- the allocator takes memory of the device
  is_release INTEGER   -- the allocator gives memory back
) STRICT;
INSERT INTO memory_action VALUES (0, 'alloc', 1, 0, 0, 0), (1, 'free_requested', 0, 0, 0, 0), (2, 'free_completed', 0, 1, 0, 0),
  (3, 'segment_alloc', 0, 0, 1, 0), (4, 'segment_free', 0, 0, 0, 1), (5, 'segment_map', 0, 0, 1, 0), (6, 'segment_unmap', 0, 0, 0, 1),
  (7, 'snapshot', 0, 0, 0, 0), (8, 'oom', 0, 0, 0, 0), (9, 'free', 0, 1, 0, 0), (10, 'unknown', 0, 0, 0, 0),
  (11, 'annotate', 0, 0, 0, 0);

-- States of a block in a snapshot. active_pending_free: freed by the program, still used by another stream.
CREATE TABLE memory_block_state (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  is_active INTEGER    -- it holds its memory
) STRICT;
INSERT INTO memory_block_state VALUES (0, 'active_allocated', 1), (1, 'active_pending_free', 1), (2, 'inactive', 0), (3, 'unknown', 0);

-- One device of one file.
CREATE TABLE memory_snapshot_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  source TEXT NOT NULL,           -- device_traces, host_traces (pinned memory): members of a snapshot; CPU, CUDA, …: type of the device in a profile
  device INTEGER,                 -- index; NULL: memory of the host
  event_count INTEGER NOT NULL,
  start_ns INTEGER,               -- of the first event; NULL: no event has a time
  taken_ns INTEGER,               -- of the last event; NULL: no event has a time
  base_bytes INTEGER NOT NULL,    -- alive before the first event
  peak_bytes INTEGER NOT NULL,    -- the most that was alive at once while it recorded
  peak_ordinal INTEGER NOT NULL,  -- the event after which that was; -1: before the first
  peak_ns INTEGER,                -- NULL: unknown
  end_bytes INTEGER NOT NULL,     -- alive after the last event
  reserved_at_peak_bytes INTEGER, -- held by the allocator at peak_ordinal; NULL: unknown
  peak_reserved_bytes INTEGER,    -- the most that the allocator held at once; NULL: unknown
  end_reserved_bytes INTEGER,     -- held by the allocator at the end; NULL: unknown
  oom_ordinal INTEGER,            -- the last event oom; NULL: none
  unmatched_count INTEGER NOT NULL -- allocations that live at the end of the events, and are no active block of the snapshot; 0: not all of the file was read
) STRICT;

-- Where allocations come from: once per distinct stack and region of a file, or per what was open on the thread.
CREATE TABLE memory_site_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  stack_id INTEGER REFERENCES stack_frame(id),   -- innermost frame; NULL: none was recorded
  context_id INTEGER REFERENCES text_row(id),    -- compile_context of the file: "Torch-Compiled Region: 0/0"
  slice_id INTEGER REFERENCES compiled_slice_row(id), -- profiles: a call or region of compiled code that was open, of this graph
  op_id INTEGER REFERENCES text_row(id),         -- profiles: the innermost op that was open
  annotation_id INTEGER REFERENCES text_row(id)  -- profiles: the innermost annotation that was open
) STRICT;

-- One event of the allocator.
CREATE TABLE memory_event_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  snapshot_id INTEGER NOT NULL REFERENCES memory_snapshot_row(id),
  ordinal INTEGER NOT NULL,       -- within the device of the file
  action INTEGER NOT NULL REFERENCES memory_action(id),
  address INTEGER,                -- NULL: oom
  size_bytes INTEGER NOT NULL,
  stream INTEGER,                 -- a handle; 0: the default one
  time_ns INTEGER,                -- since the epoch; NULL: not in the file
  thread_id INTEGER REFERENCES profile_thread(id), -- profiles
  site_id INTEGER REFERENCES memory_site_row(id),  -- snapshots; of a free: where it was freed
  allocated_bytes INTEGER,        -- profiles: all that is allocated on the device, after the event
  reserved_bytes INTEGER,         -- profiles: what the allocator holds, after the event
  device_free_bytes INTEGER,      -- oom: what the device had free
  extra TEXT                      -- JSON: members that no column holds
) STRICT;

-- One life of one block.
CREATE TABLE memory_allocation_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  snapshot_id INTEGER NOT NULL REFERENCES memory_snapshot_row(id),
  address INTEGER,                -- of its first byte; NULL: all that a profile counts as allocated before its first event
  size_bytes INTEGER NOT NULL,
  alloc_ordinal INTEGER,          -- NULL: before the recording began
  free_ordinal INTEGER,           -- NULL: it lives at the end
  alloc_ns INTEGER,
  free_ns INTEGER,
  site_id INTEGER REFERENCES memory_site_row(id) -- where it was allocated; NULL: not recorded
) STRICT;

-- One segment: memory of the device that the allocator took at once.
CREATE TABLE memory_segment_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  snapshot_id INTEGER NOT NULL REFERENCES memory_snapshot_row(id),
  address INTEGER,                -- of its first byte; NULL: not in the file
  total_bytes INTEGER NOT NULL,
  allocated_bytes INTEGER,        -- in blocks that the program holds, rounded as the allocator does
  active_bytes INTEGER,           -- and in those whose free is pending
  requested_bytes INTEGER,        -- asked for, of the active ones
  stream INTEGER,                 -- a handle; 0: the default one
  segment_type TEXT,              -- small, large
  pool TEXT,                      -- "(0, 0)": the ordinary one; others belong to CUDA graphs or the program
  is_expandable INTEGER,          -- 1: it can grow (expandable_segments)
  site_id INTEGER REFERENCES memory_site_row(id)
) STRICT;

-- One block of a segment, as the snapshot found it.
CREATE TABLE memory_block_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  segment_id INTEGER NOT NULL REFERENCES memory_segment_row(id),
  address INTEGER,                -- of its first byte; where the file does not say it, counted from the segment's
  size_bytes INTEGER NOT NULL,    -- rounded as the allocator does
  requested_bytes INTEGER NOT NULL, -- asked for; 0: inactive
  state INTEGER NOT NULL REFERENCES memory_block_state(id),
  site_id INTEGER REFERENCES memory_site_row(id)
) STRICT;

-- Stretches that the program named while the allocator recorded (external_annotations).
CREATE TABLE memory_annotation_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  ordinal INTEGER NOT NULL,
  device INTEGER,                 -- index
  stage TEXT,                     -- START, END
  name TEXT,
  time_ns INTEGER
) STRICT;

-- What the memory of a site is, by the frames of PyTorch in its stack, or by what was open in the profile. compiled: allocated while a compiled
-- graph or region ran; parameter: while a module was made, moved or loaded; optimizer: in a step of an optimizer (its state and temporary tensors);
-- backward: by autograd in a backward (gradients and temporary tensors); forward: while a module ran forward (activations and outputs); other: by
-- other code; unknown: neither a stack nor anything that was open is known.
CREATE TABLE memory_category (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL
) STRICT;
INSERT INTO memory_category VALUES (0, 'compiled'), (1, 'parameter'), (2, 'optimizer'), (3, 'backward'), (4, 'forward'), (5, 'other'), (6, 'unknown');

-- The join of a site.
CREATE TABLE memory_site_link_row (
  site_id INTEGER PRIMARY KEY REFERENCES memory_site_row(id),
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  category INTEGER NOT NULL REFERENCES memory_category(id),
  compile_id INTEGER REFERENCES compile(id),
  graph_id INTEGER REFERENCES graph(id),
  code_line INTEGER,              -- line of the generated code
  kernel_id INTEGER REFERENCES kernel_row(id), -- that this line calls, or that first uses the buffer that the line allocates; NULL: not known
  file_id INTEGER REFERENCES text_row(id), -- the user's line: of the generated code's line, else the innermost frame outside PyTorch and Python
  line INTEGER,
  in_function_id INTEGER REFERENCES text_row(id), -- the function of that line; of a line that is not known: step (train.py:10)
  join_key TEXT,                  -- M1 compile_context; M2 line of the generated code; M3 graph call that was open on the thread; M4 and its line
                                  -- of the generated code: as many allocations as lines that allocate, each of its size
  note_id INTEGER REFERENCES text_row(id) -- why it has no graph or line
) STRICT;

CREATE VIEW memory_snapshot AS
  SELECT s.id, s.profile_id, p.run_id, p.process_id, p.rank, p.path, p.kind, s.source, s.device, s.event_count, s.start_ns / 1000 AS start_us,
    s.taken_ns / 1000 AS taken_us, CASE WHEN s.oom_ordinal IS NOT NULL THEN 'oom' WHEN p.kind = 'kineto' THEN 'profile' ELSE 'dump' END AS reason,
    s.base_bytes, s.peak_bytes, s.peak_ordinal, s.peak_ns / 1000 AS peak_us, s.end_bytes, s.reserved_at_peak_bytes, s.peak_reserved_bytes,
    s.end_reserved_bytes, s.oom_ordinal, s.unmatched_count
  FROM memory_snapshot_row s JOIN profile p ON p.id = s.profile_id;

CREATE VIEW memory_site AS
  SELECT s.id, s.profile_id, s.stack_id, x.text AS compile_context, o.text AS op, a.text AS annotation, c.name AS category, l.compile_id,
    l.graph_id, l.code_line, f.text AS file, l.line, u.text AS function, l.join_key, n.text AS join_note, l.kernel_id
  FROM memory_site_row s LEFT JOIN memory_site_link_row l ON l.site_id = s.id LEFT JOIN memory_category c ON c.id = l.category
  LEFT JOIN text_row x ON x.id = s.context_id LEFT JOIN text_row o ON o.id = s.op_id LEFT JOIN text_row a ON a.id = s.annotation_id
  LEFT JOIN text_row f ON f.id = l.file_id LEFT JOIN text_row u ON u.id = l.in_function_id LEFT JOIN text_row n ON n.id = l.note_id;

CREATE VIEW memory_event AS
  SELECT e.id, e.profile_id, e.snapshot_id, e.ordinal, s.device, a.name AS action, e.address, e.size_bytes, e.stream, e.time_ns / 1000.0 AS time_us,
    e.time_ns, t.tid AS thread, e.site_id, i.stack_id, l.compile_id, l.graph_id, c.name AS category, e.allocated_bytes, e.reserved_bytes,
    e.device_free_bytes, e.extra, n.text AS reason
  FROM memory_event_row e JOIN memory_snapshot_row s ON s.id = e.snapshot_id JOIN memory_action a ON a.id = e.action
  LEFT JOIN profile_thread t ON t.id = e.thread_id LEFT JOIN memory_site_row i ON i.id = e.site_id
  LEFT JOIN memory_site_link_row l ON l.site_id = e.site_id LEFT JOIN memory_category c ON c.id = l.category LEFT JOIN text_row n ON n.id = l.note_id;

CREATE VIEW memory_allocation AS
  SELECT a.id, a.profile_id, a.snapshot_id, s.device, a.address, a.size_bytes, a.alloc_ordinal, a.free_ordinal, a.alloc_ns / 1000 AS alloc_us,
    a.free_ns / 1000 AS free_us, a.site_id, i.stack_id, coalesce(c.name, 'unknown') AS category, l.compile_id, l.graph_id, f.text AS file, l.line,
    l.join_key, CASE WHEN a.site_id IS NOT NULL THEN n.text WHEN a.alloc_ordinal IS NULL THEN 'allocated before the recording began'
      ELSE 'no stack was recorded' END AS reason
  FROM memory_allocation_row a JOIN memory_snapshot_row s ON s.id = a.snapshot_id LEFT JOIN memory_site_row i ON i.id = a.site_id
  LEFT JOIN memory_site_link_row l ON l.site_id = a.site_id LEFT JOIN memory_category c ON c.id = l.category LEFT JOIN text_row f ON f.id = l.file_id
  LEFT JOIN text_row n ON n.id = l.note_id;

-- The allocations that are alive at the peak of each snapshot.
CREATE VIEW memory_peak AS
  SELECT a.* FROM memory_allocation a JOIN memory_snapshot_row s ON s.id = a.snapshot_id
  WHERE (a.alloc_ordinal IS NULL OR a.alloc_ordinal <= s.peak_ordinal) AND (a.free_ordinal IS NULL OR a.free_ordinal > s.peak_ordinal);

-- The bytes that are alive from one event on until the next that changes them, of each snapshot: of a moment T the row
-- WHERE from_us <= T AND (until_us > T OR until_us IS NULL). Who holds them then: the rows of memory_allocation of that snapshot_id with
-- (alloc_ordinal IS NULL OR alloc_ordinal <= ordinal) AND (free_ordinal IS NULL OR free_ordinal > ordinal).
CREATE VIEW memory_at AS
  WITH change(snapshot_id, ordinal, time_ns, bytes) AS (
    SELECT snapshot_id, alloc_ordinal, alloc_ns, size_bytes FROM memory_allocation_row WHERE alloc_ordinal IS NOT NULL
    UNION ALL SELECT snapshot_id, free_ordinal, free_ns, -size_bytes FROM memory_allocation_row WHERE free_ordinal IS NOT NULL
    UNION ALL SELECT id, -1, start_ns, base_bytes FROM memory_snapshot_row)
  SELECT c.snapshot_id, s.device, c.ordinal, c.time_ns / 1000 AS from_us, lead(c.time_ns) OVER later / 1000 AS until_us, -- NULL: the last
    sum(sum(c.bytes)) OVER (PARTITION BY c.snapshot_id ORDER BY c.ordinal) AS size_bytes
  FROM change c JOIN memory_snapshot_row s ON s.id = c.snapshot_id GROUP BY c.snapshot_id, c.ordinal
  WINDOW later AS (PARTITION BY c.snapshot_id ORDER BY c.ordinal);

-- The steps of the program while the allocator recorded: ProfilerStep#n of the profile, or of a snapshot's external_annotations. Of a recording
-- that marks none, each ends with a step of the optimizer that steps first, from the end of the one before. Pinned memory belongs to no device:
-- the steps of all are its own.
CREATE VIEW memory_step AS
  WITH marked AS (SELECT s.id AS snapshot_id, t.text AS name, a.step, a.start_ns, a.start_ns + a.duration_ns AS end_ns
      FROM memory_snapshot_row s JOIN annotation_row a ON a.profile_id = s.profile_id JOIN text_row t ON t.id = a.name_id
      WHERE a.device IS NULL AND (a.step IS NOT NULL OR t.text GLOB 'Optimizer.step#*')
    UNION ALL SELECT snapshot_id, name, CASE WHEN name GLOB 'ProfilerStep#[0-9]*' THEN CAST(substr(name, 14) AS INTEGER) END, time_ns, end_ns
      FROM (SELECT s.id AS snapshot_id, b.name, b.stage, b.time_ns, lead(b.time_ns) OVER later AS end_ns, lead(b.stage) OVER later AS next_stage
        FROM memory_snapshot_row s JOIN memory_annotation_row b ON b.profile_id = s.profile_id AND (b.device IS s.device OR s.device IS NULL)
        WHERE b.name GLOB 'ProfilerStep#[0-9]*' OR b.name GLOB 'Optimizer.step#*' WINDOW later AS (PARTITION BY s.id, b.device, b.name ORDER BY b.ordinal))
      WHERE stage = 'START' AND next_stage = 'END'),
    optimizer AS (SELECT m.*, first_value(m.name) OVER (PARTITION BY m.snapshot_id ORDER BY m.start_ns) AS first_name
      FROM marked m WHERE NOT EXISTS (SELECT 1 FROM marked n WHERE n.snapshot_id = m.snapshot_id AND n.step IS NOT NULL))
  SELECT snapshot_id, step, min(start_ns) AS start_ns, end_ns FROM marked WHERE step IS NOT NULL GROUP BY snapshot_id, step, end_ns
  UNION ALL SELECT s.id, row_number() OVER step, coalesce(lag(o.end_ns) OVER step, s.start_ns), o.end_ns
  FROM memory_snapshot_row s JOIN optimizer o ON o.snapshot_id = s.id AND o.name = o.first_name
  WINDOW step AS (PARTITION BY s.id ORDER BY o.end_ns);

-- Bytes at the peak by the user's line.
CREATE VIEW line_memory AS
  SELECT snapshot_id, device, file, line, sum(size_bytes) AS size_bytes, count(*) AS allocations FROM memory_peak GROUP BY snapshot_id, device, file, line;

-- Bytes at the peak by compile and graph.
CREATE VIEW graph_memory AS
  SELECT snapshot_id, device, compile_id, graph_id, sum(size_bytes) AS size_bytes, count(*) AS allocations FROM memory_peak
  GROUP BY snapshot_id, device, compile_id, graph_id;

CREATE VIEW memory_segment AS
  SELECT g.id, g.profile_id, g.snapshot_id, s.device, g.address, g.total_bytes, g.allocated_bytes, g.active_bytes, g.requested_bytes, g.stream,
    g.segment_type, g.pool, g.is_expandable, i.stack_id
  FROM memory_segment_row g JOIN memory_snapshot_row s ON s.id = g.snapshot_id LEFT JOIN memory_site_row i ON i.id = g.site_id;

CREATE VIEW memory_block AS
  SELECT b.id, b.profile_id, g.snapshot_id, b.segment_id, s.device, b.address, b.size_bytes, b.requested_bytes, t.name AS state, t.is_active, b.site_id, i.stack_id
  FROM memory_block_row b JOIN memory_segment_row g ON g.id = b.segment_id JOIN memory_snapshot_row s ON s.id = g.snapshot_id
  JOIN memory_block_state t ON t.id = b.state LEFT JOIN memory_site_row i ON i.id = b.site_id;
