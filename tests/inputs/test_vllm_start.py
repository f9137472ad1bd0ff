#!/usr/bin/env python3
"""Starts of vLLM: `tlparse history` adds up what its lines and the logs of its processes tell. Recorded: vLLM 0.32 on a CPU, a first start
and one that finds what the first has compiled and cannot load it. Lines of a GPU are as vLLM's source prints them; none was recorded."""

import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import profiles  # noqa: E402

CASE = os.path.join(profiles.ROOT, "fixtures", "inputs", "vllm_start")

GPU = """(APIServer pid=10) INFO 03-01 23:58:00 [api_server.py:1] vLLM API server version 0.32.0
(EngineCore pid=20) INFO 03-01 23:58:20 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='m'
(Worker_TP0 pid=30) INFO 03-01 23:58:40 [gpu_model_runner.py:5040] Starting to load model m...
(Worker_TP1 pid=31) INFO 03-01 23:58:40 [gpu_model_runner.py:5040] Starting to load model m...
(Worker_TP0 pid=30) INFO 03-01 23:58:50 [default_loader.py:501] Loading weights took 8.25 seconds
(Worker_TP0 pid=30) INFO 03-01 23:58:51 [gpu_model_runner.py:5149] Model loading took 7.51 GiB memory and 10.500000 seconds
{cache}
(Worker_TP0 pid=30) INFO 03-01 23:59:35 [monitor.py:91] Initial profiling/warmup run took 1.50 s
(Worker_TP0 pid=30) INFO 03-02 00:00:05 [gpu_model_runner.py:6581] Graph capturing finished in 20 secs, took 0.51 GiB
(EngineCore pid=20) INFO 03-02 00:00:06 [core.py:402] init engine (profile, create kv cache, warmup model) took 75.00 s (compilation: {compile:.2f} s)
(APIServer pid=10) INFO 03-02 00:00:09 [entry.py:140] Starting vLLM server on http://0.0.0.0:8000
"""
COLD = """(Worker_TP0 pid=30) INFO 03-01 23:59:01 [backends.py:1167] Dynamo bytecode transform time: 6.25 s
(Worker_TP0 pid=30) INFO 03-01 23:59:30 [backends.py:398] Compiling a graph for compile range (1, 2048) takes 22.00 s
(Worker_TP0 pid=30) INFO 03-01 23:59:33 [monitor.py:65] torch.compile took 32.50 s in total"""
WARM = """(Worker_TP0 pid=30) INFO 03-01 23:59:32 [decorators.py:319] Directly load AOT compilation from path /cache/model
(Worker_TP0 pid=30) INFO 03-01 23:59:33 [monitor.py:65] torch.compile took 2.50 s in total"""


FAILED = """(EngineCore pid=20) INFO 03-01 23:58:20 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='m'
(Worker_TP0 pid=30) INFO 03-01 23:58:40 [gpu_model_runner.py:5040] Starting to load model m...
(Worker_TP1 pid=31) ERROR 03-01 23:58:50 [multiproc_executor.py:901] WorkerProc failed to start.
(Worker_TP1 pid=31) ERROR 03-01 23:58:50 [multiproc_executor.py:901] Traceback (most recent call last):
(Worker_TP0 pid=30) INFO 03-01 23:58:50 [default_loader.py:501] Loading weights took 8.25 seconds
(Worker_TP1 pid=31) ERROR 03-01 23:58:50 [multiproc_executor.py:901]   File "/app/server/model.py", line 43, in load_weights
(Worker_TP1 pid=31) ERROR 03-01 23:58:50 [multiproc_executor.py:901]     head = weights["head"]
(Worker_TP1 pid=31) ERROR 03-01 23:58:50 [multiproc_executor.py:901]            ~~~~~~~^^^^^^^^
(Worker_TP1 pid=31) ERROR 03-01 23:58:50 [multiproc_executor.py:901] KeyError: 'head'
(Worker_TP1 pid=31) ERROR 03-01 23:58:51 [shutdown.py:1] a later line
"""
FOLLOWED = """{process}ERROR 03-01 23:58:52 [core.py:1330] EngineCore failed to start.
{process}ERROR 03-01 23:58:52 [core.py:1330] Traceback (most recent call last):
{process}ERROR 03-01 23:58:52 [core.py:1330]   File "/usr/lib/python3/dist-packages/vllm/v1/engine/core.py", line 1291, in run_engine_core
{process}ERROR 03-01 23:58:52 [core.py:1330]     engine_core = EngineCoreProc(*args, **kwargs)
{process}ERROR 03-01 23:58:52 [core.py:1330] Exception: WorkerProc initialization failed due to an exception in a background process. See stack trace for root cause.
(APIServer pid=10) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{'EngineCore': 1}}
"""


# As vLLM 0.32 logged it on a CPU: the worker adds the traceback as a note. Of its frames the last one is left.
STEP = """(Worker pid=31) ERROR 03-01 23:59:14 [multiproc_executor.py:1063] WorkerProc hit an exception.
(Worker pid=31) ERROR 03-01 23:59:14 [multiproc_executor.py:1063] Traceback (most recent call last):
(Worker pid=31) ERROR 03-01 23:59:14 [multiproc_executor.py:1063]   File "/app/server/attention.py", line 12, in forward
(Worker pid=31) ERROR 03-01 23:59:14 [multiproc_executor.py:1063]     metadata = get_scheduler_metadata(head_dim)
(Worker pid=31) ERROR 03-01 23:59:14 [multiproc_executor.py:1063]                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
(Worker pid=31) ERROR 03-01 23:59:14 [multiproc_executor.py:1063] RuntimeError: Unsupported CPU attention configuration: head_dim=16
(Worker pid=31) ERROR 03-01 23:59:14 [multiproc_executor.py:1063] Traceback (most recent call last):
(Worker pid=31) ERROR 03-01 23:59:14 [multiproc_executor.py:1063]   File "/app/server/attention.py", line 12, in forward
(Worker pid=31) ERROR 03-01 23:59:14 [multiproc_executor.py:1063]     metadata = get_scheduler_metadata(head_dim)
(Worker pid=31) ERROR 03-01 23:59:14 [multiproc_executor.py:1063] RuntimeError: Unsupported CPU attention configuration: head_dim=16
"""
ENGINE = """(EngineCore pid=20) ERROR 03-01 23:59:14 [core.py:1512] EngineCore encountered a fatal error.
(EngineCore pid=20) ERROR 03-01 23:59:14 [core.py:1512] Traceback (most recent call last):
(EngineCore pid=20) ERROR 03-01 23:59:14 [core.py:1512]   File "/usr/lib/python3/dist-packages/vllm/v1/engine/core.py", line 1496, in run_engine_core
(EngineCore pid=20) ERROR 03-01 23:59:14 [core.py:1512]     engine_core.run_busy_loop()
(EngineCore pid=20) ERROR 03-01 23:59:14 [core.py:1512] RuntimeError: Worker failed with error 'Unsupported CPU attention configuration: head_dim=16', please check the stack trace above for the root cause
"""
DEAD = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause."


def run_of(log_pid):
    """run.json of such a command: its worker, which has the log, lived on."""
    second = 1_795_959_540_000_000
    process = {"rank": None, "exit_code": None, "signal": None, "started_us": second - 300_000_000, "ended_us": None, "raised_in_threads": []}
    trace = f'Traceback (most recent call last):\n  File "/app/serve.py", line 4, in <module>\n    llm.generate(prompts)\n{DEAD}\n'
    return json.dumps({"version": 1, "tool": "tlparse run", "command": ["python", "serve.py"], "directory": "/app", "host": "host", "environment": {},
                       "started_us": second - 300_000_000, "ended_us": second + 48_000_000, "exit_code": 1, "recorded": {}, "processes": [
                           {**process, "pid": 10, "parent_pid": 9, "command": "python serve.py", "exit_code": 1, "raised_us": second, "traceback": trace, "ended_us": second + 48_000_000},
                           {**process, "pid": 20, "parent_pid": 10, "command": "VLLM::EngineCore", "signal": 15, "ended_us": second + 1_000_000},
                           {**process, "pid": log_pid, "parent_pid": 20, "rank": 0, "command": "VLLM::Worker"}]})


class VllmFailure(profiles.InputTest):
    """What vLLM logs when a process of it fails, as its source and public reports of failures print it; none was recorded."""

    def first(self, text):
        self.write("vllm.txt", text.encode())
        self.ingest("vllm.txt")
        first = self.answer("findings", self.database)["findings"][0]
        place = first.get("place") or {}
        self.place = (place.get("file"), place.get("line"))
        return first

    def test_a_worker_and_the_engine_that_waited_for_it(self):
        first = self.first(FAILED + FOLLOWED.format(process="(EngineCore pid=20) "))
        self.assertEqual("Worker_TP1 (pid 31) raised KeyError: 'head'", first["title"])
        self.assertEqual(("/app/server/model.py", 43), self.place)
        self.assertEqual("error", first["severity"])
        self.assertIn("Of the 2 tracebacks in ", first["detail"])
        rows = self.rows(self.database, "SELECT e.line, v.process_name, e.type, e.user_file, e.user_line FROM uncaught_exception e JOIN vllm_line v USING (profile_id, line) ORDER BY e.line")
        self.assertEqual([[3, "Worker_TP1", "KeyError", "/app/server/model.py", 43], [11, "EngineCore", "Exception", None, None]], [list(row) for row in rows])

    def test_the_order_of_the_processes_does_not_matter(self):
        first = self.first(FOLLOWED.format(process="(EngineCore pid=20) ") + FAILED)
        self.assertEqual("Worker_TP1 (pid 31) raised KeyError: 'head'", first["title"])

    def test_the_engine_alone(self):
        """Of vLLM before 0.10, whose engine has no prefix."""
        first = self.first(FOLLOWED.format(process="").replace("WorkerProc initialization failed due to an exception in a background process. See stack trace for root cause.", "no memory for the cache"))
        self.assertEqual("EngineCore raised Exception: no memory for the cache", first["title"])

    def test_an_error_that_was_logged_is_no_failure(self):
        self.write("vllm.txt", FAILED.replace("WorkerProc failed to start.", "Cannot load a plugin").encode())
        self.ingest("vllm.txt")
        self.assertNotIn("raised", json.dumps(self.answer("findings", self.database)["findings"]))

    def test_a_worker_in_a_step(self):
        first = self.first(STEP + ENGINE)
        self.assertEqual("Worker (pid 31) raised RuntimeError: Unsupported CPU attention configuration: head_dim=16", first["title"])
        self.assertEqual(("/app/server/attention.py", 12), self.place)

    def test_an_exception_that_the_engine_survives(self):
        """A method that a user calls on the workers may raise, and the engine goes on."""
        self.write("vllm.txt", STEP.encode())
        self.ingest("vllm.txt")
        self.assertNotIn("raised", json.dumps(self.answer("findings", self.database)["findings"]))

    def test_the_command_points_to_what_was_printed(self):
        log = os.path.join(CASE, "cold", "dedicated_log_torch_trace_rank_0.log")
        with open(log, encoding="utf-8") as file:
            pid = re.match(r"\S+ \S+ +(\d+) ", file.readline())[1]
        self.write("run.json", run_of(int(pid)).encode())
        self.ingest("run.json", log)
        first = self.answer("findings", self.database)["findings"][0]
        self.assertEqual("The command raised EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.", first["title"])
        self.assertEqual("read the traceback that was printed before it, or give that text to tlparse as an input", first["try"])
        self.assertIn("Rank 0 lived on.", first["detail"])
        # With the text the cause comes first.
        self.write("vllm.txt", (STEP + ENGINE).replace("pid=31", f"pid={pid}").encode())
        self.ingest("run.json", log, "vllm.txt", name="both.db")
        first = self.answer("findings", self.path("both.db"))["findings"][0]
        self.assertEqual(("Rank 0 raised RuntimeError: Unsupported CPU attention configuration: head_dim=16", [0]), (first["title"], first["ranks"]))
        self.assertIn("The command then raised EngineDeadError (run.json).", first["detail"])

    def test_the_rank_is_that_of_the_log_of_the_process(self):
        log = os.path.join(CASE, "cold", "dedicated_log_torch_trace_rank_0.log")
        with open(log, encoding="utf-8") as file:
            pid = re.match(r"\S+ \S+ +(\d+) ", file.readline())[1]
        self.write("vllm.txt", FAILED.replace("pid=31", f"pid={pid}").encode())
        self.ingest("vllm.txt", log)
        first = self.answer("findings", self.database)["findings"][0]
        self.assertEqual(("Rank 0 raised KeyError: 'head'", [0]), (first["title"], first["ranks"]))


class VllmStart(profiles.InputTest):
    def starts(self, database):
        return self.answer("history", database).get("vllm_starts", [])

    def sums(self, start):
        """Checks that the parts of each stage, and of the start, add up to it."""
        for name, seconds in [(None, start["seconds"]), *((one["name"], one["seconds"]) for one in start["stages"])]:
            parts = [one["seconds"] for one in start["stages"] if one["within"] == name]
            if parts and name != "not_attributed":
                self.assertAlmostEqual(seconds, sum(parts), places=6, msg=name)
        return {(one["within"], one["name"]): round(one["seconds"], 3) for one in start["stages"]}

    def test_recorded_starts(self):
        """Each number is in the raw files."""
        spans, found = {}, {}
        for name in ("cold", "again"):
            folder = os.path.join(CASE, name)
            start, = self.starts(self.ingest(folder, name=name + ".db"))
            stages = found[name] = self.sums(start)
            with open(os.path.join(folder, "vllm.txt"), encoding="utf-8") as file:
                text = file.read()
            self.assertEqual(float(re.search(r"init engine .* took ([\d.]+) s", text)[1]), stages[None, "init_engine"])
            self.assertEqual(float(re.search(r"warmup run took ([\d.]+) s", text)[1]), stages["warm_up", "first_run"])
            self.assertEqual(round(float(re.search(r"Initializing model took ([\d.]+) s", text)[1]), 3), stages["load", "make_model"])
            # The union of the timed events of the process is what its compile took.
            events = []
            with open(os.path.join(folder, "dedicated_log_torch_trace_rank_0.log"), encoding="utf-8") as file:
                for block in re.findall(r'"chromium_event".*\n((?:\t.*\n)+)', file.read()):
                    events.append(json.loads(block))
            begun = {one["name"]: one["ts"] for one in events if one["ph"] == "B"}
            ended = {one["name"]: one["ts"] for one in events if one["ph"] == "E"}
            intervals = sorted((begun[one], ended[one]) for one in ended)
            covered, until = 0, 0
            for begin, end in intervals:
                covered += max(0, end - max(begin, until))
                until = max(until, end)
            spans[name] = covered / 1e6
            self.assertAlmostEqual(spans[name], stages["warm_up", "compile"], places=2)
            self.assertEqual("trace", next(one["basis"] for one in start["stages"] if one["name"] == "compile"))
        self.assertEqual({"cold": 140.78, "again": 49.11}, {name: round(seconds, 2) for name, seconds in spans.items()})
        self.assertEqual({(None, "before_load"): 91, (None, "load"): 1.75, (None, "init_engine"): 145.25},
                         {key: seconds for key, seconds in found["cold"].items() if key[0] is None})
        # With run.json from the start of the process.
        self.assertEqual({(None, "before_first_line"): 28, (None, "before_load"): 38, (None, "load"): 5.79, (None, "init_engine"): 57.21},
                         {key: seconds for key, seconds in found["again"].items() if key[0] is None})
        text = self.tlparse("history", self.path("again.db")).stdout
        self.assertIn("could not load what an earlier start had compiled: 'function' object has no attribute 'finalize_loading'", text)

    def test_lines_of_a_gpu(self):
        for cache, compiled, note in ((COLD, 32.5, None), (WARM, 2.5, "loaded what an earlier start had compiled")):
            text = GPU.format(cache=cache, compile=compiled)
            start, = self.starts(self.ingest(self.write("serve.txt", text.encode()), name=f"{compiled}.db"))
            stages = self.sums(start)
            self.assertEqual(("Worker_TP0", 30, "EngineCore", "03-01 23:58:00", "03-02 00:00:09", 129),
                             tuple(start[one] for one in ("worker", "worker_pid", "engine", "began", "ended", "seconds")))
            self.assertEqual({"before_load": 40, "load": 11, "init_engine": 75, "listen": 3}, {key[1]: value for key, value in stages.items() if key[0] is None})
            self.assertEqual({("load", "load_model"): 10.5, ("load", "not_attributed"): 0.5, ("load_model", "load_weights"): 8.25, ("load_model", "not_attributed"): 2.25,
                              ("init_engine", "compile"): compiled, ("init_engine", "first_run"): 1.5, ("init_engine", "capture"): 20,
                              ("init_engine", "not_attributed"): 75 - compiled - 21.5},
                             {key: value for key, value in stages.items() if key[0] in ("load", "load_model", "init_engine")})
            self.assertEqual([note], [one["note"] for one in start["stages"] if one["name"] == "compile"])
            if cache is COLD:
                self.assertEqual([6.25, 22, 4.25], [value for key, value in stages.items() if key[0] == "compile"])

    def test_several_starts_in_one_text(self):
        """A server that was started again, and engines of data parallelism that start together."""
        text = GPU.format(cache=COLD, compile=32.5)
        later = GPU.format(cache=WARM, compile=2.5).replace("03-0", "04-0").replace("pid=", "pid=7")
        served = "(APIServer pid=10) INFO 03-02 11:00:00 [loggers.py:1] Engine 000: Avg prompt throughput\n"
        died = text[:text.index("(Worker_TP0 pid=30) INFO 03-02")]
        for before, began in ((text + served, ["03-01 23:58:00", "04-01 23:58:00"]), (died, ["04-01 23:58:00"])):
            starts = self.starts(self.ingest(self.write("again.txt", (before + later).encode()), name=f"{len(began)}.db"))
            self.assertEqual([(one, 129) for one in began], [(one["began"], one["seconds"]) for one in starts])
        lines = []
        for line in text.splitlines():
            one = re.sub(r"\((EngineCore|Worker)(_TP\d)? pid=(\d+)\)", lambda found: f"({found[1]}_DP0{found[2] or ''} pid={found[3]})", line)
            lines.append(one)
            if one != line:
                other = re.sub(r"_DP0(.*?) pid=", r"_DP1\1 pid=9", one)
                lines.append(re.sub(r"took 32.50 s|took 75.00 s", lambda found: {"took 32.50 s": "took 40.00 s", "took 75.00 s": "took 76.00 s"}[found[0]], other))
        both = self.starts(self.ingest(self.write("dp.txt", ("\n".join(lines) + "\n").encode()), name="dp.db"))
        self.assertEqual([("EngineCore_DP0", "Worker_DP0_TP0", 32.5, 75), ("EngineCore_DP1", "Worker_DP1_TP0", 40, 76)],
                         [(one["engine"], one["worker"], *(next(stage["seconds"] for stage in one["stages"] if stage["name"] == name) for name in ("compile", "init_engine")))
                          for one in both])

    def test_many_starts(self):
        """Of a text the first 1,000 are added up."""
        line = "(EngineCore pid={}) INFO 03-02 00:00:06 [core.py:402] init engine (profile, create kv cache, warmup model) took 75.00 s\n"
        text = "".join(line.format(number) for number in range(20_000))
        starts = self.starts(self.ingest(self.write("many.txt", text.encode())))
        self.assertEqual((1000, 0, 999), (len(starts), starts[0]["engine_pid"], starts[-1]["engine_pid"]))

    def test_what_is_no_start(self):
        """Without the line that ends it nothing is added up; another program's lines are no input."""
        text = GPU.format(cache=COLD, compile=32.5)
        self.assertEqual([], self.starts(self.ingest(self.write("cut.txt", text[:text.index("(EngineCore pid=20) INFO 03-02")].encode()))))
        for line in (b"(Worker pid=1) INFO 03-01 10:00:00 [a.py:1] Hello\n", b"INFO 03-01 10:00:00 [a.py:1] Initializing model took no time\n"):
            self.assertIn("no record of a structured trace and no profile was found", self.tlparse(self.write("other.txt", line), "--db-only", "--db", self.path("other.db"), expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
