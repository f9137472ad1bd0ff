#!/usr/bin/env python3
"""tlparse run: which rank waits for which in a hang; what C++ printed before it aborted a rank."""

import glob
import json
import os
import signal
import subprocess
import sys
import time
import unittest

from test_run import Running

PYTHON = sys.executable


class Waits(Running):
    def findings(self):
        return json.loads(self.tlparse("findings", "tl_run", "--json").stdout)["findings"]

    ABORTS = """\
        import ctypes, os, signal, subprocess, sys
        program = '''
        import ctypes, glob, os, time
        cxx, c = ctypes.CDLL("libstdc++.so.6"), ctypes.CDLL(None)
        c.malloc.restype, c.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        throws = cxx._ZSt20__throw_out_of_rangePKc
        kind = os.environ["KIND"]
        if os.environ["RANK"] == "1":
            while [time.sleep(0.5)] and len(glob.glob(f"at_work.{os.getppid()}.*")) < 2: pass
            if kind == "thread":
                [c.pthread_create(ctypes.byref(ctypes.c_ulong()), None, throws, b"index 12 of 8"), time.sleep(60)]
            [c.free(p) for p in [c.malloc(1000)] * 2] if kind == "free" else throws(b"index 12 of 8")
        time.sleep(60 if open(f"at_work.{os.getppid()}.{os.environ['RANK']}", "w") else 0)
        '''
        open("rank.py", "w").write(program)
        errors = [open(f"rank_{rank}.txt", "ab") if "files" in sys.argv else None for rank in range(3)]
        if "unseen" in sys.argv:
            os.kill(os.getppid(), signal.SIGSTOP)
        ranks = [subprocess.Popen([sys.executable, "rank.py"], stderr=errors[rank], env={**os.environ, "RANK": str(rank), "KIND": sys.argv[1]}) for rank in range(3)]
        ranks[1].wait()
        for rank in (ranks[0], ranks[2]):
            rank.terminate()
        codes = [abs(rank.wait()) for rank in ranks]
        os.kill(os.getppid(), signal.SIGCONT)
        sys.exit(max(codes))
        """

    def test_what_an_abort_printed(self):
        """A line is its cause only if its thread was there. A pipe is not read."""
        launch = self.script("launch.py", self.ABORTS)
        thrown = "std::out_of_range: index 12 of 8"
        for kind, is_file, title, line in (("main", True, " at rank.py:11: " + thrown, 11), ("thread", True, ": " + thrown, None),
                                           ("free", True, " at rank.py:11: free(): double free detected in tcache 2", 11), ("thread", False, " while its main thread was at rank.py:10, ranks 0,2 were at rank.py:12", None)):
            with self.subTest(kind=kind, is_file=is_file):
                name = kind + str(is_file)
                with open(self.path("errors.txt"), "w+b") as errors:
                    errors.write(b"terminate called after throwing an instance of 'of an earlier job'\n")
                    errors.flush()
                    process = self.start("-o", name, "--", PYTHON, launch, kind, stderr=errors if is_file else subprocess.PIPE)
                    process.communicate(timeout=120)
                self.assertEqual(process.returncode, 15)
                first = json.loads(self.tlparse("findings", name, "--json").stdout)["findings"][0]
                self.assertEqual((first["severity"], first["ranks"]), ("error", [1]))
                self.assertEqual(first["title"], f"Rank 1 was ended by SIGABRT{title}")
                self.assertEqual(first["place"] and first["place"]["line"], line)
                if kind == "thread":
                    self.assertIn("came in a thread that runs no Python code; the main thread was at ", first["detail"])

    def test_what_an_abort_printed_to_a_file_of_the_rank(self):
        """As torchrun --redirects makes them; what is in it from before is of another job."""
        launch = self.script("launch.py", self.ABORTS)
        for rank in range(3):
            self.write(f"rank_{rank}.txt", b"terminate called after throwing an instance of 'of an earlier job'\n")
        self.run_command("--", PYTHON, launch, "main", "files", expect=15)
        first = self.findings()[0]
        self.assertEqual((first["ranks"], first["title"]), ([1], "Rank 1 was ended by SIGABRT at rank.py:11: std::out_of_range: index 12 of 8"))
        self.assertEqual([one["rank"] for one in self.run_file()["printed_aborts"]], [1])

    def test_ranks_that_were_not_seen_alive(self):
        """Their parent has waited for them: what they wrote says which signals ended them."""
        self.run_command("--", PYTHON, self.script("launch.py", self.ABORTS), "main", "unseen", expect=15)
        self.assertEqual([(one["rank"], one["signal"], one["exit_code"]) for one in self.run_file()["processes"]],
                         [(None, None, 15), (0, 15, None), (1, 6, None), (2, 15, None)])
        self.assertEqual(self.findings()[0]["title"], "Rank 1 was ended by SIGABRT at rank.py:11")

    def test_what_an_abort_of_a_child_printed(self):
        program = self.script("pool.py", """\
            import ctypes, multiprocessing, time
            def simulate(pipe):
                time.sleep(0.5)
                ctypes.CDLL("libstdc++.so.6")._ZSt20__throw_out_of_rangePKc(b"index 12 of 8")
            context = multiprocessing.get_context("fork")
            mine, other = context.Pipe()
            context.Process(target=simulate, args=(other,), daemon=True).start()
            other.close()
            mine.recv()
            """)
        with open(self.path("errors.txt"), "wb") as errors:
            process = self.start("--", PYTHON, program, stderr=errors)
            process.communicate(timeout=120)
        first = self.findings()[0]
        self.assertRegex(first["title"], r"^A child \(pid \d+\) of the command was ended by SIGABRT at pool.py:4: std::out_of_range: index 12 of 8$")
        self.assertEqual(first["place"]["line"], 4)

    # What the hook asks of torch.distributed.
    GROUP = """\
        import os, threading
        def init_process_group():
            pass
        def get_rank():
            return int(os.environ["RANK"])
        def get_backend():
            return "gloo"
        def get_global_rank(group, rank):
            return group[rank]
        def wait():
            threading.Event().wait()
        def send(tensor, dst=None, group=None, tag=0, group_dst=None):
            wait()
        def recv(tensor, src=None, group=None, tag=0, group_src=None):
            wait()
        """
    PIPE = """\
        import os, sys, threading
        import torch.distributed.distributed_c10d as c10d
        def stage(rank):
            os.environ["RANK"] = str(rank)
            c10d.init_process_group()
            if sys.argv[1] == "leaves" and rank == 2:
                os._exit(0)
            if sys.argv[1] == "late" and rank == 2:
                threading.Event().wait()
            tag = (3 + rank) * (sys.argv[1] == "tags"); c10d.recv(0, src=1) if rank == 0 else c10d.send(0, group=[7, 8, 2], tag=tag, group_dst=2) if rank == 1 else c10d.recv(0, 1 - rank % 2, tag=tag)
        ranks = []
        for rank in range(3):
            ranks.append(os.fork())
            if ranks[-1] == 0:
                stage(rank)
        [os.waitpid(rank, 0) for rank in ranks]
        """

    ENDS = """\
        import os, sys, time
        import torch.distributed.distributed_c10d as c10d
        for world in (3, 2):
            ranks = []
            for rank in range(world):
                ranks.append(os.fork())
                if ranks[-1] == 0:
                    os.environ["RANK"] = str(rank)
                    c10d.init_process_group()
                    del os.environ["RANK"]  # as after destroy_process_group
                    time.sleep(3)
                    sys.exit(rank if sys.argv[1] == "fails" and world == 2 else 0)
            code = max(os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1]) for rank in ranks)
        sys.exit(code)
        """

    def test_who_kept_the_others_waiting_in_a_job_that_ends_well(self):
        """The recorders of its ranks say so: their dumps are taken when they end. Of two programs those of the last."""
        for name in ("torch/__init__.py", "torch/_C/__init__.py", "torch/distributed/__init__.py"):
            self.write("site-packages/" + name, b"")
        self.script("site-packages/torch/_C/_distributed_c10d.py", "import os\ndef _dump_fr_trace():\n    return b'%d' % os.getpid()\n")
        self.script("site-packages/torch/distributed/distributed_c10d.py", self.GROUP)
        program = self.script("ends.py", self.ENDS)
        for how, code, count in (("ends", 0, 2), ("fails", 1, 0)):
            self.run_command("-o", how, "--", PYTHON, program, how, expect=code, environment={"PYTHONPATH": self.path("site-packages")})
            dumps = sorted(glob.glob(self.path(how, "recorded", "comm_lib_trace_rank_*")))
            self.assertEqual(len(dumps), count, how)
            pids = [one["pid"] for one in self.run_file(how)["processes"] if one["rank"] is not None]
            self.assertEqual(len(pids), 5)
            for path, pid in zip(dumps, pids[3:]):
                with open(path, encoding="ascii") as file:
                    self.assertEqual(int(file.read()), pid)

    def test_who_was_missing_where_all_ranks_waited_in_vain(self):
        """Their exceptions do not say; the recorders do, also that of one which an abort of the other left alone. Where one raised something of its own,
        that is the cause."""
        for name in ("torch/__init__.py", "torch/_C/__init__.py", "torch/distributed/__init__.py"):
            self.write("site-packages/" + name, b"")
        self.script("site-packages/torch/_C/_distributed_c10d.py", "import os\ndef _dump_fr_trace():\n    return b'%d' % os.getpid()\n")
        self.script("site-packages/torch/distributed/distributed_c10d.py", self.GROUP)
        self.script("rank.py", """\
            import atexit, os, signal, sys, time
            import torch.distributed.distributed_c10d as c10d
            c10d.init_process_group()
            texts = ["Connection closed by peer [127.0.0.1]:9" if os.environ["RANK"] == "1" or sys.argv[1] == "aborts" else
                     "Timed out waiting 75000ms for recv operation to complete", "not finite"]
            time.sleep(2)
            if os.environ["RANK"] == "1" and sys.argv[1] == "aborts":
                print("terminate called after throwing an instance of 'gloo::EnforceNotMet'\\n  what():  op.preamble.length <= op.nbytes. 44 vs 32", file=sys.stderr, flush=True)
                os.abort()
            if os.environ["RANK"] == "1":
                atexit.register(os.kill, os.getpid(), signal.SIGKILL)  # its launcher ends it before the hook's end
            raise RuntimeError(texts[sys.argv[1] == "own" and os.environ["RANK"] == "1"])
            """)
        program = self.script("launch.py", """\
            import os, subprocess, sys
            ranks = [subprocess.Popen([sys.executable, "rank.py", sys.argv[1]], env={**os.environ, "RANK": str(rank)}, stderr=open("errors", "ab")) for rank in range(2)]
            sys.exit(max(abs(rank.wait()) for rank in ranks) and 1)
            """)
        for how, count in (("waited", 2), ("aborts", 1), ("own", 0)):
            self.run_command("-o", how, "--", PYTHON, program, how, expect=1, environment={"PYTHONPATH": self.path("site-packages")})
            self.assertEqual(len(glob.glob(self.path(how, "recorded", "comm_lib_trace_rank_*"))), count, how)

    def test_who_waits_for_whom(self):
        for name in ("__init__", "distributed/__init__", "_C/__init__"):
            self.script(f"site-packages/torch/{name}.py", "")
        self.script("site-packages/torch/_C/_distributed_c10d.py", "def _dump_fr_trace():\n    return b''\n")
        self.script("site-packages/torch/distributed/distributed_c10d.py", self.GROUP)
        program = self.script("pipe.py", self.PIPE)
        for fault, ranks, title in (("ring", [1, 2], "Ranks 1,2 wait for each other: rank 1 in send to rank 2 at pipe.py:10, rank 2 in recv from rank 1 at pipe.py:10"),
                                    ("tags", [1, 2], "Ranks 1,2 wait for each other: rank 1 in send to rank 2 with tag 4 at pipe.py:10, rank 2 in recv from rank 1 with tag 5 at pipe.py:10: "
                                     "their tags differ"),
                                    ("leaves", [2], "Rank 2 had ended with exit code 0; rank 1 in send to rank 2 at pipe.py:10"),
                                    ("late", [2], "Rank 2 was in wait at pipe.py:9; rank 1 in send to rank 2 at pipe.py:10")):
            with self.subTest(fault):
                self.run_command("-o", fault, "--on-hang", "kill", "--hang-after", "3", "--", PYTHON, program, fault, expect=128 + 15,
                                 environment={"PYTHONPATH": self.path("site-packages")})
                first = json.loads(self.tlparse("findings", fault, "--json").stdout)["findings"][0]
                self.assertEqual((first["kind"], first["severity"], first["ranks"], first["title"]), ("stuck", "error", ranks, title))
                self.assertIn("Rank 0 was in recv from rank 1 at pipe.py:10.", first["detail"])

    def test_a_process_that_answers_late_is_waited_for(self):
        """All write into one file: what comes late would be taken for the next one's."""
        program = self.script("late.py", """\
            import os, signal, threading, time
            number = int(os.environ["TLPARSE_RUN_SIGNAL"])
            def early():
                threading.Event().wait()
            def late():
                signal.pthread_sigmask(signal.SIG_BLOCK, [number])
                while number not in signal.sigpending():
                    time.sleep(0.05)
                time.sleep(1)  # of the five seconds that it has: a busy machine takes the rest
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
                threading.Event().wait()
            for run in (late, early):
                if os.fork() == 0:
                    run()
            os.wait()
            """)
        self.run_command("--on-hang", "kill", "--hang-after", "3", "--", PYTHON, program, expect=128 + 15)
        hang = self.run_file()["hangs"][0]
        self.assertEqual([text.rsplit("/")[-1] for text in hang["taken"] if "late.py" in text],
                         ["late.py:15 in <module>", "late.py:10 in late, which called pthread_sigmask", "late.py:4 in early, which called wait"])
        self.assertFalse([text for text in hang["missing"] if "stack" in text])

    BUSY = """\
        import os, subprocess, sys, time
        if "RANK" not in os.environ:
            ranks = [subprocess.Popen([sys.executable, __file__, *sys.argv[1:]], env={**os.environ, "RANK": str(rank)}) for rank in range(3)]
            try:
                sys.exit(max(rank.wait() for rank in ranks))
            except KeyboardInterrupt:
                [rank.send_signal(2) for rank in ranks]
                [rank.wait() for rank in ranks]
                raise
        def save(n=0):
            while not os.path.exists("end"):
                n = (n * 31 + 7) % 1009
        if os.environ["RANK"] == "1":
            save()
        while not os.path.exists("end"):
            time.sleep(1)
        """

    def test_a_rank_that_alone_uses_the_cpu(self):
        """It may be at work: it is not ended, and nothing is said of it where the command ends by itself."""
        program = self.script("busy.py", self.BUSY)
        for how in ("ends", "is ended"):
            process = self.start("-o", how, "--on-hang", "kill", "--hang-after", "3", "--", PYTHON, program)
            # On a machine with more programs than CPUs another rank may take as long to start: that is said first.
            for end in (b"tlparse: the others wait: rank 1 alone used the CPU for 3 s\n", b"tlparse: not taken: no flight recorder listens\n"):
                self.assertIn(end, iter(process.stderr.readline, b""))
            if how == "ends":
                self.write("end", b"")
            else:
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            os.path.exists(self.path("end")) and os.remove(self.path("end"))
            found = json.loads(self.tlparse("findings", how, "--json").stdout)["findings"]
            if how == "ends":
                self.assertEqual((process.returncode, found), (0, []))
        first, = found
        self.assertRegex(first["title"], r"^Rank 1 was busy (in exists )?at busy.py:1[012] while the others waited, ranks 0,2 at busy.py:16$")
        self.assertEqual((first["kind"], first["severity"], first["ranks"]), ("stuck", "error", [1]))

    COMPILES = """\
        import datetime, hashlib, json, os, signal, subprocess, sys, time
        def write(envelope, payload=None):
            if payload:
                envelope["has_payload"] = hashlib.md5(payload.encode()).hexdigest()
            with open(os.environ["TORCH_TRACE"] + f"/dedicated_log_torch_trace_{os.getpid()}.log", "a") as file:
                file.write(f"V{datetime.datetime.now(datetime.timezone.utc):%m%d %H:%M:%S.%f} {os.getpid()} a.py:1] {json.dumps(envelope)}\\n")
                file.write("\\t" + payload + "\\n" if payload else "")
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        def event(kind):
            write({"chromium_event": {}, **ids}, json.dumps({"name": "compile_file", "ts": time.time_ns() / 1000, "args": {"compile_id": "0/0"}, "ph": kind, "cat": "dynamo_timed", "tid": 0, "pid": 0}))
        write({"dynamo_start": {"stack": []}, **ids})
        [event(kind) for kind in "BEB"]
        if sys.argv[1] == "compiler":
            compiler = subprocess.Popen(["sh", "-c", "while :; do :; done"])
        end = time.monotonic() + 110
        while time.monotonic() < end and not os.path.exists(sys.argv[1]):
            time.sleep(0.2 if sys.argv[1] == "compiler" else 0)
        if sys.argv[1] == "compiler":
            compiler.kill()
        event("E")
        """

    def test_a_compiler_that_is_at_work_is_no_hang(self):
        """However long it takes on a busy machine; a pass that never ends is one."""
        program = self.script("compiles.py", self.COMPILES)
        variables = {"TZ": "UTC"}
        processes = {how: self.start("-o", "of-" + how, "--on-hang", "kill", "--hang-after", "3", "--", PYTHON, program, how, environment=variables)
                     for how in ("compiler", "pass")}
        # The findings are looked for every 15 s: the compiler works on for longer than a hang would, from the warning on.
        self.assertTrue(any(b"has been in compile_file of 0/0" in line for line in iter(processes["compiler"].stderr.readline, b"")))
        time.sleep(8)
        self.write("compiler", b"")
        ends = {how: (process.communicate(timeout=120)[1], process.returncode) for how, process in processes.items()}
        self.assertEqual(ends["compiler"][1], 0, ends["compiler"][0])
        self.assertNotIn(b"seems to hang", ends["compiler"][0])
        self.assertEqual(ends["pass"][1], 128 + signal.SIGTERM, ends["pass"][0])
        self.assertIn(b"tlparse: the command seems to hang: The log's process has been in compile_file of 0/0", ends["pass"][0])

    def test_the_rank_of_a_process_that_joins_by_rpc(self):
        """Its environment names none; what it starts may have one."""
        self.write("torch/__init__.py", b"")
        self.write("torch/distributed/__init__.py", b"")
        self.write("torch/distributed/rpc/__init__.py", b"import types\ndef init_rpc(name, rank):\n    global info\n    info = types.SimpleNamespace(id=rank)\ndef get_worker_info():\n    return info\n")
        program = self.script("rpc.py", """\
            import os, subprocess, sys, time
            for rank in range(2):
                if os.fork() == 0:
                    os.environ["RANK"] = str(rank)
                    import torch.distributed.rpc as rpc
                    rpc.init_rpc(f"worker{rank}", rank=rank)
                    subprocess.run(["sleep", "1"])
                    if rank:
                        raise ArithmeticError("gradient is stale")
                    sys.exit()
            sys.exit(max(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(2)))
            """)
        self.run_command("--", PYTHON, program, expect=1, environment={"PYTHONPATH": self.folder})
        self.assertEqual([(one["ranks"], one["title"]) for one in self.findings()], [([1], "Rank 1 raised ArithmeticError: gradient is stale")])


class Faults(Running):
    def test_who_ends_it_by_sigkill_ends_the_command(self):
        """SIGTERM, as a launcher ends its ranks then. What goes wrong in tlparse itself ends nothing."""
        program = self.script("launcher.py", """
            import os, signal, subprocess, sys
            rank = subprocess.Popen(["sleep", "60"])
            def end(number, frame):
                rank.terminate()
                print("ended", rank.wait(), flush=True)
                sys.exit(3)
            signal.signal(signal.SIGTERM, end)
            print(os.getpid(), flush=True)
            while True:
                signal.pause()
            """)
        process = self.start("-o", "killed", "--", PYTHON, program, stderr=subprocess.DEVNULL)
        process.stdout.readline()
        process.kill()
        self.assertEqual((process.communicate(timeout=60)[0], process.returncode), (b"ended -15\n", -9))
        process = self.start("-o", "failed", "--", PYTHON, program)
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGABRT)
        while process.stderr.readline() not in (b"tlparse: an internal error; the command goes on, unwatched\n", b""):
            pass
        os.kill(pid, signal.SIGTERM)
        out, errors = process.communicate(timeout=60)
        self.assertEqual((out, process.returncode), (b"ended -15\n", 3), errors)


if __name__ == "__main__":
    unittest.main()
