-- An exception that ended a Python process or a thread of it: of run.json, where the hook of `tlparse run` saw it, or of the standard error of a job, where
-- PyTorch prints "[rankN]: " before each line.
CREATE TABLE uncaught_exception (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  ordinal INTEGER,                -- of its run_process; NULL: it is in a text
  line INTEGER,                   -- of the text, 1-based: where the traceback begins; of vLLM's the line of vllm_line which says that the process failed
  rank INTEGER,                   -- NULL: none, or not known
  thread TEXT,                    -- name of the thread or task that it ended; NULL: it ended the process
  is_of_task INTEGER NOT NULL,    -- 1: a task of asyncio, and nobody had looked at its result
  type TEXT NOT NULL,             -- class, without its module
  message TEXT NOT NULL,          -- of several lines, maybe
  user_file TEXT,                 -- the innermost line of the user's; NULL: none is
  user_line INTEGER,
  user_function TEXT,             -- in which that line is
  raised_us INTEGER,              -- when nothing had caught it; NULL: not known
  traceback TEXT NOT NULL         -- as Python prints it
) STRICT;

-- What C++ or the C library printed before it aborted a process: "std::out_of_range: index 12 of 8". Of run.json, where the standard error of
-- the command was a file, or of such a text.
CREATE TABLE printed_abort (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  line INTEGER,                   -- of the text, 1-based; NULL: it is in run.json
  rank INTEGER,                   -- NULL: the text does not say it
  text TEXT NOT NULL
) STRICT;

-- What the report of torchrun in such a text calls the root cause: the failure of a rank that it saw first. One row per report.
CREATE TABLE launcher_failure (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  line INTEGER NOT NULL,          -- of the text, 1-based
  rank INTEGER NOT NULL,
  pid INTEGER,
  exit_code INTEGER               -- -9: SIGKILL ended the process
) STRICT;
