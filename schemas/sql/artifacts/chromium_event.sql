-- Timed and instant events of the compiler (record kind chromium_event), B and E paired per process and name.
CREATE TABLE chromium_event_row (
  record_id INTEGER PRIMARY KEY REFERENCES record_row(id),  -- the record that has all arguments: the E, the instant, or a B never closed
  begin_record_id INTEGER,     -- the B record of a pair
  name_id INTEGER NOT NULL REFERENCES text_row(id),
  phase INTEGER NOT NULL,      -- character code: 88 X (B and E paired, or logged as one), 105 i (instant), 66 B (never closed), 69 E (never opened)
  start_us REAL,               -- microseconds since the epoch, UTC; of an orphan E: its end
  duration_us REAL,            -- NULL: not paired
  compile_id INTEGER REFERENCES compile(id),  -- of events of helper threads: the compile that was running
  args TEXT,                   -- strict JSON, only where the payload is not; else `args` comes from the payload
  tid INTEGER                  -- thread; NULL: 0 in the log, as PyTorch writes for all threads
) STRICT;

CREATE VIEW chromium_event AS
  SELECT e.record_id, p.rank, n.text AS name, char(e.phase) AS phase, e.start_us, e.duration_us,
    e.compile_id,
    CASE WHEN e.args IS NOT NULL THEN e.args
      WHEN typeof(c.content) = 'text' AND json_valid(c.content) THEN c.content -> '$.args' END AS args,
    e.begin_record_id, r.process_id, coalesce(e.tid, 0) AS tid
  FROM chromium_event_row e
  JOIN record_row r ON r.id = e.record_id
  JOIN process p ON p.id = r.process_id AND e.record_id BETWEEN p.first_record_id AND p.last_record_id
  LEFT JOIN text_row n ON n.id = e.name_id
  LEFT JOIN payload_row c ON c.id = r.payload_id;
