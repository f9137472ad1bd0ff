-- What came of an experiment.
CREATE TABLE experiment_verdict (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO experiment_verdict VALUES (0, 'confirmed'), (1, 'refuted'), (2, 'changed'), (3, 'inconclusive');

-- One run of a command with the change that a finding suggests, or without it before (`tlparse try`), or a step of `tlparse bisect`.
CREATE TABLE experiment (
  id INTEGER PRIMARY KEY,
  finding_id TEXT NOT NULL,       -- as `tlparse findings` names it; of a bisection the finding that makes a run bad; numbers: other outputs of compiled graphs do
  base_run_id INTEGER NOT NULL REFERENCES run(id), -- whose finding it is
  run_id INTEGER REFERENCES run(id), -- the new run; NULL: it left nothing to read
  change TEXT NOT NULL,           -- JSON: a list of changes, as `findings --json` has them
  verdict INTEGER NOT NULL REFERENCES experiment_verdict(id),
  reason TEXT NOT NULL,           -- a sentence
  command TEXT NOT NULL,          -- JSON: program and arguments
  directory TEXT NOT NULL,        -- output directory of the new run
  started_us INTEGER NOT NULL,
  base_compile_us INTEGER,        -- compile time of the process that took longest; NULL: not known; base_…: of a shortened or graph-only run without the change, if there is one
  compile_us INTEGER,
  base_step_us INTEGER,           -- median of the profiled steps; NULL: not profiled
  step_us INTEGER,
  base_command_us INTEGER,        -- from the command's start to its end; NULL: `tlparse run` did not record it
  command_us INTEGER,
  came TEXT NOT NULL              -- JSON: ids of findings above a note that only the new run has
) STRICT;
