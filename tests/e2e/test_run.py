#!/usr/bin/env python3
"""tlparse run: starts a command with everything recorded. Its exit code, signals, input and output are the command's."""

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import unittest

import jsonschema

import harness

PYTHON = sys.executable


class Running(harness.EndToEnd):
    def script(self, name, text):
        return self.write(name, textwrap.dedent(text).encode())

    def start(self, *arguments, environment=None, **options):
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "RANK", "PYTHONPATH"))}
        process = subprocess.Popen([harness.TLPARSE, "run", *arguments], cwd=self.folder, env={**variables, **(environment or {})}, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options})
        self.addCleanup(harness.end_command, process, self.folder)
        return process

    def run_command(self, *arguments, expect=0, stdin=b"", environment=None):
        process = self.start(*arguments, environment=environment, stdin=subprocess.PIPE)
        out, errors = process.communicate(stdin, timeout=120)
        self.assertEqual(process.returncode, expect, errors.decode("utf-8", "replace"))
        return out, errors.decode("utf-8", "replace")

    def run_file(self, output="tl_run"):
        with open(self.path(output, "recorded", "run.json"), encoding="utf-8") as file:
            return json.load(file)


class Command(Running):
    def test_exit_code_and_signal_are_the_commands(self):
        self.run_command("-o", "a", "--", "sh", "-c", "exit 7", expect=7)
        self.assertEqual(self.run_file("a")["exit_code"], 7)
        self.run_command("-o", "b", "--", "sh", "-c", "kill -KILL $$", expect=137)
        first = self.run_file("b")["processes"][0]
        self.assertEqual([first["exit_code"], first["signal"]], [None, 9])
        _, errors = self.run_command("-o", "c", "--", "no-such-program", expect=127)
        self.assertIn("cannot execute 'no-such-program'", errors)

    def test_input_and_output_are_untouched(self):
        out, errors = self.run_command("-q", "--", "sh", "-c", "cat; echo seen >&2", stdin=b"\x00bytes\xff")
        self.assertEqual([out, errors], [b"\x00bytes\xff", "seen\n"])
        out, errors = self.run_command("--", "sh", "-c", "echo out")
        self.assertEqual(out, b"out\n")
        self.assertIn("recording into tl_run_2", errors)  # tl_run was taken

    def test_signals_reach_the_command(self):
        program = self.script("trap.py", """
            import signal, sys, time
            def end(number, frame):
                sys.exit(40 + number)
            signal.signal(signal.SIGTERM, end)
            signal.signal(signal.SIGUSR1, end)
            print("ready", flush=True)
            time.sleep(60)
            """)
        for number in (signal.SIGTERM, signal.SIGUSR1):
            process = self.start("--", PYTHON, program)
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 40 + number, errors)

    def test_no_command_is_one_line_of_complaint(self):
        self.assert_one_line_of_complaint(self.tlparse("run", "sh", expect=2))
        self.assert_one_line_of_complaint(self.tlparse("run", "--", expect=2))


class Environment(Running):
    SHOW = "import os; print({n: v for n, v in os.environ.items() if n.startswith('TORCH')})"

    def test_everything_is_recorded(self):
        out, _ = self.run_command("--", PYTHON, "-c", self.SHOW)
        recorded = os.path.realpath(self.path("tl_run", "recorded"))
        variables = eval(out)  # pylint: disable=eval-used
        self.assertEqual(variables["TORCH_TRACE"], recorded)
        self.assertEqual(variables["TORCH_FR_BUFFER_SIZE"], variables["TORCH_NCCL_TRACE_BUFFER_SIZE"])
        self.assertTrue(variables["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"].startswith(recorded))

    def test_settings_of_the_user_win_and_are_said(self):
        os.mkdir(self.path("mine"))
        program = f"import shutil, os; shutil.copy({harness.bundled('diverge_config_2_6')!r}, os.environ['TORCH_TRACE']); {self.SHOW}"
        out, errors = self.run_command("--", PYTHON, "-c", program,
                                       environment={"TORCH_TRACE": self.path("mine"), "TORCH_NCCL_TRACE_BUFFER_SIZE": "5"})
        variables = eval(out)  # pylint: disable=eval-used
        self.assertEqual([variables["TORCH_NCCL_TRACE_BUFFER_SIZE"], "TORCH_FR_BUFFER_SIZE" in variables], ["5", False])
        self.assertIn(f"TORCH_TRACE={self.path('mine')} was set before and stays", errors)
        self.assertEqual(harness.rows(self.path("tl_run", "trace.db"), "SELECT count(*) > 0 FROM log_file"), [[1]])

    def test_a_sitecustomize_of_the_user_is_loaded(self):
        self.script("own/sitecustomize.py", "import sys; sys.own = __file__\n")
        show = "import sys, sitecustomize; print(sys.own, sitecustomize.__file__, [p for p in sys.path if p.endswith('hook')])"
        out, _ = self.run_command("--", PYTHON, "-c", show, environment={"PYTHONPATH": self.path("own")})
        own = self.path("own", "sitecustomize.py")
        self.assertEqual(out.decode(), f"{own} {own} []\n")

    def test_secrets_are_not_kept(self):
        self.run_command("--", "true", environment={"TORCH_HUB_TOKEN": "abc", "RANK": "3", "HOME_PAGE": "x"})
        kept = self.run_file()["environment"]
        self.assertEqual([kept["RANK"], "TORCH_HUB_TOKEN" in kept, "HOME_PAGE" in kept], ["3", False, False])


class Ranks(Running):
    """The ranks say nothing else than who they are, and end at once: most have ended when the program looks at processes."""

    LAUNCHER = """
        import os, subprocess, sys, time
        ends = ["pass", "import os; os.kill(os.getpid(), 9)", "raise SystemExit(5)"]
        ranks = [subprocess.Popen([sys.executable, "-c", ends[rank % 3]], env={**os.environ, "RANK": str(rank)}) for rank in range(9)]
        [os.waitid(os.P_PID, rank.pid, os.WEXITED | os.WNOWAIT) for rank in ranks]  # they have ended
        time.sleep(float(sys.argv[1]))  # as torchrun, it looks from time to time
        [rank.wait() for rank in ranks]
        """

    def test_ends_of_ranks_are_known(self):
        self.run_command("--", PYTHON, self.script("launch.py", self.LAUNCHER), "2")
        ends = {process["rank"]: [process["exit_code"], process["signal"]] for process in self.run_file()["processes"]}
        self.assertEqual(ends, {None: [0, None], **{rank: [[0, None], [None, 9], [5, None]][rank % 3] for rank in range(9)}})

    def test_ranks_are_known_whose_ends_are_not(self):
        self.run_command("--", PYTHON, self.script("launch.py", self.LAUNCHER), "0")
        processes = self.run_file()["processes"]
        self.assertEqual([process["rank"] for process in processes[1:]], list(range(9)))
        self.assertTrue(all(process["command"].startswith(PYTHON) and process["ended_us"] for process in processes))

    def test_the_rank_is_that_of_the_process_group(self):
        """mp.spawn starts ranks in the environment of their parent, and a shell that starts one has its RANK."""
        self.script("torch/__init__.py", "")
        self.script("torch/distributed/__init__.py", "")
        self.script("torch/distributed/distributed_c10d.py", """
            import os
            def init_process_group(rank=None):
                global own
                own = int(os.environ["RANK"]) if rank is None else rank
            def get_rank():
                return own
            def get_backend():
                return "nccl"
            """)
        program = self.script("spawn.py", """
            import os, sys
            import torch.distributed.distributed_c10d as c10d
            children = []
            for rank in range(2):
                children.append(os.fork())
                if children[-1] == 0:
                    c10d.init_process_group(rank)
                    os._exit(rank)
            [os.waitpid(child, 0) for child in children]
            """)
        variables = {"PYTHONPATH": self.folder}
        self.run_command("-o", "a", "--", PYTHON, program, environment=variables)
        self.assertEqual([process["rank"] for process in self.run_file("a")["processes"]], [None, 0, 1])
        one = "import torch.distributed.distributed_c10d as c; c.init_process_group()"
        self.run_command("-o", "b", "--", "sh", "-c", f"{PYTHON} -c '{one}'; exit 0", environment={**variables, "RANK": "3"})
        self.assertEqual([process["rank"] for process in self.run_file("b")["processes"]], [None, 3])

    def test_children_of_a_rank_are_no_rank(self):
        program = "import subprocess, sys, time; subprocess.run(['sh', '-c', 'sleep 1.2; exit 3']); time.sleep(0.2)"
        self.run_command("--", PYTHON, "-c", program, environment={"RANK": "4"})
        processes = self.run_file()["processes"]
        self.assertEqual([processes[0]["rank"], processes[1]["rank"], processes[1]["exit_code"]], [4, None, 3])
        self.assertEqual(processes[1]["parent_pid"], processes[0]["pid"])


class Hang(Running):
    WAIT = """\
        import threading
        def wait():
            threading.Event().wait()
        wait()
        """

    def test_a_hang_gives_stacks_and_is_ended(self):
        program = self.script("hang.py", self.WAIT)
        began = time.monotonic()
        _, errors = self.run_command("--on-hang", "kill", "--hang-after", "3", "--", PYTHON, program, expect=128 + signal.SIGTERM)
        self.assertLess(time.monotonic() - began, 60)
        self.assertIn("no process of the command has used the CPU for", errors)
        self.assertIn(f" is at {program}:3 in wait, which called wait\n", errors)
        with open(self.path("tl_run", "stacks.txt"), encoding="utf-8") as file:
            self.assertIn(f'File "{program}", line 3 in wait', file.read())
        self.assertEqual(len(self.run_file()["hangs"]), 1)

    def test_threads_that_watch_do_not_hide_a_hang(self):
        """As those of PyTorch and its backends do: five processes use 1 % of a CPU each."""
        program = self.script("watched.py", """\
            import os, threading, time
            for _ in range(4):
                if os.fork() == 0:
                    break
            def watch():
                while True:
                    time.sleep(0.1)
                    until = time.thread_time() + 0.001
                    while time.thread_time() < until:
                        pass
            threading.Thread(target=watch, daemon=True).start()
            threading.Event().wait()
            """)
        _, errors = self.run_command("--on-hang", "kill", "--hang-after", "6", "--", PYTHON, program, expect=128 + signal.SIGTERM)
        self.assertIn("no process of the command has used the CPU for", errors)

    def test_who_cannot_give_stacks_is_left_alone(self):
        _, errors = self.run_command("--hang-after", "2", "--", "sh", "-c", "sleep 12; exit 5", expect=5)
        self.assertIn("not taken: 2 processes without a Python stack", errors)

    @unittest.skipUnless(shutil.which("py-spy"), "py-spy is not installed")
    def test_py_spy_reads_who_has_no_hook(self):
        program = self.script("hang.py", self.WAIT)
        _, errors = self.run_command("--no-hook", "--on-hang", "kill", "--hang-after", "3", "--", PYTHON, program, expect=128 + signal.SIGTERM)
        self.assertIn(f" is at {program}:3 in wait, which called Event.wait\n", errors)
        with open(self.path("tl_run", "stacks.txt"), encoding="utf-8") as file:
            self.assertIn(f"wait ({program}:3)", file.read())
        self.assertEqual(len(self.run_file()["processes"]), 1)  # py-spy is none of the command's


class Hook(Running):
    """With a package of PyTorch's names and none of its work."""

    STEPS = """
        import os, torch.optim.optimizer as o
        print("FR" if "TORCH_NCCL_TRACE_BUFFER_SIZE" not in os.environ else "both")
        one, other = object(), object()
        for step in range(8):
            for hook in o.hooks:
                hook(one, (), {})
                hook(other, (), {})
        raise SystemExit(6)
        """

    def torch(self, version="2.14.1", export="pass"):
        self.script("torch/__init__.py", "")
        self.script("torch/version.py", f"__version__ = '{version}'\n")
        self.script("torch/optim/__init__.py", "")
        self.script("torch/optim/optimizer.py", "hooks = []\nregister_optimizer_step_post_hook = hooks.append\n")
        self.script("torch/profiler.py", f"""
            import enum
            ProfilerAction = enum.Enum("ProfilerAction", "NONE WARMUP RECORD")
            class profile:
                def __init__(self, schedule):
                    self.schedule, self.seen = schedule, []
                def start(self):
                    self.seen.append((self.step_num, self.current_action.name))
                def step(self):
                    self.step_num += 1
                    self.seen.append((self.step_num, self.schedule(self.step_num).name))
                def stop(self):
                    {export}
                def export_chrome_trace(self, path):
                    open(path, "w").write(repr(self.seen))
            """)
        return {"PYTHONPATH": self.folder}

    def profiled(self, output):
        folder = self.path(output, "recorded")
        for name in os.listdir(folder):
            if name.startswith("profile_pid_"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    return file.read()
        return None

    def test_steps_are_profiled(self):
        program, variables = self.script("steps.py", self.STEPS), self.torch()
        out, _ = self.run_command("-o", "a", "--profile", "--", PYTHON, program, environment=variables, expect=6)
        self.assertEqual(out, b"FR\n")  # the old name would be warned of
        self.assertEqual(self.profiled("a"), str([(2, "WARMUP"), (3, "RECORD"), (4, "RECORD"), (5, "RECORD")]))
        self.run_command("-o", "b", "--profile=2-2", "--", PYTHON, program, environment=variables, expect=6)
        self.assertEqual(self.profiled("b"), str([(2, "RECORD")]))
        _, errors = self.run_command("-o", "c", "--profile=9-12", "--", PYTHON, program, environment=variables, expect=6)
        self.assertIn("no profile was written", errors)

    DEMANDED = """
        import signal, sys, time, torch.profiler
        print("ready", flush=True)
        until = time.monotonic() + 120
        while len(torch.profiler.written) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        raise SystemExit(6)
        """

    def test_profiles_on_demand(self):
        variables = self.torch()
        self.script("torch/profiler.py", """
            import time
            written = []
            class profile:
                def start(self):
                    self.began = time.monotonic()
                def stop(self):
                    self.seconds = time.monotonic() - self.began
                def export_chrome_trace(self, path):
                    written.append(open(path, "w").write(repr(self.seconds)))
            """)
        # Of a program that does not listen, such a signal would be the end.
        command = f"{PYTHON} -S -c 'import time; time.sleep(60)' & {PYTHON} {self.script('serve.py', self.DEMANDED)}; code=$?; kill $!; exit $code"
        process = self.start("--profile=on-demand", "--", "sh", "-c", command, environment=variables)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        folder = self.path("tl_run", "recorded")
        for count in (1, 2):
            process.send_signal(signal.SIGPROF)
            while len([name for name in os.listdir(folder) if name.startswith("profile_pid_")]) < count and process.poll() is None:
                time.sleep(0.1)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 6, errors)
        self.assertIn(f"kill -PROF {process.pid} profiles the next 10 s".encode(), errors)
        self.assertEqual(errors.count(b"a profile of 10 s was asked for in 1 process\n"), 2)
        for name in os.listdir(folder):
            if name.startswith("profile_pid_"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    self.assertGreaterEqual(float(file.read()), 10)

    def test_memory_is_recorded_with_cuda(self):
        """The package stands in for PyTorch with CUDA: of the order of its calls alone can this test tell."""
        variables = self.torch()
        self.script("torch/_C.py", "def _cuda_attach_out_of_memory_observer(observer):\n    global out_of_memory\n    out_of_memory = observer\n")
        self.script("torch/cuda/__init__.py", "import torch._C\nfrom torch.cuda import memory\nqueued = []\n_lazy_call = queued.append\n"
                    "def is_initialized():\n    return memory.state == 'on'\ndef max_memory_allocated():\n    return memory.peak\n")
        self.script("torch/cuda/memory.py", """
            state, peak = "off", 0
            def _record_memory_history(stacks, max_entries):
                global state
                state = "on"
            def _dump_snapshot(path):
                open(path, "a").write("%s %d\\n" % (state, peak))
            """)
        program = self.script("cuda.py", """
            import torch.cuda, torch.optim.optimizer as o
            assert torch.cuda.memory.state == "off"  # CUDA is not initialized
            [hook(None, (), {}) for hook in o.hooks]
            [call() for call in torch.cuda.queued]
            for torch.cuda.memory.peak in (1000, 1000, 1040, 1051, *range(2000, 20000, 1000)):
                [hook(None, (), {}) for hook in o.hooks]
            [torch._C.out_of_memory(0, 1, 2, 3) for _ in range(5)]
            raise SystemExit(6)
            """)
        self.run_command("--memory", "--", PYTHON, program, environment=variables, expect=6)
        names = sorted(name.split("_", 3)[3] for name in os.listdir(self.path("tl_run", "recorded")) if name.startswith("memory_pid_"))
        self.assertEqual(names, ["end.pickle", "oom_1.pickle", "oom_2.pickle", "oom_3.pickle", "peak.pickle"])
        with open(glob.glob(self.path("tl_run", "recorded", "memory_pid_*_peak.pickle"))[0], encoding="utf-8") as file:
            peaks = [int(line.split()[1]) for line in file]
        self.assertEqual(peaks, [1000, 1051, *range(2000, 10000, 1000)])

    def test_without_cuda_no_memory_is_recorded(self):
        program = self.script("cuda.py", "import torch.cuda\nraise SystemExit(6)\n")
        self.torch()
        self.script("torch/cuda/__init__.py", "_lazy_call = None\n")
        _, errors = self.run_command("--memory", "--", PYTHON, program, environment={"PYTHONPATH": self.folder}, expect=6)
        self.assertIn("no memory snapshot was written", errors)
        self.assert_one_line_of_complaint(self.tlparse("run", "--memory", "--no-hook", "--", "true", expect=2))

    def test_what_fails_in_the_hook_is_not_noticed(self):
        variables = self.torch("2.8.0", "raise RuntimeError('planted')")
        out, errors = self.run_command("--profile", "--", PYTHON, self.script("steps.py", self.STEPS), environment=variables, expect=6)
        self.assertEqual(out, b"both\n")
        self.assertNotIn("planted", errors)


class Doctor(Running):
    def ask(self, *versions):
        """What it says of a Python that answers with these lines."""
        lines = "".join(f"{line}\\n" for line in versions)
        program = self.script("python.sh", f"#!/bin/sh\nprintf '{lines}'\n")
        os.chmod(program, 0o755)
        document = json.loads(self.tlparse("doctor", "--json", "--python", program, "-o", self.folder).stdout)
        with open(os.path.join(harness.ROOT, "schemas", "json", "answers", "doctor.schema.json"), encoding="utf-8") as file:
            jsonschema.validate(document, json.load(file))
        return {check["name"]: (check["state"], check["detail"]) for check in document["checks"]}

    def test_what_a_version_records(self):
        checks = self.ask("3.14.1", "2.14.1+debian", "", "/etc/python3/sitecustomize.py")
        self.assertEqual([checks[name][0] for name in ("structured trace", "flight recorder")], ["yes", "yes"])
        self.assertIn("collectives of gloo", checks["flight recorder"][1])
        self.assertIn("/etc/python3/sitecustomize.py is loaded after it", checks["Python stacks"][1])
        checks = self.ask("3.10.2", "2.6.0", "", "")
        self.assertEqual(checks["flight recorder"][0], "no")
        self.assertIn("2.8 and newer record those of gloo", checks["flight recorder"][1])
        self.assertEqual(self.ask("3.8.1", "2.1.0", "12.1", "")["structured trace"], ("no", "PyTorch 2.1.0 does not write it; 2.3 and newer do"))

    def test_what_is_missing(self):
        done = self.tlparse("doctor", "--python", "no-such-python", "-o", "nowhere")
        self.assertIn("Python: no; 'no-such-python' cannot be run", done.stdout)
        self.assertIn("output directory: no; 'nowhere' cannot be written", " ".join(done.stdout.split()))


if __name__ == "__main__":
    unittest.main()
