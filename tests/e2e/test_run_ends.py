#!/usr/bin/env python3
"""tlparse run: exceptions that end processes, commands that hang; what it recorded is an input like any other."""

import json
import os
import shutil
import sys
import unittest

import harness
from test_run import Running

PYTHON = sys.executable


class Ends(Running):
    def ask(self, command):
        return json.loads(self.tlparse(command, "tl_run", "--json").stdout)

    def findings(self):
        return self.ask("findings")["findings"]

    RANKS = """\
        import os, subprocess, sys, time
        program = '''
        import os, sys, time
        rank = int(os.environ["RANK"])
        def step():
            if rank == 1:
                raise FloatingPointError("not finite")
            time.sleep(0.3)
            raise RuntimeError("Connection closed by peer")
        if rank == 1:  # it ends last
            import atexit
            atexit.register(time.sleep, 1.5)
        step()
        '''
        open("rank.py", "w").write(program)
        ranks = [subprocess.Popen([sys.executable, "rank.py"], env={**os.environ, "RANK": str(rank)}) for rank in range(3)]
        sys.exit(max(rank.wait() for rank in ranks))
        """

    def test_the_exception_that_came_first_is_named(self):
        """Its process ends after those that follow from it."""
        self.run_command("--", PYTHON, self.script("launch.py", self.RANKS), expect=1)
        first = self.findings()[0]
        self.assertEqual((first["kind"], first["ranks"], first["title"]), ("crashed", [1], "Rank 1 raised FloatingPointError: not finite"))
        self.assertEqual(first["place"]["file"].rpartition("/")[2], "rank.py")
        self.assertRegex(first["detail"], r"it ended with exit code 1 1\.\d+ s later \(run.json\)")

    DONE = """\
        import os, subprocess, sys
        program = '''
        import os, sys, time
        if os.environ["RANK"] == "1":
            sys.exit(0)
        time.sleep(1.5)
        try:
            raise RuntimeError("Connection closed by peer")
        except RuntimeError as error:
            raise ValueError("step 8 failed") from error
        '''
        open("rank.py", "w").write(program)
        subprocess.run([sys.executable, "-c", "import time; time.sleep(1)"], env={**os.environ, "RANK": "2"})  # before a restart
        ranks = [subprocess.Popen([sys.executable, "rank.py"], env={**os.environ, "RANK": str(rank)}) for rank in range(3)]
        sys.exit(max(rank.wait() for rank in ranks))
        """

    def test_a_rank_that_was_done_before_the_others(self):
        self.run_command("--", PYTHON, self.script("launch.py", self.DONE), expect=1)
        first = self.findings()[0]
        self.assertEqual((first["kind"], first["severity"], first["ranks"]), ("crashed", "error", [1]))
        self.assertEqual(first["title"], "Rank 1 ended with exit code 0 before ranks 0,2, which lost a connection")
        self.assertRegex(first["evidence"][0]["title"], "^Rank [02] raised ValueError: step 8 failed, from RuntimeError: Connection closed by peer$")
        self.assertEqual([row["table"] for row in first["rows"]], ["profile"])

    ALL = """\
        import os, subprocess, sys
        program = '''
        import atexit, os, time
        rank = int(os.environ["RANK"])
        time.sleep(2 if rank == 2 else 0.1 * rank)
        if rank < 2:  # ended by the launcher, long after their exceptions
            atexit.register(time.sleep, 60)
        raise ValueError(f"expected 10 columns. " + "Look at the loader of the labels. " * 5 + f"Got {rank}.")
        '''
        open("rank.py", "w").write(program)
        ranks = [subprocess.Popen([sys.executable, "rank.py"], env={**os.environ, "RANK": str(rank)}) for rank in range(3)]
        ranks[2].wait()
        for rank in ranks[:2]:
            rank.terminate()
        sys.exit(max(abs(rank.wait()) for rank in ranks))
        """

    def test_an_exception_that_each_rank_raised(self):
        """No rank is named alone, and that the launcher ended the first of them later is no excuse."""
        self.run_command("--", PYTHON, self.script("launch.py", self.ALL), expect=15)
        first = self.findings()[0]
        self.assertEqual((first["kind"], first["severity"], first["ranks"]), ("crashed", "error", []))
        self.assertEqual(first["title"], "Each of the 3 ranks raised ValueError: expected 10 columns." + " Look at the loader of the labels." * 2 + " Look at the loader of the labels")
        self.assertRegex(first["detail"], "^Rank 0 first, at .* was ended by SIGTERM .* The message goes on: Look at the loader of the labels. .* Got 0")

    STOPS = """\
        import os, subprocess, sys, time
        program = '''
        import os, time
        def reduce():
            time.sleep(0.5)
            eval(compile("f()", "/tmp/c" + "d" * 51 + ".py", "eval"), {"f": os.abort})  # as Inductor names generated code
        def wait():
            time.sleep(60)
        def fork():
            if os.fork() == 0:
                os._exit(0)
            time.sleep(60)
        (reduce, wait, fork)[int(os.environ["RANK"])]()
        '''
        open("rank.py", "w").write(program)
        ranks = [subprocess.Popen([sys.executable, "rank.py"], env={**os.environ, "RANK": str(rank)}) for rank in range(3)]
        while open(f"/proc/{ranks[0].pid}/stat").read().split(") ")[1][0] != "Z":
            time.sleep(0.1)
        time.sleep(1.5)
        for rank in ranks[1:]:
            rank.terminate()
        time.sleep(1.5)
        sys.exit(max(abs(rank.wait()) for rank in ranks))
        """

    def test_where_ranks_were_when_a_signal_ended_them(self):
        self.run_command("--", PYTHON, self.script("launch.py", self.STOPS), expect=15)
        first = self.findings()[0]
        self.assertEqual((first["kind"], first["severity"], first["ranks"], first["place"]["line"]), ("crashed", "error", [0], 5))
        self.assertEqual(first["title"], "Rank 0 was ended by SIGABRT at rank.py:5, rank 2 was at rank.py:11, rank 1 was at rank.py:7")
        self.assertIn("rank.py:5 in reduce, which called <module>. Rank 2 was at ", first["detail"])
        self.assertEqual(first["try"], "compare rank.py:11 with rank.py:5: look for a branch that depends on the rank or on data")
        with open(self.path("tl_run", "stacks.txt"), encoding="utf-8") as file:
            stacks = file.read()
        self.assertEqual([stacks.count(text) for text in ("which signal 6 ended:", "which signal 15 ended:", "line 7 in wait")], [1, 2, 1])
        self.assertFalse(os.path.exists(self.path("tl_run", "ends")))

    def test_a_program_handles_the_signal_itself(self):
        program = self.script("own.py", """\
            import os, signal, sys, time
            print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
            """)
        out, _ = self.run_command("--", PYTHON, program, expect=5)
        self.assertEqual(out, b"True\n")

    def test_the_program_of_a_script_that_failed(self):
        """One that the script survived is not named."""
        fine = "import sys, time; time.sleep(1.2); raise KeyError('fine')"
        bad = "import time; time.sleep(1.2); open('/no/such/file')"
        kill = "import os, time; time.sleep(1.2); os.kill(os.getpid(), 9)"
        for name, last, code, title in (("raised", bad, 1, r"raised FileNotFoundError: \[Errno 2\] No such file or directory: '/no/such/file'$"),
                                        ("killed", kill, 137, "was ended by SIGKILL$"), ("fine", "pass", 0, None), ("own", "pass", 3, None)):
            script = f'"$0" -c "$1"; "$0" -c "$2"; code=$?; sleep 0.5; exit {3 if name == "own" else "$code"}'
            self.run_command("-o", name, "--", "sh", "-c", script, PYTHON, fine, last, expect=code)
            first = json.loads(self.tlparse("findings", name, "--json").stdout)["findings"]
            if title:
                self.assertRegex(first[0]["title"], f"^'{PYTHON} -c import .*' \\(pid \\d+\\) {title}")
            else:
                self.assertEqual([one["title"] for one in first], ["The command ended with exit code 3"] if code else [])

    # What Dynamo writes of a compile that fails, or that does not end.
    TRACED = """\
        import datetime, json, os, subprocess, sys, time
        def write(envelope):
            with open(os.environ["TORCH_TRACE"] + f"/dedicated_log_torch_trace_{os.getpid()}.log", "a") as file:
                file.write(f"V{datetime.datetime.now(datetime.timezone.utc):%m%d %H:%M:%S.%f} {os.getpid()} a.py:1] {json.dumps(envelope)}\\n")
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        write({"dynamo_start": {"stack": []}, **ids})
"""

    def test_a_compile_that_failed_and_was_survived(self):
        shown = "import code; code.InteractiveInterpreter().runcode(compile({!r}, 'cell', 'exec'))"  # the last exception that it shows, and it goes on
        for name, code, severity, last in (("a", 0, "note", ""), ("b", 1, "error", ""), ("other", 0, "note", shown.format("losss")), ("it", 0, "error", shown.format("raise ValueError('bad')"))):
            program = self.script(f"{name}.py", self.TRACED + f"""\
        write({{"compilation_metrics": {{"co_name": "f", "co_filename": "/u/m.py", "fail_type": "ValueError", "fail_reason": "bad"}}, **ids}})
        time.sleep(0.5)
        {last}
        sys.exit({code})
""")
            self.run_command("-o", name, "--", PYTHON, program, expect=code, environment={"TZ": "UTC"})
            first = json.loads(self.tlparse("findings", name, "--json").stdout)["findings"][0]
            self.assertEqual((first["kind"], first["severity"]), ("compile_failed", severity))
            self.assertEqual("Its process ended with exit code 0 all the same (run.json)." in (first["detail"] or ""), severity == "note")

    def test_a_process_that_was_asked_to_end_inside_a_compile(self):
        program = self.script("part.py", self.TRACED + "        time.sleep(60)\n")
        launch = self.script("launch.py", """\
            import subprocess, sys, time
            part = subprocess.Popen([sys.executable, "part.py"])
            time.sleep(1.5)
            part.terminate()
            time.sleep(1.5)
            part.wait()
            raise ValueError("another part failed")
            """)
        self.run_command("--", PYTHON, launch, expect=1, environment={"TZ": "UTC"})
        self.assertTrue(program)
        first = self.findings()[0]
        self.assertEqual(first["title"], "The command raised ValueError: another part failed")
        stopped, = [one for one in self.findings() + first["evidence"] if one["kind"] == "stopped_first"]
        self.assertEqual(stopped["severity"], "note")
        self.assertIn("By run.json the process ended there with SIGTERM.", stopped["detail"])
        self.assertRegex(self.tlparse("history", "tl_run").stdout, r"unfinished.* SIGTERM ended its process")

    def test_an_earlier_launch_whose_failure_is_in_no_log(self):
        """Its logs end as those of the launch that did well."""
        self.script("rank.py", self.TRACED + """\
        write({"compilation_metrics": {"co_name": "f", "co_filename": "/u/m.py", "has_guarded_code": True}, **ids, "rank": int(os.environ["RANK"])})
        time.sleep(1)
        if os.environ["RANK"] == "1" and os.environ["AGAIN"] == "0":
            raise ConnectionError("storage went away")
        """)
        launch = self.script("launch.py", """\
            import os, subprocess, sys, time
            for again in range(2):
                ranks = [subprocess.Popen([sys.executable, "rank.py"], env={**os.environ, "RANK": str(rank), "AGAIN": str(again)}) for rank in range(2)]
                time.sleep(2.5)
                codes = [rank.wait() for rank in ranks]
            sys.exit(max(codes))
            """)
        self.run_command("--", PYTHON, launch, environment={"TZ": "UTC"})
        note, = [one for one in self.findings() if one["kind"] == "restarted"]
        self.assertEqual((note["severity"], note["ranks"], note["launch"]), ("note", [1], 1))
        self.assertRegex(note["title"], r"^Launch 1 of 2 \(.* UTC\) ended with a failure: Rank 1 raised ConnectionError: storage went away$")

    def test_a_later_start_that_fails_before_it_has_a_log(self):
        self.script("rank.py", self.TRACED.replace("        ids =", """\
        if os.environ["RANK"] == "1" and os.environ["AGAIN"] == "1":
            raise FileNotFoundError("step_6.pt")
        time.sleep(int(os.environ["AGAIN"]))
        ids =""", 1) + """\
        write({"compilation_metrics": {"co_name": "f", "co_filename": "/u/m.py", "has_guarded_code": True}, **ids, "rank": int(os.environ["RANK"])})
        time.sleep(1)
        if os.environ["RANK"] == "0":
            raise ConnectionError("storage went away")
        """)
        launch = self.script("launch.py", """\
            import os, subprocess, sys, time
            for again in range(2):
                ranks = [subprocess.Popen([sys.executable, "rank.py"], env={**os.environ, "RANK": str(rank), "AGAIN": str(again)}) for rank in range(2)]
                ranks[1].wait()
                ranks[0].terminate() if again else ranks[0].wait()
                time.sleep(0.5)
            sys.exit(1)
            """)
        self.run_command("--", PYTHON, launch, expect=1, environment={"TZ": "UTC"})
        first = self.findings()[0]
        self.assertEqual((first["severity"], first["ranks"], first["title"]), ("error", [1], "Rank 1 raised FileNotFoundError: step_6.pt"))
        self.assertTrue(first["detail"].startswith("The job had been started again, without a log since. At "))
        self.assertEqual(first["evidence"][0]["title"], "Rank 0 raised ConnectionError: storage went away")
        # Whom it could not reach when it was started again is no cause.
        with open(self.path("rank.py"), encoding="utf-8") as file:
            text = file.read().replace('FileNotFoundError("step_6.pt")', 'RuntimeError("Gloo connectFullMesh failed with pair.cc: Connection refused")')
        self.write("rank.py", text.encode())
        self.run_command("-o", "mesh", "--", PYTHON, launch, expect=1, environment={"TZ": "UTC"})
        first = json.loads(self.tlparse("findings", "mesh", "--json").stdout)["findings"][0]
        self.assertEqual((first["severity"], first["ranks"], first["title"]), ("error", [0], "Rank 0 raised ConnectionError: storage went away"))
        self.assertTrue(first["evidence"][-1]["title"].startswith("Rank 1 raised RuntimeError: Gloo connectFullMesh failed"), first["evidence"])

    LATE = """\
        import os, subprocess, sys
        program = '''
        import os, time
        rank = int(os.environ["RANK"])
        time.sleep(0.5 if rank else 2.5)
        raise RuntimeError("Timed out waiting 3000ms for recv operation to complete" if rank else "Connection closed by peer")
        '''
        open("rank.py", "w").write(program)
        ranks = [subprocess.Popen([sys.executable, "rank.py"], env={**os.environ, "RANK": str(rank)}) for rank in range(3)]
        sys.exit(max(rank.wait() for rank in ranks))
        """

    def test_a_rank_that_came_when_the_others_had_given_up(self):
        self.run_command("--", PYTHON, self.script("launch.py", self.LATE), expect=1)
        first = self.findings()[0]
        self.assertEqual((first["kind"], first["severity"], first["ranks"]), ("crashed", "error", [0]))
        self.assertRegex(first["title"], r"^Rank 0 came to rank.py:5 at least [12]\.\d+ s after ranks 1,2, which had given up waiting$")
        self.assertRegex(first["detail"], r"^Ranks 1,2 waited for 3\.00 s there, until .*; rank 0 found them gone [12]\.\d+ s later, and had not waited as long")

    def test_an_exception_of_a_program_and_its_own_hook(self):
        """The program's own hook prints what it wants, and calls the one before it."""
        program = self.script("own.py", """\
            import sys
            before = sys.excepthook
            def show(kind, error, trace):
                print("own", kind.__name__)
                before(kind, error, trace)
            sys.excepthook = show
            try:
                raise ValueError("caught")
            except ValueError:
                pass
            raise KeyError("x\\ty")
            """)
        out, errors = self.run_command("--", PYTHON, program, expect=1)
        self.assertEqual(out, b"own KeyError\n")
        self.assertEqual(errors.count("Traceback"), 1)
        self.assertEqual([one["title"] for one in self.findings()], [r"The command raised KeyError: 'x\ty'"])

    def test_a_program_that_python_cannot_read(self):
        """Python prints no word "Traceback" then."""
        self.run_command("--", PYTHON, self.script("broken.py", "x = 1\nif x:\npass\n"), expect=1)
        first = self.findings()[0]
        self.assertRegex(first["title"], "^The command raised IndentationError: expected an indented block")
        self.assertEqual(first["place"]["line"], 3)

    def test_a_program_that_exits_raises_nothing(self):
        self.run_command("--", PYTHON, "-c", "raise SystemExit(3)", expect=3)
        self.assertEqual([one["title"] for one in self.findings()], ["The command ended with exit code 3"])

    SERVER = """\
        import os, signal, subprocess, sys, time
        ranks = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], env={**os.environ, "RANK": str(rank)}) for rank in range(2)]
        time.sleep(1.5)
        for rank in ranks[:%d]:
            rank.kill()
        print(ranks[1].wait())
        """

    def test_a_program_that_ends_its_workers_when_it_is_done(self):
        self.run_command("--", PYTHON, self.script("server.py", self.SERVER % 2))
        first, = self.findings()
        self.assertEqual((first["severity"], first["ranks"], first["title"]),
                         ("note", [0, 1], "Ranks 0,1 were ended by SIGKILL, and the command then ended with exit code 0"))

    def test_a_program_that_fails_and_then_ends_its_workers(self):
        for how in ("kill", "terminate"):
            program = f"""\
                import os, subprocess, sys, time
                ranks = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], env={{**os.environ, "RANK": str(rank)}}) for rank in range(2)]
                time.sleep(1.5)
                def end():
                    time.sleep(1)
                    for rank in ranks:
                        rank.{how}()
                import atexit
                atexit.register(end)
                raise ValueError("bad request")
                """
            self.run_command("-o", how, "--", PYTHON, self.script(how + ".py", program), expect=1)
            first = json.loads(self.tlparse("findings", how, "--json").stdout)["findings"][0]
            self.assertEqual((first["severity"], first["ranks"], first["title"]), ("error", [], "The command raised ValueError: bad request"))

    def test_a_rank_that_is_killed_while_another_goes_on(self):
        program = self.SERVER.replace("time.sleep(60)", "time.sleep(4)") % 1
        self.run_command("--", PYTHON, self.script("server.py", program))
        first = self.findings()[0]
        self.assertEqual((first["severity"], first["ranks"], first["title"]), ("error", [0], "Rank 0 was ended by SIGKILL"))

    def test_a_hang_is_a_finding_and_in_the_status(self):
        program = self.script("hang.py", """\
            import threading
            def wait():
                threading.Event().wait()
            wait()
            """)
        self.run_command("--on-hang", "kill", "--hang-after", "3", "--", PYTHON, program, expect=128 + 15)
        first = self.findings()[0]
        self.assertEqual((first["kind"], first["severity"], first["place"]["line"]), ("stuck", "error", 3))
        self.assertIn("tlparse run ended it then", first["detail"])
        hang = self.ask("status")["hangs"][0]
        self.assertEqual((hang["was_ended"], [place["where"].rpartition("/")[2] for place in hang["places"]]),
                         (True, ["hang.py:3 in wait, which called wait"]))

    def test_what_was_recorded_is_an_input(self):
        """Of one host, and of a folder with those of several: only what was recorded is read."""
        for host in ("a", "b"):
            self.run_command("-o", f"hosts/{host}", "--", PYTHON, "-c", "raise ValueError('%s')" % host, expect=1)
        shutil.rmtree(self.path("hosts", "b", "hook"))
        for path, count in (("hosts", 2), ("hosts/a", 1)):
            self.tlparse(path, "-o", "read", "--db-only", "--overwrite")
            database = self.path("read", "trace.db")
            self.assertEqual(harness.rows(database, "SELECT count(*) FROM run_command"), [[count]])
            self.assertEqual(harness.rows(database, "SELECT count(*), count(*) FILTER (WHERE message LIKE '%only its folder recorded is read') FROM import_log"),
                             [[count, count]])

    def test_without_a_compiled_graph_no_numbers_are_recorded(self):
        _, errors = self.run_command("--numbers", "-o", "a", "--", PYTHON, "-c", "pass")
        self.assertIn("no numbers were recorded", errors)
        # What such a hook writes into its log.
        program = self.script("graph.py", """
            import os
            with open(os.environ["TORCH_TRACE"] + "/dedicated_log_torch_trace_1.log", "w") as file:
                file.write('V1121 08:45:41.014000 10 a.py:1] {"artifact": {"name": "libtrace_run_digest", "encoding": "json"}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}\\n'
                           '\\t{"graph": "forward", "call": 0, "parts": [{"kind": "output", "name": "0", "text": "float32[4]", "hash": "a"}]}\\n')
            """)
        _, errors = self.run_command("--numbers", "-o", "b", "--", PYTHON, program)
        self.assertNotIn("no numbers were recorded", errors)


if __name__ == "__main__":
    unittest.main()
