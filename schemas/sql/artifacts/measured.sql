-- Measurements of libtrace: libtrace_collective_log, libtrace_collective_state, libtrace_graph_execution, libtrace_measured_runtime, libtrace_cuda_activity.
-- NULL: not in the log.
CREATE TABLE issued_collective_row (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  ordinal INTEGER NOT NULL,
  label TEXT,               -- compile during which it was issued
  sequence_number INTEGER,  -- within the process group
  op TEXT,                  -- all_reduce, broadcast, …
  group_name TEXT,          -- process group
  group_size INTEGER,       -- ranks in the group
  backend TEXT,             -- gloo, nccl, …
  input_shapes TEXT,        -- JSON list of lists
  output_shapes TEXT,       -- JSON list of lists
  dtype TEXT,
  reduce_op TEXT,           -- sum, …; NULL: no reduction
  root_rank INTEGER,        -- within the group; NULL: it has no root
  start_us INTEGER,
  duration_ns REAL,         -- where the log was written after its end; see collective_state
  collective_seq_id INTEGER, -- within the group, as in recorder_entry
  p2p_seq_id INTEGER,       -- of a send or receive, as in recorder_entry
  error TEXT,               -- what the backend said, where the log was written after its end; see collective_state
  PRIMARY KEY (record_id, ordinal)
) STRICT, WITHOUT ROWID;
-- The end of a collective that was written when it was issued.
CREATE TABLE collective_state (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),
  group_name TEXT,          -- process group
  sequence_number INTEGER,  -- within the group
  duration_ns REAL,         -- until it was complete, or failed
  unwritten_count INTEGER,  -- not NULL: number of collectives of the process that were issued and not written
  error TEXT                -- what the backend said; without a duration it refused the call, and no other rank waits for it
) STRICT;
CREATE INDEX collective_state_by_number ON collective_state(group_name, sequence_number);
CREATE TABLE graph_run_row (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),
  ordinal INTEGER,
  label TEXT,               -- compile id as logged
  graph TEXT,               -- the program's name of the graph
  start_us INTEGER,
  duration_ns INTEGER
) STRICT;
CREATE TABLE measured_op_row (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  ordinal INTEGER NOT NULL,
  compile_id INTEGER REFERENCES compile(id),
  clock TEXT,               -- what was measured: cpu (the call), cuda (the device)
  name TEXT,
  node TEXT,                -- graph node
  count INTEGER,            -- how often it ran
  total_ns REAL,
  min_ns REAL,
  max_ns REAL,
  estimated_ns REAL,        -- of one run
  PRIMARY KEY (record_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE TABLE gpu_activity_row (
  record_id INTEGER NOT NULL REFERENCES record_row(id),
  ordinal INTEGER NOT NULL,
  compile_id INTEGER REFERENCES compile(id),
  kind TEXT,                -- kernel, memcpy, memset
  name TEXT,
  op TEXT,                  -- op that enqueued it
  node TEXT,                -- graph node of that op
  device INTEGER,           -- index of the GPU
  stream INTEGER,           -- CUPTI's id of it
  start_us REAL,            -- since the epoch, UTC; NULL: it had not started, or the log has no clock
  start_ns INTEGER,         -- CUPTI's clock
  duration_ns INTEGER,      -- NULL: it was still running
  size_bytes INTEGER,
  source_device INTEGER,    -- of a copy between two GPUs
  target_device INTEGER,    -- of a copy between two GPUs
  cuda_graph_id INTEGER,    -- CUDA graph that it was part of; NULL: none
  cuda_graph_node_id INTEGER, -- its node in that graph
  PRIMARY KEY (record_id, ordinal)
) STRICT, WITHOUT ROWID;
-- Facts of CUPTI about one list of gpu_activity rows.
CREATE TABLE gpu_activity_log (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),
  cupti TEXT,               -- file of the CUPTI library
  cupti_version INTEGER,    -- as returned by cuptiGetVersion
  lost_count INTEGER,       -- number of activities not listed: beyond the limit, or dropped by CUPTI
  unlabelled_count INTEGER, -- activities and ops whose relation may have been lost
  clock_error_ns INTEGER,   -- start_us is off by at most this, where the clocks were read
  unsampled_count INTEGER,  -- activities left out, as no op of a sampled request launched them; NULL: none was
  foreign_id_count INTEGER, -- external ids of libtrace's kind that something else pushed
  foreign_buffer_count INTEGER, -- buffers of another client of CUPTI, which were not read
  end_reason TEXT,          -- buffers_taken, not_recorded: another client ended the records; NULL: they were recorded until the end
  last_call_us REAL,        -- beside end_reason: what was enqueued later is missing; NULL: no call was seen, or the log has no clock
  noticed_us REAL           -- when the end was noticed
) STRICT;

-- `compile_id` is the latest compile of that label, as in graph_execution. A collective with an error and no duration was
-- refused by the backend: it has no collective_seq_id or p2p_seq_id, the next one has the number that was logged for it.
CREATE VIEW issued_collective AS
  SELECT e.record_id, e.rank, e.ordinal, e.compile_id, e.label, e.sequence_number, e.op, e.group_name, e.group_size, e.backend,
    e.input_shapes, e.output_shapes, e.dtype, e.reduce_op, e.root_rank, e.start_us, e.duration_ns,
    CASE WHEN e.error IS NULL OR e.duration_ns IS NOT NULL THEN e.collective_seq_id END AS collective_seq_id,
    CASE WHEN e.error IS NULL OR e.duration_ns IS NOT NULL THEN e.p2p_seq_id END AS p2p_seq_id, e.process_id, e.error
  FROM (SELECT i.record_id, p.rank, i.ordinal,
      (SELECT max(c.id) FROM compile c WHERE c.process_id = r.process_id AND c.label = i.label) AS compile_id, i.label,
      i.sequence_number, i.op, i.group_name, i.group_size, i.backend, i.input_shapes, i.output_shapes, i.dtype, i.reduce_op, i.root_rank,
      i.start_us, coalesce(i.duration_ns, (SELECT s.duration_ns FROM collective_state s JOIN record_row q ON q.id = s.record_id
        WHERE s.group_name = i.group_name AND s.sequence_number = i.sequence_number AND q.process_id = r.process_id)) AS duration_ns,
      coalesce(i.error, (SELECT s.error FROM collective_state s JOIN record_row q ON q.id = s.record_id
        WHERE s.group_name = i.group_name AND s.sequence_number = i.sequence_number AND q.process_id = r.process_id)) AS error,
      i.collective_seq_id, i.p2p_seq_id, r.process_id
    FROM issued_collective_row i JOIN record_row r ON r.id = i.record_id
      JOIN process p ON p.id = r.process_id AND i.record_id BETWEEN p.first_record_id AND p.last_record_id) e;

-- One timed execution of a graph, as libtrace measured it.
CREATE VIEW graph_run AS
  SELECT e.record_id, p.rank, e.ordinal,
    (SELECT max(c.id) FROM compile c WHERE c.process_id = r.process_id AND c.label = e.label) AS compile_id, e.label, e.graph,
    e.start_us, e.duration_ns, r.process_id
  FROM graph_run_row e JOIN record_row r ON r.id = e.record_id JOIN process p ON p.id = r.process_id AND e.record_id BETWEEN p.first_record_id AND p.last_record_id;

-- One op with its measured and estimated runtime (libtrace).
CREATE VIEW measured_op AS
  SELECT o.record_id, p.rank, o.compile_id, o.ordinal, o.clock, o.name, o.node, o.count, o.total_ns, o.min_ns,
    o.max_ns, o.estimated_ns, r.process_id
  FROM measured_op_row o JOIN record_row r ON r.id = o.record_id JOIN process p ON p.id = r.process_id AND o.record_id BETWEEN p.first_record_id AND p.last_record_id;

-- One kernel or copy of a GPU with the op that enqueued it, as libtrace measured it.
CREATE VIEW gpu_activity AS
  SELECT a.record_id, p.rank, a.compile_id, a.ordinal, a.kind, a.name, a.op, a.node, a.device, a.stream,
    a.start_us, a.start_ns, a.duration_ns, a.size_bytes, a.source_device, a.target_device, a.cuda_graph_id, a.cuda_graph_node_id, r.process_id
  FROM gpu_activity_row a JOIN record_row r ON r.id = a.record_id JOIN process p ON p.id = r.process_id AND a.record_id BETWEEN p.first_record_id AND p.last_record_id;
