-- An exception that ended a Python process or a thread of it: of run.json, where the hook of `tlparse run` saw it, or of the standard error of a job, where
-- PyTorch prints "[rankN]: " before each line.
CREATE TABLE uncaught_exception (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  ordinal INTEGER,                -- of its run_process; NULL: it is in a text
  line INTEGER,                   -- of the text, 1-based: where the traceback begins; of vLLM's the line of vllm_line which says that the process failed
  rank INTEGER,                   -- NULL: none, or not known
  process_name TEXT,              -- as the lines of the text begin: 'Local rank 0' (torchrun --tee), 'Task 3 of srun', 'Process 1 of mpirun', 'WorkerDict (pid 25889)' (Ray, the journal), 'trainer-1' (a container); NULL: they name none
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

-- What C++ or the C library printed before it aborted a process: "std::out_of_range: index 12 of 8"; or a kernel of a GPU whose assertion failed, which
-- the program learns of in a later call: "ScatterGatherKernel.cu:365: Assertion `i < n` failed", once for all its threads. Of run.json, where the standard error of
-- the command was a file, or of such a text.
CREATE TABLE printed_abort (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  line INTEGER,                   -- of the text, 1-based; NULL: it is in run.json
  rank INTEGER,                   -- NULL: the text does not say it
  is_of_device INTEGER NOT NULL,  -- 1: of a kernel
  text TEXT NOT NULL,             -- empty: it is of a signal
  signal INTEGER,                 -- of "Fatal Python error: Segmentation fault", below which faulthandler writes the stacks; NULL: it is none of these
  stopped_at TEXT,                -- of a signal as in run_process; NULL: no line of the user's is in the stacks
  fault_thread TEXT               -- of a signal as in run_process
) STRICT;

-- The failure of a process that a launcher saw: what a report of torchrun in such a text calls the root cause, or, where the text lacks the report, the line
-- "failed (exitcode: -9) local_rank: 5 (pid: 2630)" that it logs; a line of DeepSpeed, which does not say which process it was, of srun or of slurmstepd.
-- One row per report or line.
CREATE TABLE launcher_failure (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  line INTEGER NOT NULL,          -- of the text, 1-based
  launcher TEXT NOT NULL,         -- 'torchrun', 'DeepSpeed', 'srun', 'slurmstepd'
  process TEXT,                   -- 'Task 3 of srun'; NULL: it has a rank or a local rank
  rank INTEGER,                   -- NULL: the line names the local rank alone, or a task, or nothing
  local_rank INTEGER,             -- on its host; NULL: of a report, or not said
  pid INTEGER,
  exit_code INTEGER,              -- -9: SIGKILL ended the process
  is_out_of_memory INTEGER NOT NULL  -- 1: Slurm's limit of memory ended it
) STRICT;
