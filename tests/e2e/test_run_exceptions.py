#!/usr/bin/env python3
"""tlparse run: what an exception says that ends a process, and where it was raised."""

import json
import sys
import unittest

import test_run_ends
from test_run import Running

PYTHON = sys.executable


class Exceptions(Running):
    def findings(self):
        return json.loads(self.tlparse("findings", "tl_run", "--json").stdout)["findings"]

    def test_the_exception_that_a_message_quotes(self):
        """As mp.spawn raises one for its processes."""
        program = self.script("spawn.py", """\
            import textwrap
            class ProcessRaisedException(Exception):
                pass
            try:
                exec(compile("\\n\\nraise ZeroDivisionError('std of an empty buffer')", "/u/learn.py", "exec"))
            except ZeroDivisionError:
                import traceback
                text = traceback.format_exc()
            raise ProcessRaisedException("\\n\\n-- Process 0 terminated with the following error:\\n" + text)
            """)
        self.run_command("--", PYTHON, program, expect=1)
        first = self.findings()[0]
        self.assertEqual(first["title"], "The command raised ProcessRaisedException: ZeroDivisionError: std of an empty buffer (in process 0)")
        self.assertEqual(first["place"], {"file": "/u/learn.py", "line": 3, "code": None})

    def test_the_exception_of_a_worker_of_a_loader(self):
        program = self.script("loader.py", """\
            class KeyErrorMessage(str):
                def __repr__(self):
                    return self
            raise KeyError(KeyErrorMessage("Caught KeyError in DataLoader worker process 1.\\nOriginal Traceback (most recent call last):\\n"
                '  File "/v/site-packages/torch/utils/data/_utils/worker.py", line 375, in _worker_loop\\n    data = fetcher.fetch(index)\\n'
                '  File "/u/clips.py", line 14, in __getitem__\\n    return clip["audio"]\\n' + "KeyError: 'audio'\\n"))
            """)
        self.run_command("--", PYTHON, program, expect=1)
        first = self.findings()[0]
        self.assertEqual(first["title"], "The command raised KeyError: 'audio' (in DataLoader worker process 1)")
        self.assertEqual(first["place"], {"file": "/u/clips.py", "line": 14, "code": None})

    def test_an_exception_of_a_worker_that_is_raised_as_another(self):
        """As that of a class that takes several arguments."""
        program = self.script("loader.py", """\
            raise RuntimeError("Caught JSONDecodeError in DataLoader worker process 0.\\nOriginal Traceback (most recent call last):\\n"
                '  File "/u/rows.py", line 13, in __iter__\\n    row = json.loads(line)\\n' + "json.decoder.JSONDecodeError: Expecting value: line 2\\n")
            """)
        self.run_command("--", PYTHON, program, expect=1)
        self.assertEqual(self.findings()[0]["title"], "The command raised JSONDecodeError: Expecting value: line 2 (in DataLoader worker process 0)")

    def test_the_exception_from_which_another_was_raised(self):
        program = self.script("wrap.py", """\
            try:
                {}["val/accuracy"]
            except KeyError as error:
                raise RuntimeError("step 7 failed") from error
            """)
        self.run_command("--", PYTHON, program, expect=1)
        first = self.findings()[0]
        self.assertEqual((first["title"], first["place"]["line"]), ("The command raised RuntimeError: step 7 failed, from KeyError: 'val/accuracy'", 2))

    def test_a_program_with_a_hook_of_its_own(self):
        """It need not call the one that was there; a fork has what was raised in it."""
        program = self.script("own.py", """\
            import os, sys
            def hook(kind, error, trace):
                if sys.argv[1] == "passes on":
                    sys.__excepthook__(kind, error, trace)
                if sys.argv[1] == "leaves":
                    sys.exit(1)
                print("failed", error)
            sys.excepthook = hook
            if os.fork():
                raise ArithmeticError("gradient is stale")
            """)
        for how in ("passes on", "prints", "leaves"):
            self.run_command("-o", how, "--", PYTHON, program, how, expect=1)
            found = json.loads(self.tlparse("findings", how, "--json").stdout)["findings"]
            self.assertEqual([(one["title"], one["place"]["line"]) for one in found], [("The command raised ArithmeticError: gradient is stale", 10)], how)

    def test_a_shell_that_goes_on(self):
        program = self.script("cells.py", """\
            import code
            shell = code.InteractiveInterpreter()
            for cell in ("x = 1", "losss", "x + 1"):
                shell.runcode(compile(cell, "<cell>", "exec"))
            """)
        self.run_command("--", PYTHON, program)
        found, = self.findings()
        self.assertEqual((found["severity"], found["title"]), ("note", "The command went on after NameError: name 'losss' is not defined"))
        self.assertIn("it ended with exit code 0", found["detail"])

    def test_a_signal_that_comes_while_the_exception_is_written(self):
        """As DataLoader's handler raises when a worker was killed: here the clock that the hook reads does so, once."""
        program = self.script("late.py", """\
            import time
            clock = time.time_ns
            def raises():
                time.time_ns = clock
                raise RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed.")
            time.time_ns = raises
            {}["loss"]
            """)
        self.run_command("--", PYTHON, program, expect=1)
        self.assertEqual([("The command raised KeyError: 'loss'", 7)], [(one["title"], one["place"]["line"]) for one in self.findings()])

    def test_where_the_user_interrupted_it(self):
        """It ends as it does without the hook, whose imports would make Python forget why."""
        program = self.script("endless.py", """\
            def solve():
                raise KeyboardInterrupt
            solve()
            """)
        self.run_command("--", PYTHON, program, expect=130)
        found, = self.findings()
        self.assertEqual(("note", "The command was interrupted (KeyboardInterrupt) at endless.py:2"), (found["severity"], found["title"]))

    def test_a_compile_that_fails_in_a_test(self):
        """pytest ends with exit code 0: the test wanted it to fail."""
        program = self.script("tested.py", test_run_ends.Ends.TRACED.replace('{"stack": []}', '{"stack": [{"line": 166, "name": "call", "filename": 0}, {"line": 3, "name": "test_f", "filename": 1}]}').replace(
            "        ids =", """\
        write({"str": ["/v/site-packages/_pytest/python.py", 0]})
        write({"str": ["/u/test_m.py", 1]})
        ids =""") + """\
        write({"compilation_metrics": {"co_name": "f", "co_filename": "/u/m.py", "fail_type": "ValueError", "fail_reason": "bad"}, **ids})
        time.sleep(0.5)
""")
        self.run_command("-o", "tested", "--", PYTHON, program, environment={"TZ": "UTC"})
        finding, = json.loads(self.tlparse("findings", "tested", "--json").stdout)["findings"]
        self.assertEqual(("compile_failed", "note"), (finding["kind"], finding["severity"]))
        self.assertIn("A test called it, and may expect that.", finding["detail"])

    def test_a_trace_that_fails_where_its_process_does(self):
        program = self.script("export.py", test_run_ends.Ends.TRACED.replace("write(envelope)", "write(envelope, payload=None)").replace(
            "{json.dumps(envelope)}\\n", "{json.dumps(envelope)}\\n" + "{chr(9) + payload + chr(10) if payload else str()}") + """\
        import hashlib
        graph = f"# File: {os.path.abspath(__file__)}:10 in forward, code: raise ValueError"
        write({"artifact": {"name": "make_fx_fail_partial", "encoding": "string"}, "has_payload": hashlib.md5(graph.encode()).hexdigest()}, graph)
        raise ValueError("u0 > 3")
""")
        self.run_command("-o", "export", "--", PYTHON, program, expect=1, environment={"TZ": "UTC"})
        found = json.loads(self.tlparse("findings", "export", "--json").stdout)["findings"]
        self.assertEqual([], [one["title"] for one in found if one["title"].startswith("A trace of make_fx failed")], found)
        self.assertTrue(any(one["title"].startswith("The command raised ValueError: u0 > 3") for one in found), found)

    def test_a_message_whose_first_line_only_begins_it(self):
        program = self.script("load.py", """\
            raise RuntimeError("Error(s) in loading state_dict for Net:\\n\\tsize mismatch for 0.weight: [24, 12] and [32, 12]\\n\\tsize mismatch for 0.bias: [24]")
            """)
        self.run_command("--", PYTHON, program, expect=1)
        first = self.findings()[0]
        self.assertEqual(first["title"], "The command raised RuntimeError: Error(s) in loading state_dict for Net: size mismatch for 0.weight: [24, 12] and [32, 12]")
        self.assertTrue(first["detail"].endswith(" The message goes on: size mismatch for 0.bias: [24]"), first["detail"])

    def test_an_index_that_a_kernel_checks(self):
        program = self.script("index.py", """\
            def cpp_fused_embedding_0(x):
                raise RuntimeError("kernel, /tmp/c.main.cpp:23, index out of bounds: 0 <= tmp6 < 64L")
            cpp_fused_embedding_0(64)
            """)
        self.run_command("--", PYTHON, program, expect=1)
        self.assertTrue(self.findings()[0]["detail"].endswith(" The index is of one of the operations of cpp_fused_embedding_0."))

    LEAVES = """\
        import os, sys
        def check():
            {}["rubric"]
        def leave():
            try:
                check()
            except KeyError:
                print("failed")
                sys.exit(int(sys.argv[2]))
        if sys.argv[1] == "handles":
            leave()
        if sys.argv[1] == "says":
            sys.exit("two of 4 workers failed")
        if sys.argv[1] == "raises":
            try:
                check()
            except KeyError:
                raise SystemExit(int(sys.argv[2]))
        if sys.argv[1] == "counts":
            os._exit(6)
        if sys.argv[1] == "goes on":
            try:
                leave()
            except SystemExit:
                os._exit(0)
        """

    def test_where_a_program_leaves(self):
        """What it was handling is why; where the end is another one, it had gone on."""
        program = self.script("leave.py", self.LEAVES)
        for how, code, line, title in (("handles", 5, 3, "The command raised KeyError: 'rubric'"), ("says", 1, 13, "The command raised SystemExit: two of 4 workers failed"),
                                       ("counts", 6, 20, "The command ended with exit code 6 at leave.py:20")):
            with self.subTest(how):
                self.run_command("-o", how, "--", PYTHON, program, how, str(code), expect=code)
                first, = json.loads(self.tlparse("findings", how, "--json").stdout)["findings"]
                self.assertEqual((first["title"], first["place"]), (title, {"file": program, "line": line, "code": None}))
        # Python has no function that sees it, and before 3.12 nothing else does.
        self.run_command("-o", "raises", "--", PYTHON, program, "raises", "7", expect=7)
        first, = json.loads(self.tlparse("findings", "raises", "--json").stdout)["findings"]
        is_seen = sys.version_info >= (3, 12)
        self.assertEqual(first["title"], "The command raised KeyError: 'rubric'" if is_seen else "The command ended with exit code 7")
        self.run_command("--", PYTHON, program, "goes on", "5")
        self.assertEqual(self.findings(), [])

    def test_ranks_that_find_no_store_are_not_the_cause(self):
        """The one that was to host it fails later than they give up."""
        program = self.script("store.py", """\
            import os, subprocess, sys, time
            class DistNetworkError(RuntimeError):
                pass
            if "RANK" not in os.environ:
                ranks = [subprocess.Popen([sys.executable, __file__], env={**os.environ, "RANK": str(rank)}) for rank in range(3)]
                sys.exit(max(rank.wait() for rank in ranks))
            if os.environ["RANK"] == "0":
                while not all(os.path.exists(f"gone{rank}") for rank in (1, 2)):
                    time.sleep(0.1)
                raise OSError("the quota is used up")
            open("gone" + os.environ["RANK"], "w").close()
            raise DistNetworkError("The client socket has timed out after 2000ms while trying to connect to (127.0.0.1, 29500).")
            """)
        self.run_command("--", PYTHON, program, expect=1)
        self.assertEqual([(one["ranks"], one["title"]) for one in self.findings()], [([0], "Rank 0 raised OSError: the quota is used up")])

    GROUP = """\
        import time
        def init_process_group(backend=None, rank=-1):
            time.sleep(60)  # one does not come
        def get_rank():
            return own
        """
    WRAP = """\
        import sys
        def _wrap(function, index):
            try:
                function(index)
            except Exception:
                sys.exit(1)
        """
    SPAWNED = """\
        import multiprocessing, sys, time
        def train(rank, other=0):
            if rank == 2:
                time.sleep(1)
                raise FileNotFoundError("shard 2")
            import torch.distributed.distributed_c10d as c10d
            c10d.init_process_group(rank=rank)
        if __name__ == "__main__":
            context = multiprocessing.get_context(sys.argv[2])
            from torch.multiprocessing.spawn import _wrap
            ranks = [context.Process(target=_wrap, args=(train, rank)) if sys.argv[1] == "caught" else context.Process(target=train, args=(rank, 0)) for rank in range(3)]
            [rank.start() for rank in ranks]
            ranks[2].join()
            [rank.terminate() for rank in ranks]
            raise ChildProcessError("a rank failed")
        """

    def test_the_rank_is_an_argument_of_a_process(self):
        """It ends before it joins the others, which have said theirs; also where its function is that of torch.multiprocessing.spawn."""
        for name in ("__init__", "distributed/__init__", "multiprocessing/__init__"):
            self.script(f"site-packages/torch/{name}.py", "")
        self.script("site-packages/torch/distributed/distributed_c10d.py", self.GROUP)
        self.script("site-packages/torch/multiprocessing/spawn.py", self.WRAP)
        program = self.script("spawned.py", self.SPAWNED)
        for how, start in (("caught", "spawn"), ("raised", "spawn"), ("caught", "fork")):
            with self.subTest(how=how, start=start):
                name = how + start
                self.run_command("-o", name, "--", PYTHON, program, how, start, expect=1, environment={"PYTHONPATH": self.path("site-packages")})
                first = json.loads(self.tlparse("findings", name, "--json").stdout)["findings"][0]
                self.assertEqual((first["ranks"], first["title"], first["place"]["line"]), ([2], "Rank 2 raised FileNotFoundError: shard 2", 5))


if __name__ == "__main__":
    unittest.main()
