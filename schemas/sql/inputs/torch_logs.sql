-- Text of TORCH_LOGS: one row per line that names its artifact. Most artifacts repeat records of the structured trace; some have
-- more: fusion (why two nodes were not fused), perf_hints, cudagraphs (why a graph was not captured).
CREATE TABLE torch_log_line_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  line INTEGER NOT NULL,          -- 1-based, in the file
  level TEXT NOT NULL,            -- V, I, W, E, C, D
  local_time TEXT NOT NULL,       -- as in the text: month, day and time of day of the process's zone, 1122 19:30:29.099000
  pid INTEGER NOT NULL,           -- as in the text: process, or thread
  rank INTEGER,                   -- of a "[rankN]:" that torchrun put before the line
  source_file_id INTEGER NOT NULL REFERENCES text_row(id),
  source_line INTEGER NOT NULL,
  label_id INTEGER REFERENCES text_row(id),    -- compile as in the text: 0/0, !1/0/0; NULL: the line names none
  attempt INTEGER,                -- the 1 of [0/0_1]; NULL: the line names no compile
  artifact_id INTEGER NOT NULL REFERENCES text_row(id), -- fusion, perf_hints, cudagraphs, output_code, …
  text TEXT NOT NULL              -- the rest of the line
) STRICT;

-- compile_id: the latest compile of that label in the process that wrote the text; NULL: no log of that process, or no such label.
CREATE VIEW torch_log_line AS
  SELECT l.id, l.profile_id, coalesce(l.rank, p.rank) AS rank, p.process_id, l.line, l.level, l.local_time, l.pid, f.text AS source_file,
    l.source_line, c.text AS label, l.attempt, a.text AS artifact, l.text,
    (SELECT max(k.id) FROM compile k WHERE k.process_id = p.process_id AND k.label = c.text) AS compile_id
  FROM torch_log_line_row l JOIN profile p ON p.id = l.profile_id LEFT JOIN text_row f ON f.id = l.source_file_id
  LEFT JOIN text_row c ON c.id = l.label_id LEFT JOIN text_row a ON a.id = l.artifact_id;

-- Pairs of nodes that Inductor did not fuse, and why.
CREATE VIEW fusion_refusal AS
  SELECT l.id, l.profile_id, l.rank, l.process_id, l.compile_id, l.label, l.attempt,
    substr(l.text, 13, instr(substr(l.text, 13), ' with ') - 1) AS first_node,
    substr(l.text, 13 + instr(substr(l.text, 13), ' with ') + 5,
      instr(substr(l.text, 13 + instr(substr(l.text, 13), ' with ') + 5), ': ') - 1) AS second_node,
    substr(l.text, 13 + instr(substr(l.text, 13), ': ') + 1) AS reason, l.line
  FROM torch_log_line l
  WHERE l.artifact = 'fusion' AND l.text LIKE 'cannot fuse % with %: %';
