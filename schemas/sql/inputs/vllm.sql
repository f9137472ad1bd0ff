-- What vLLM prints of its start. Stages are those of its own lines, as vLLM 0.32 has them.
CREATE TABLE vllm_stage (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL
) STRICT;
INSERT INTO vllm_stage VALUES
  (0, 'first_line'),              -- of a process: no stage, the first time that it says
  (1, 'engine'),                  -- Initializing a V1 LLM engine: the engine begins
  (2, 'load'),                    -- Starting to load model: a worker begins to load
  (3, 'make_model'),              -- Initializing model took
  (4, 'load_weights'),            -- Loading weights took
  (5, 'load_model'),              -- Model loading took: all of the load
  (6, 'begin_warm_up'),           -- Warming up model for the compilation: on a CPU
  (7, 'end_warm_up'),             -- Warming up done
  (8, 'dynamo'),                  -- Dynamo bytecode transform time
  (9, 'compile_graph'),           -- Compiling a graph for compile range … takes
  (10, 'load_graph'),             -- Directly load the compiled graph(s) for compile range … from the cache
  (11, 'compile'),                -- torch.compile took … in total: dynamo and graphs
  (12, 'compile_and_run'),        -- torch.compile and initial profiling/warmup run together took
  (13, 'load_compiled'),          -- Directly load AOT compilation from path: nothing is compiled
  (14, 'compile_again'),          -- Compiling model again due to a load failure from …, reason: …
  (15, 'first_run'),              -- Initial profiling/warmup run took
  (16, 'warm_up_kernels'),        -- JIT kernel warmup finished in
  (17, 'capture'),                -- Graph capturing finished in: CUDA graphs
  (18, 'capture_encoder'),        -- Encoder graph capturing finished in
  (19, 'init_engine'),            -- init engine (profile, create kv cache, warmup model) took: all but the load
  (20, 'listen'),                 -- Starting vLLM server on
  (21, 'failed');                 -- EngineCore failed to start, EngineCore encountered a fatal error, WorkerProc failed: an exception, whose traceback follows

-- A line in which vLLM says of a stage of its start that it begins, has ended, or how long it took, or that a process failed; and the first line of each process.
CREATE TABLE vllm_line (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES profile(id),
  line INTEGER NOT NULL,          -- 1-based, in the file
  process_name TEXT,              -- "EngineCore", "Worker_TP1"; NULL: the line has none
  pid INTEGER,                    -- NULL: the line has none
  local_time TEXT NOT NULL,       -- as in the text: month, day and time of day of the process's zone, in whole seconds: "11-29 13:36:06"
  stage INTEGER NOT NULL REFERENCES vllm_stage(id),
  seconds REAL,                   -- how long it took, as the line says; NULL: it says only that it is so now
  text TEXT NOT NULL              -- the line, without what precedes it
) STRICT;
