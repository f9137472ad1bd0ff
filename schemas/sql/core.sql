-- Core tables, which every log fills. artifacts/ has one file per artifact family.
--
-- How the database is shaped
--   * Rows that repeat per rank are narrow: strings are ids into `text_row`, payloads are ids into `payload_row`.
--     Tables that end in `_row` are storage; all other tables and all views are public names and the contract.
--   * What is derived from content is stored once per distinct *normalised* content (`content_row`; addresses, timings
--     and debug paths removed) and reached through one narrow link row per compile.
--   * A small set of values is a lookup table (`id`, `name`): rows hold the id, views the name. The build makes an enum of each.
--   * Times are microseconds since the epoch, UTC, unless the column says otherwise. JSON is JSON text.
--   * Foreign keys are declared for readers and checked by the tests; ingest does not enforce them row by row.

-- Descriptions of the tables, views and columns of this schema: the comments of schemas/sql. Columns with self-explanatory names have no row.
CREATE TABLE schema_doc (
  name TEXT NOT NULL,     -- of the table or view
  column TEXT NOT NULL,   -- empty: the table or view itself
  text TEXT NOT NULL,
  PRIMARY KEY (name, column)
) STRICT, WITHOUT ROWID;

-- One ingest of one job: one call of `tlparse` makes one run.
CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,    -- --run NAME, else the input's path
  created_at TEXT NOT NULL,     -- ISO 8601, UTC
  tool_version TEXT NOT NULL,   -- version of the tlparse that wrote the rows
  uuid TEXT                     -- identifies the run in all databases and fleets; NULL: an earlier tlparse wrote it
) STRICT;

-- One input file of a run.
CREATE TABLE log_file (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run(id),
  path TEXT NOT NULL,            -- as given on the command line or found in a directory; '-' is standard input
  size_bytes INTEGER NOT NULL,   -- decompressed
  record_count INTEGER NOT NULL, -- rows of `record` that came from this file
  line_count INTEGER NOT NULL,   -- lines, terminated by LF or by the end of the file
  compression TEXT NOT NULL,     -- none, gzip, zstd
  content_hash TEXT NOT NULL,    -- XXH3-128 over the decompressed bytes, hex: shows whether a file has changed
  name_rank INTEGER,             -- rank in the file's name
  first_record_id INTEGER,       -- the file's records have the ids first_record_id … last_record_id
  last_record_id INTEGER,
  first_content_id INTEGER,      -- derived content that appeared first in this file has the ids first_content_id … last_content_id
  last_content_id INTEGER,
  UNIQUE (run_id, path)
) STRICT;

-- One process in one file: key (file, pid); (file, pid, rank) where one pid carries several ranks.
-- Interned strings, compile ids and describer ids are per process.
CREATE TABLE process (
  id INTEGER PRIMARY KEY,
  log_file_id INTEGER NOT NULL REFERENCES log_file(id),
  pid INTEGER NOT NULL,             -- number in the record prefix
  rank INTEGER,                     -- NULL: unknown
  rank_source TEXT,                 -- record, prefix ("[rankN]:"), file_name, run (of `tlparse run`), or NULL
  is_thread_id INTEGER NOT NULL,    -- 1: `pid` is a thread id (early logs, above 4,194,304); the row is of the whole file (and rank)
  torch_version TEXT,               -- from the torch_version artifact or compilation metrics
  python_version TEXT,              -- from compilation metrics (2.14)
  utc_offset_s INTEGER,             -- zone of the prefix times, seconds east of UTC; NULL: unknown
  time_basis TEXT NOT NULL,         -- how the year and zone were found: chromium_event, cache_event_time, compilation_metrics, libtrace_version, file_mtime, none
  time_shift_us INTEGER,            -- add to record_row.local_us to get time_us; NULL: uncalibrated
  first_record_id INTEGER NOT NULL, -- the process's records have ids from first_record_id to last_record_id;
  last_record_id INTEGER NOT NULL,  --   those of other processes in the file may be among them
  first_record_us INTEGER,          -- when its first and its last record were written, since the epoch, UTC; NULL: uncalibrated
  last_record_us INTEGER,
  launch_id INTEGER REFERENCES launch(id),
  first_string_number INTEGER,          -- number of its first interned string; above 0: it goes on from its parent's, or the log lacks its beginning
  parent_process_id INTEGER REFERENCES process(id), -- of a child: the process of the rank that started it; NULL: none, or not known
  child_kind TEXT,                  -- loader_worker, compile_worker, pool_worker, forked, program (of its own, by run.json); NULL: a rank, or a process of its own
  child_evidence TEXT,              -- what shows that it is a child
  role_id INTEGER REFERENCES role(id) -- NULL: a child, a log without rank, a further log of a rank
) STRICT;

-- One start of the job: the processes of one run that lived at the same time, at most one per rank. A rank's log that begins after
-- its earlier one ended begins a later launch; one that overlaps it is an extra process of the same launch. Children (process.child_kind)
-- and logs without rank do not begin launches: a child is of its parent's launch, others of that during which they began. Computed at the
-- end of each load.
CREATE TABLE launch (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run(id),
  ordinal INTEGER NOT NULL,        -- 1-based, in order of time
  start_time_us INTEGER,           -- first and last record of its processes, since the epoch, UTC; NULL: uncalibrated
  end_time_us INTEGER,
  process_count INTEGER NOT NULL,  -- without children
  UNIQUE (run_id, ordinal)
) STRICT;

-- Ranks of a launch that are meant to do equal work: data-parallel replicas, one stage of a pipeline, one shard, a server beside trainers.
-- Ranks are compared within a role; across roles only versions and configuration. Computed at the end of each load.
CREATE TABLE role (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run(id),
  launch_id INTEGER NOT NULL REFERENCES launch(id),
  ordinal INTEGER NOT NULL,        -- 1-based, by the lowest rank
  name TEXT NOT NULL,              -- "replicas or shards", "pipeline part 1 of 2" (one stage or several), "shard 2 of 2", or the first function that only its members compile; "unknown"
  is_sure INTEGER NOT NULL,        -- 0: the one role of the launch; what sets its members apart may be a difference of roles
  evidence TEXT NOT NULL,          -- what its members share: a clause
  process_count INTEGER NOT NULL,  -- process.role_id
  UNIQUE (launch_id, ordinal)
) STRICT;

-- How one process ended, as far as known: by run.json, by records of failures, and by where its log ends against the others of its launch.
-- Copies of logs have none. Computed at the end of each load; a job that is still watched has none.
CREATE TABLE process_end (
  process_id INTEGER PRIMARY KEY REFERENCES process(id),
  kind TEXT NOT NULL,              -- finished (exit code 0), failed (another exit code; or its last compile failed, and its log has nothing after that), killed (by a signal), silent (its log ends; how the process did is not known), running (it lived on when the command had ended)
  last_record_id INTEGER NOT NULL REFERENCES record_row(id),
  last_us INTEGER,                 -- when it ended, where run.json says so, else its last record; NULL: uncalibrated
  exit_code INTEGER,               -- NULL: not known, or a signal ended it
  signal INTEGER,                  -- that ended it; NULL: not known, or none
  is_bystander INTEGER NOT NULL,   -- 1: it stopped after another had failed or stopped
  ended_by_process_id INTEGER REFERENCES process(id), -- the process that failed or stopped before it; NULL: none, or it has no log
  evidence TEXT NOT NULL           -- what shows it: a clause
) STRICT;

-- Strings that many rows share. Ids 1 … 32 are fixed (see tlparse/src/store/text_pool.h).
CREATE TABLE text_row (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL
) STRICT;

-- One frame of a Python (or C++) stack; frames with a common prefix share it.
CREATE TABLE stack_frame (
  id INTEGER PRIMARY KEY,
  parent_id INTEGER REFERENCES stack_frame(id), -- the caller; NULL: outermost
  file TEXT,       -- NULL: no file name (-1 in the log); '<unknown:7>': id 7 was never defined in this process
  line INTEGER,
  function TEXT,
  code TEXT        -- source text of the line, where the log has it (2.7 and later)
) STRICT;

-- One distinct payload, by the MD5 of its bytes.
CREATE TABLE payload_row (
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL,          -- lower-case hex MD5 of content, always true
  size_bytes INTEGER NOT NULL,
  content ANY NOT NULL         -- TEXT if valid UTF-8 without NUL, else a BLOB of the raw bytes
) STRICT;

CREATE TABLE payload_hash_row (
  hash TEXT PRIMARY KEY,         -- payload_row.hash
  id INTEGER NOT NULL REFERENCES payload_row(id)
) STRICT, WITHOUT ROWID;

CREATE VIEW payload AS
  SELECT p.id, h.hash, p.size_bytes, p.content FROM payload_hash_row h CROSS JOIN payload_row p ON p.id = h.id;

-- State of a record's payload; unhashed: the log has no MD5 of it.
CREATE TABLE payload_state (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL
) STRICT;
INSERT INTO payload_state VALUES (0, 'absent'), (1, 'ok'), (2, 'mismatch'), (3, 'cr_removed'), (4, 'unhashed');

-- One record of the log: a header line whose JSON is an object, with its payload lines.
CREATE TABLE record_row (
  id INTEGER PRIMARY KEY,
  process_id INTEGER NOT NULL REFERENCES process(id),
  line INTEGER NOT NULL,         -- 1-based line of the header
  byte_offset INTEGER NOT NULL,  -- of the header's first byte, in the decompressed file
  local_us INTEGER NOT NULL,     -- prefix time, microseconds in a local year of the process; never decreasing
  source_file_id INTEGER NOT NULL REFERENCES text_row(id),
  source_line INTEGER NOT NULL,
  kind_id INTEGER REFERENCES text_row(id),     -- record key; NULL: no key or several candidates
  name_id INTEGER REFERENCES text_row(id),     -- artifact name
  compile_id INTEGER REFERENCES compile(id),
  attempt INTEGER,
  subgraph_id INTEGER REFERENCES text_row(id),
  payload_id INTEGER REFERENCES payload_row(id),
  payload_state INTEGER NOT NULL REFERENCES payload_state(id),
  stack_id INTEGER REFERENCES stack_frame(id),      -- innermost frame of the envelope's stack, else of metadata.stack
  user_stack_id INTEGER REFERENCES stack_frame(id), -- innermost frame of metadata.user_stack
  envelope TEXT NOT NULL,        -- the header's JSON exactly as in the log
  metadata TEXT                  -- strict JSON; NULL: the value of the record key in the envelope is already strict
) STRICT;

-- The records of each compile, without the most frequent kinds (text ids 1 … 8: chromium_event, str, describe_*,
-- expression_created, create_symbol, create_unbacked_symbol). An index over record_row would have to read all of it.
CREATE TABLE compile_record_row (
  compile_id INTEGER NOT NULL REFERENCES compile(id),
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  PRIMARY KEY (compile_id, record_id)
) STRICT, WITHOUT ROWID;

-- In which blocks of 64 ids there are records of a kind: an index over kinds with a tenth of the rows of record_row. A row may
-- outlive its records.
CREATE TABLE record_kind_row (
  kind TEXT NOT NULL,             -- record.kind
  block INTEGER NOT NULL,         -- record_row.id / 64
  PRIMARY KEY (kind, block) ON CONFLICT IGNORE
) STRICT, WITHOUT ROWID;

-- A query by kind reads the blocks that have such records; one by compile_id the range of the compile's.
CREATE VIEW record AS
  SELECT r.id, p.log_file_id, r.process_id, p.rank, r.line, r.byte_offset,
    r.local_us + p.time_shift_us AS time_us, f.text AS source_file, r.source_line, b.kind, n.text AS name,
    c.id AS compile_id, r.attempt, s.text AS subgraph_name, h.hash AS payload_hash,
    (SELECT name FROM payload_state WHERE id = r.payload_state) AS payload_state,
    r.stack_id, r.envelope,
    CASE WHEN r.metadata IS NOT NULL THEN r.metadata
      WHEN k.text IS NOT NULL THEN r.envelope -> ('$."' || k.text || '"') END AS metadata,
    r.user_stack_id, r.payload_id
  FROM record_row r
  JOIN process p ON p.id = r.process_id AND r.id BETWEEN p.first_record_id AND p.last_record_id
  LEFT JOIN compile c ON c.id = r.compile_id AND r.id BETWEEN c.first_record_id AND c.last_record_id
  LEFT JOIN text_row f ON f.id = r.source_file_id
  LEFT JOIN text_row k ON k.id = r.kind_id
  LEFT JOIN record_kind_row b ON b.kind = k.text AND b.block = r.id >> 6
    AND r.id BETWEEN b.block << 6 AND (b.block << 6) + 63
  LEFT JOIN text_row n ON n.id = r.name_id
  LEFT JOIN text_row s ON s.id = r.subgraph_id
  LEFT JOIN payload_row l ON l.id = r.payload_id
  LEFT JOIN payload_hash_row h ON h.hash = l.hash AND h.id = r.payload_id;

-- One compile of one process, without the attempt; the lazy backward belongs to it.
CREATE TABLE compile (
  id INTEGER PRIMARY KEY,
  process_id INTEGER NOT NULL REFERENCES process(id),
  rank INTEGER,
  compiled_autograd_id INTEGER,
  frame_id INTEGER,
  frame_compile_id INTEGER,
  label TEXT NOT NULL,             -- 0/0, !1/0/0, !1; synthetic: unknown_<line>
  is_synthetic INTEGER NOT NULL,   -- 1: a stretch of records without ids (AOTInductor, export)
  status TEXT NOT NULL,            -- ok, restarted, empty, loaded (precompiled), failed, skipped (it runs eagerly), unfinished
  start_time_us INTEGER,
  duration_us INTEGER,             -- the compile itself
  backward_duration_us INTEGER,    -- its lazy backward, where there was one
  function TEXT,                   -- the compiled Python function, its file and first line
  file TEXT,                       -- as PyTorch spells it
  line INTEGER,
  generation INTEGER NOT NULL,     -- 0-based: how often this process had used the label before (torch._dynamo.reset())
  stack_id INTEGER REFERENCES stack_frame(id), -- innermost frame of dynamo_start's stack
  first_record_id INTEGER,
  last_record_id INTEGER
) STRICT;

-- One attempt of a compile: the analysis of a frame restarts after a graph break.
CREATE TABLE attempt (
  compile_id INTEGER NOT NULL REFERENCES compile(id),
  attempt INTEGER NOT NULL,
  restart_reason TEXT,             -- why the attempt before this one ended; NULL for attempt 0 or unknown
  PRIMARY KEY (compile_id, attempt)
) STRICT, WITHOUT ROWID;

-- One graph of a compile: forward, backward, DDP splits, subgraphs. Its records follow one another: from fx_graph_runnable (of a cache hit of 2.6:
-- inductor_output_code) to the cache lookup of the graph or the end of its inductor_compile event.
CREATE TABLE graph (
  id INTEGER PRIMARY KEY,
  compile_id INTEGER NOT NULL REFERENCES compile(id),
  ordinal INTEGER NOT NULL,        -- 0-based within the compile, in log order
  direction TEXT,                  -- forward, backward, inference, joint, or NULL: unknown
  subgraph_name TEXT,              -- of its records, else the piece of vLLM's graph, e.g. submod_0 [1, 16384]
  aot_id TEXT,                     -- from "# AOT ID" of the output code, e.g. 7_forward
  cache_key TEXT,                  -- FX graph cache key
  record_id INTEGER REFERENCES record_row(id),  -- the record that opened it
  code_record_id INTEGER REFERENCES record_row(id), -- its inductor_output_code
  provenance_content_id INTEGER REFERENCES content_row(id)  -- its kernels (kernel_row)
) STRICT;

-- Derived content: one row per distinct normalised content of one kind.
CREATE TABLE content_row (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,              -- graph, code, guard_tree, schedule, op_list, op_estimate, provenance, execution_order, …
  hash TEXT NOT NULL,              -- XXH3-128 of the normalised content, hex
  record_id INTEGER                -- the first record it was derived from, among existing logs
) STRICT;

-- The content of a payload after normalisation: payloads with equal content_id have equal content.
CREATE TABLE payload_content_row (
  payload_id INTEGER NOT NULL REFERENCES payload_row(id),
  content_id INTEGER NOT NULL REFERENCES content_row(id),
  PRIMARY KEY (payload_id, content_id)   -- one content per kind
) STRICT, WITHOUT ROWID;

-- What was dropped, odd or damaged.
CREATE TABLE import_code (
  id INTEGER PRIMARY KEY,
  severity TEXT NOT NULL,  -- error: bytes damaged or not attributable; warning: content contradictory or lost; info: new or foreign
  code TEXT NOT NULL,      -- its name: broken_header, payload_mismatch, …
  advice TEXT NOT NULL,    -- what to do about it
  is_damage INTEGER,       -- a record or more was lost or changed, or what a file holds is unknown
  is_cut INTEGER           -- the data of the file end there
) STRICT;

CREATE TABLE import_log_row (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run(id),
  log_file_id INTEGER REFERENCES log_file(id),
  record_id INTEGER REFERENCES record_row(id),
  line INTEGER,
  byte_offset INTEGER,
  code_id INTEGER NOT NULL REFERENCES import_code(id),
  message TEXT NOT NULL,
  text ANY,                -- the bytes concerned, where no record keeps them; TEXT if valid UTF-8 without NUL, else a BLOB
  line_count INTEGER NOT NULL,
  profile_id INTEGER REFERENCES profile(id), -- a file other than a log: profile, recorder dump
  path TEXT                -- of a file or directory that was left out, which has neither a log_file nor a profile
) STRICT;

-- What was dropped, odd or damaged: one row for each place, with the advice of its code.
CREATE VIEW import_log AS
  SELECT i.id, i.run_id, i.log_file_id, i.record_id, i.line, i.byte_offset, c.severity, c.code, i.message, c.advice,
    i.text, i.line_count, i.profile_id, i.path, c.is_damage, c.is_cut
  FROM import_log_row i JOIN import_code c ON c.id = i.code_id;
