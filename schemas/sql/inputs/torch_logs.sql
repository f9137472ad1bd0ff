-- Text of TORCH_LOGS: one row per line that names its artifact. Most artifacts repeat records of the structured trace; some have
-- more: fusion (why two nodes were not fused), perf_hints, cudagraphs (why a graph was not captured).
CREATE TABLE torch_log_line_row (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  line INTEGER NOT NULL,          -- 1-based, in the file
  level TEXT NOT NULL,            -- V, I, W, E, C, D
  local_time TEXT NOT NULL,       -- as in the text: month, day and time of day of the process's zone, 1122 19:30:29.099000; before PyTorch 2.3 with the year, 2024-02-06 10:32:24,334; '': the line has no
                                  -- prefix, as the warning at the recompile limit may
  pid INTEGER NOT NULL,           -- as in the text: process, or thread; 0: the line has no prefix
  rank INTEGER,                   -- of a "[rankN]:" that torchrun put before the line
  source_file_id INTEGER NOT NULL REFERENCES text_row(id),
  source_line INTEGER NOT NULL,
  label_id INTEGER REFERENCES text_row(id),    -- compile as in the text: 0/0, !1/0/0; NULL: the line names none
  attempt INTEGER,                -- the 1 of [0/0_1]; NULL: the line names no compile
  artifact_id INTEGER NOT NULL REFERENCES text_row(id), -- fusion, perf_hints, recompiles, …;
                                  -- recompile_limit: the warning at the limit, which names none
  text TEXT NOT NULL              -- the rest of the line
) STRICT;

-- process_id: of the text, where that is of one process; else the one of this run whose pid, and rank where the line names one, the line
-- has. compile_id: the latest compile of that label in it; NULL: no log of that process, or no such label.
CREATE VIEW torch_log_line AS
  WITH line AS (SELECT l.*, p.rank AS profile_rank, coalesce(p.process_id, (SELECT max(q.id) FROM process q
      JOIN log_file g ON g.id = q.log_file_id WHERE g.run_id = p.run_id AND q.pid = l.pid AND (l.rank IS NULL OR q.rank = l.rank))) AS process_id
    FROM torch_log_line_row l JOIN profile p ON p.id = l.profile_id)
  SELECT l.id, l.profile_id, coalesce(l.rank, l.profile_rank) AS rank, l.process_id, l.line, l.level, l.local_time, l.pid, f.text AS source_file,
    l.source_line, c.text AS label, l.attempt, a.text AS artifact, l.text,
    (SELECT max(k.id) FROM compile k WHERE k.process_id = l.process_id AND k.label = c.text) AS compile_id
  FROM line l LEFT JOIN text_row f ON f.id = l.source_file_id
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

-- Recompiles as the text tells them: one row per guard that failed, or per warning at the recompile limit (is_refused = 1).
CREATE VIEW torch_log_recompile AS
  WITH part AS (
    SELECT l.*, ltrim(l.text) AS bare,
      max(CASE WHEN l.text LIKE 'Recompiling function %' OR l.text LIKE 'torch.\_dynamo hit config.%' ESCAPE '\' THEN l.line END)
        OVER (PARTITION BY l.profile_id, l.pid, l.label, l.artifact ORDER BY l.line) AS head_line
    FROM torch_log_line l WHERE l.artifact IN ('recompiles', 'recompiles_verbose', 'recompile_limit')),
  head AS (
    SELECT profile_id, line, rtrim(substr(text, 22 + instr(substr(text, 22), ' in ') + 3), '0123456789') AS place,
      substr(text, 22, instr(substr(text, 22), ' in ') - 1) AS function, substr(text, 22 + instr(substr(text, 22), ' in ') + 3) AS whole
    FROM part WHERE text LIKE 'Recompiling function %'
    UNION ALL SELECT p.profile_id, p.head_line, rtrim(rtrim(substr(p.bare, instr(p.bare, ''' (') + 3), ')'), '0123456789'),
      substr(p.bare, 12, instr(p.bare, ''' (') - 12), rtrim(substr(p.bare, instr(p.bare, ''' (') + 3), ')')
    FROM part p WHERE p.artifact = 'recompile_limit' AND p.bare LIKE 'function: %'),
  said AS (
    SELECT p.*, CASE WHEN p.artifact = 'recompile_limit' THEN substr(p.bare, 14) ELSE substr(p.bare, 3) END AS reason
    FROM part p WHERE p.head_line IS NOT NULL AND (p.bare LIKE 'last reason: %' OR (p.artifact <> 'recompile_limit' AND p.bare GLOB '- [^ ]*' AND p.bare <> '- User stack trace:')))
  SELECT s.id, s.profile_id, s.rank, s.process_id, s.line, s.label, h.function, rtrim(h.place, ':') AS file,
    CAST(substr(h.whole, length(h.place) + 1) AS INTEGER) AS function_line,
    CASE WHEN s.reason GLOB '[0-9!]*/*: *' THEN substr(s.reason, 1, instr(s.reason, ': ') - 1) END AS prior_label, s.reason,
    rtrim(CASE WHEN instr(s.guard, '  # ') > 0 THEN substr(s.guard, 1, instr(s.guard, '  # ')) ELSE s.guard END) AS guard,
    (SELECT m.text FROM part m WHERE m.profile_id = s.profile_id AND m.line = s.head_line) AS message, s.artifact = 'recompile_limit' AS is_refused
  FROM (SELECT said.*, CASE WHEN reason GLOB '[0-9!]*/*: *' THEN substr(reason, instr(reason, ': ') + 2) ELSE reason END AS guard FROM said) s
  LEFT JOIN head h ON h.profile_id = s.profile_id AND h.line = s.head_line;

-- Graph breaks as the text tells them: one row per line "Graph break in user code at FILE:LINE", with the reason and the first hint of
-- the lines below it. PyTorch says a break that it has told before without its stack.
CREATE VIEW torch_log_graph_break AS
  WITH part AS (
    SELECT l.*, ltrim(lead(l.text) OVER message) AS next_text,
      max(CASE WHEN l.text GLOB 'Graph break in user code at *' OR l.text GLOB 'Graph break (* suppressed*) in user code at *'
          OR l.text GLOB 'Graph break: *' THEN l.line END) OVER message AS head_line
    FROM torch_log_line l WHERE l.artifact = 'graph_breaks' AND trim(l.text) <> ''
    WINDOW message AS (PARTITION BY l.profile_id, l.pid, l.label ORDER BY l.line)),
  said AS (
    SELECT profile_id, head_line, min(line) AS line,
      CASE WHEN text LIKE '%:' THEN next_text ELSE ltrim(substr(text, instr(text, ':') + 1)) END AS reason
    FROM part WHERE text GLOB 'Reason:*' OR text GLOB 'Graph Break Reason:*' GROUP BY profile_id, head_line),
  hint AS (
    SELECT profile_id, head_line, min(line) AS line, ltrim(substr(ltrim(text), 6)) AS hint
    FROM part WHERE text GLOB '  Hint: *' GROUP BY profile_id, head_line),
  head AS (
    SELECT p.*, CASE WHEN p.text GLOB '* in user code at *:[0-9]*' THEN substr(p.text, instr(p.text, ' in user code at ') + 17) END AS place
    FROM part p WHERE p.line = p.head_line)
  SELECT h.id, h.profile_id, h.rank, h.process_id, h.line, h.label, h.text AS message, s.reason,
    rtrim(rtrim(h.place, '0123456789'), ':') AS file, CAST(substr(h.place, length(rtrim(h.place, '0123456789')) + 1) AS INTEGER) AS user_line, t.hint
  FROM head h LEFT JOIN said s ON s.profile_id = h.profile_id AND s.head_line = h.line
  LEFT JOIN hint t ON t.profile_id = h.profile_id AND t.head_line = h.line;
