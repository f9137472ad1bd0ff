#!/usr/bin/env python3
"""tlparse run: failures that end no rank and not the command: of threads, of children, before a restart; and what waits for them."""

import json
import os
import re
import signal
import sys
import time
import unittest

import test_run_ends
from test_run import Running

PYTHON = sys.executable


class Hidden(Running):
    def findings(self):
        return json.loads(self.tlparse("findings", "tl_run", "--json").stdout)["findings"]

    def hang(self, program, *arguments, after="3"):
        return self.run_command("--on-hang", "kill", "--hang-after", after, "--", PYTHON, program, *arguments, expect=143)

    def test_a_thread_that_died_is_why_the_program_waits(self):
        program = self.script("judge.py", """\
            import queue, threading, time
            answers = queue.Queue()
            def judge():
                time.sleep(0.5)
                answers.put({}["rubric"])
            threading.Thread(target=judge, name="judge\\t1", daemon=True).start()
            answers.get()
            """)
        _, errors = self.hang(program)
        self.assertEqual(errors.count("KeyError: 'rubric'\n"), 1 + errors.count("raised KeyError: 'rubric'\n"))  # Python prints it as ever
        first, = self.findings()
        self.assertEqual((first["kind"], first["severity"], first["title"]), ("crashed", "error", "Thread judge 1 of the command raised KeyError: 'rubric'"))
        self.assertEqual((first["place"]["file"], first["place"]["line"]), (program, 5))
        self.assertRegex(first["detail"], r"Its process went on; \d.* later: The command seemed to hang, pid \d+ in get at judge.py:7\.$")
        self.assertRegex(first["evidence"][0]["detail"], "Why: no process of the command has used the CPU for")

    def test_a_thread_that_died_in_a_program_that_did_well(self):
        program = self.script("fine.py", """\
            import threading
            def log():
                raise ConnectionError("no server")
            for name in ("log", "quiet"):
                thread = threading.Thread(target=log if name == "log" else exit, name=name)
                thread.start()
                thread.join()
            """)
        self.run_command("--", PYTHON, program)
        first, = self.findings()
        self.assertEqual((first["severity"], first["title"]), ("note", "Thread log of the command raised ConnectionError: no server"))

    TASKS = """\
        import asyncio, sys
        async def pump(waiting):
            await asyncio.sleep(0.2)
            raise LookupError("no such tenant")
        async def flaky():
            raise OSError("caught")
        async def main():
            waiting = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(pump(waiting), name=sys.argv[2] if sys.argv[2:] else None)
            await asyncio.gather(flaky(), return_exceptions=True)
            try:
                await asyncio.create_task(flaky())
            except OSError:
                pass
            await {"waits": lambda: waiting, "goes on": lambda: asyncio.sleep(1.5),
                   "gives up": lambda: asyncio.wait_for(waiting, 2), "ends": lambda: task,
                   "asks late": lambda: asyncio.sleep(2)}[sys.argv[1]]()
            if sys.argv[1] == "asks late":
                await task
        asyncio.run(main())
        """

    def test_a_task_that_nobody_awaits_is_why_the_program_waits(self):
        program = self.script("serve.py", self.TASKS)
        self.hang(program, "waits", "pump\t1")
        first, = self.findings()
        self.assertEqual((first["kind"], first["severity"], first["title"]), ("crashed", "error", "Task pump 1 of the command raised LookupError: no such tenant"))
        self.assertEqual((first["place"]["file"], first["place"]["line"]), (program, 4))
        self.assertRegex(first["detail"], r"Its process went on; .* later: The command seemed to hang")

    def test_a_task_that_failed_unseen(self):
        program = self.script("serve.py", self.TASKS)
        _, errors = self.run_command("-o", "fine", "--", PYTHON, program, "goes on")
        self.assertEqual(errors.count("Task exception was never retrieved"), 1)  # Python prints it as ever
        self.run_command("-o", "late", "--", PYTHON, program, "gives up", expect=1)
        said = [json.loads(self.tlparse("findings", name, "--json").stdout)["findings"] for name in ("fine", "late")]
        self.assertEqual([[(one["severity"], one["title"]) for one in findings] for findings in said],
                         [[(severity, "Task pump of the command raised LookupError: no such tenant")] for severity in ("note", "error")])

    def test_a_task_that_is_awaited_ends_the_program_itself(self):
        program = self.script("serve.py", self.TASKS)
        for how in ("ends", "asks late"):
            with self.subTest(how):
                self.run_command("-o", how, "--", PYTHON, program, how, expect=1)
                first, = json.loads(self.tlparse("findings", how, "--json").stdout)["findings"]
                self.assertEqual(first["title"], "The command raised LookupError: no such tenant")

    def test_a_child_that_nobody_waited_for_is_recorded_once(self):
        """It becomes a child of tlparse when its parent ends."""
        program = self.script("leaves.py", """\
            import os, time
            if os.fork() == 0:
                time.sleep(0.3)
                os._exit(3)
            time.sleep(1)
            os._exit(0)
            """)
        self.run_command("--", PYTHON, program)
        processes = self.run_file()["processes"]
        self.assertEqual(sorted(one["exit_code"] for one in processes), [0, 3], processes)

    def test_where_threads_are_that_wait_for_each_other(self):
        program = self.script("lock.py", """\
            import threading
            lock = threading.Lock()
            def serve():
                lock.acquire()
                lock.acquire()
            for _ in range(3):
                threading.Thread(target=serve, daemon=True).start()
            threading.Event().wait()
            """)
        _, errors = self.hang(program)
        self.assertRegex(errors, rf"tlparse: 2 other threads of pid \d+ are at {re.escape(program)}:4 in serve\n")
        first, = self.findings()
        self.assertRegex(first["title"], r"^The command seemed to hang, pid \d+ in wait at lock.py:8 \(other threads at lock.py:4, at lock.py:5\)$")
        self.assertEqual(first["place"]["line"], 8)
        self.assertRegex(first["detail"], r" 2 other threads of pid \d+ were at .*/lock.py:4 in serve\.")

    def test_a_thread_that_the_main_thread_joins(self):
        """It is the one that is blocked."""
        program = self.script("consume.py", """\
            import queue, threading
            jobs = queue.Queue()
            def consume():
                while jobs.get() is not None:
                    pass
            thread = threading.Thread(target=consume)
            thread.start()
            thread.join()
            """)
        self.hang(program)
        first, = self.findings()
        self.assertRegex(first["title"], r"^The command seemed to hang, pid \d+ in join at consume.py:8 \(another thread in get at consume.py:4\)$")
        self.assertEqual(first["place"]["line"], 4)

    def test_a_rank_in_the_debugger(self):
        self.script("rank.py", """\
            def step(loss):
                breakpoint()
                return loss * 2
            step(1)
            """)
        self.hang(self.script("launch.py", "import os, subprocess, sys\n"
                              "subprocess.Popen([sys.executable, 'rank.py'], stdin=subprocess.PIPE, env={**os.environ, 'RANK': '1'}).wait()\n"))
        first, = self.findings()
        self.assertRegex(first["title"], r"^The command seemed to hang, rank 1 in pdb at rank\.py:[23]$")
        self.assertIn(first["place"]["line"], (2, 3))  # by the Python
        self.assertIn("which called pdb", first["detail"])

    def test_a_child_for_which_a_rank_waits(self):
        """As of a worker of a DataLoader. Another waits for work, in no line of the program."""
        self.script("rank.py", """\
            import multiprocessing, threading
            fork = multiprocessing.get_context("fork")
            def sample():
                threading.Event().wait()
            workers = [fork.Process(target=one) for one in (fork.Event().wait, sample)]
            for worker in workers:
                worker.start()
            workers[1].join()
            """)
        program = self.script("launch.py", "import os, subprocess, sys\nsubprocess.run([sys.executable, 'rank.py'], env={**os.environ, 'RANK': '1'})\n")
        self.hang(program)
        first, = self.findings()
        self.assertEqual((first["title"], first["place"]["line"]), ("The command seemed to hang, rank 1 in join at rank.py:8; a child of rank 1 was in wait at rank.py:4", 4))
        self.assertRegex(first["detail"], r" A child of rank 1, pid \d+, was at \S*rank\.py:4 in sample, which called wait\.$")

    CHILD = """\
        import multiprocessing, os, sys, time
        def simulate(pipe, how):
            time.sleep(0.5)
            if how == "exits":
                os._exit(3)
            raise RuntimeError("the licence is lost")
        context = multiprocessing.get_context("fork")
        mine, other = context.Pipe()
        context.Process(target=simulate, args=(other, sys.argv[1]), daemon=True).start()
        other.close()
        mine.recv()
        """

    def test_a_child_that_failed_is_why_its_parent_lost_it(self):
        program = self.script("env.py", self.CHILD)
        for how, what in (("exits", r"ended with exit code 3"), ("raises", "raised RuntimeError: the licence is lost")):
            with self.subTest(how):
                _, errors = self.run_command("-o", how, "--", PYTHON, program, how, expect=1)
                self.assertNotIn("sitecustomize", errors)  # Python prints it as ever
                first = json.loads(self.tlparse("findings", how, "--json").stdout)["findings"][0]
                self.assertRegex(first["title"], rf"^A child \(pid \d+\) of the command {what}$")
                self.assertNotIn("Its process went on", first["detail"])
                self.assertEqual(first["evidence"][0]["title"], "The command raised EOFError")

    def test_a_child_is_not_why_its_parent_fails_otherwise(self):
        program = self.script("other.py", """\
            import subprocess, sys, time
            subprocess.run([sys.executable, "-c", "raise SystemExit(3)"])
            time.sleep(1)
            raise ValueError("not finite")
            """)
        self.run_command("--", PYTHON, program, expect=1)
        self.assertEqual([one["title"] for one in self.findings()], ["The command raised ValueError: not finite"])

    def test_a_hang_after_a_restart_is_not_the_failure_before(self):
        launch = self.script("launch.py", """\
            import os, subprocess, sys, time
            open("rank.py", "w").write("import os, sys, threading\\nif sys.argv[1] == '1':\\n    threading.Event().wait()\\nos.kill(os.getpid(), 9)\\n")
            for again in range(2):
                ranks = [subprocess.Popen([sys.executable, "rank.py", str(again)], env={**os.environ, "RANK": str(rank)}) for rank in range(2)]
                time.sleep(1)
                for rank in ranks:
                    rank.wait()
            """)
        self.hang(launch)
        first, = self.findings()
        self.assertEqual((first["kind"], first["severity"], first["title"]), ("stuck", "error", "The command was started again, and seemed to hang, ranks 0,1 in wait at rank.py:3"))
        self.assertRegex(first["evidence"][0]["title"], "^Rank [01] was ended by SIGKILL$")

    def ranks_of_a_launcher_that_ends_all(self):
        """Logs without ranks, as those of torch.distributed.rpc: rank 1 fails, rank 2 is inside a compile. The launcher ends with
        its ranks, or with any argument some time later."""
        self.script("rank.py", test_run_ends.Ends.TRACED + """\
        if os.environ["RANK"] == "1":
            write({"compilation_metrics": {"co_name": "f", "co_filename": "/u/m.py", "has_guarded_code": True}, **ids})
            open("is_done", "w").close()
            time.sleep(1.5)  # until all processes are seen
            while not os.path.exists("may_end"):
                time.sleep(0.01)
            sys.exit(5)
        time.sleep(60)
        """)
        return self.script("launch.py", """\
            import os, subprocess, sys, time
            ranks = [subprocess.Popen([sys.executable] + (["rank.py"] if rank else ["-c", "import time; time.sleep(60)"]), env={**os.environ, "RANK": str(rank)}) for rank in range(3)]
            ranks[1].wait()
            for rank in (ranks[0], ranks[2]):
                rank.terminate()
            if sys.argv[1:]:
                ranks[0].wait(), ranks[2].wait()
                time.sleep(1)
            sys.exit(5)
            """)

    def test_programs_that_ran_one_after_another(self):
        """No two are compared; that the script goes on without one that failed is said."""
        self.script("trial.py", test_run_ends.Ends.TRACED + """\
        for again in range(1 + int(sys.argv[1])):
            write({"compilation_metrics": {"co_name": "f", "co_filename": "/u/m.py", "co_firstlineno": 3, "has_guarded_code": True}, **ids, "frame_compile_id": again})
        time.sleep(1)
        if sys.argv[1:] == ["1", "fails"]:
            raise FloatingPointError("loss is not finite")
        """)
        sweep = self.script("sweep.py", """\
            import subprocess, sys
            for trial in range(3):
                subprocess.run([sys.executable, "trial.py", str(trial), *sys.argv[1:]])
                subprocess.run(["false"])
            """)
        for how, expected in ((["fine"], []), (["fails"], ["warning: A child of the command raised FloatingPointError: loss is not finite"])):
            with self.subTest(how):
                self.run_command("-o", how[0], "--", PYTHON, sweep, *how, environment={"TZ": "UTC"})
                findings = json.loads(self.tlparse("findings", how[0], "--json").stdout)["findings"]
                self.assertEqual([f"{one['severity']}: {re.sub(' .pid [0-9]+.', '', one['title'])}" for one in findings if one["kind"] != "recompiles"], expected)

    def test_where_many_processes_are_that_hang(self):
        program = self.script("many.py", """\
            import os, threading
            waits = [
                lambda: threading.Event().wait(),
                lambda: threading.Event().wait(),
                lambda: threading.Event().wait(),
                lambda: threading.Event().wait(),
            ]
            for i in (0, 1, 1, 2, 3):
                if os.fork() == 0:
                    waits[i]()
            os.wait()
            """)
        self.hang(program)
        first, = self.findings()
        self.assertRegex(first["title"], r"^The command seemed to hang, pid \d+ at many.py:11, pid \d+ in wait at many.py:3, pids \d+,\d+ in wait at many.py:4 and 2 more places$")
        self.assertRegex(first["detail"], r"; pids \d+,\d+ were at .*many.py:4 in <lambda>")

    def test_ranks_whose_logs_do_not_know_them(self):
        launch = self.ranks_of_a_launcher_that_ends_all()
        self.write("may_end", b"")
        self.run_command("--", PYTHON, launch, expect=5, environment={"TZ": "UTC"})
        first, *others = self.findings()
        self.assertEqual((first["severity"], first["ranks"], first["title"]), ("error", [1], "Rank 1 ended with exit code 5 at rank.py:13"))
        self.assertEqual([one["kind"] for one in first["evidence"]], ["stopped_first"])  # it follows: the launcher ended rank 2
        self.assertEqual([(one["severity"], one["title"]) for one in others], [("note", "No log from rank 0 (2 of 3 ranks have one)")])

    def test_ends_that_are_seen_together(self):
        """As on a busy machine: what the launcher ended is not what failed, whichever is looked at first."""
        launch = self.ranks_of_a_launcher_that_ends_all()
        for last in ([], ["later"]):
            with self.subTest(last):
                output = "run" + "".join(last)
                process = self.start("-o", output, "--", PYTHON, launch, *last, environment={"TZ": "UTC"})
                while not os.path.exists(self.path("is_done")):
                    time.sleep(0.01)
                time.sleep(1.5)
                process.send_signal(signal.SIGSTOP)
                self.write("may_end", b"")
                time.sleep(1.5)
                process.send_signal(signal.SIGCONT)
                os.remove(self.path("is_done")), os.remove(self.path("may_end"))
                process.communicate(timeout=60)
                first = json.loads(self.tlparse("findings", output, "--json").stdout)["findings"][0]
                self.assertEqual(first["title"], "Rank 1 ended with exit code 5 at rank.py:13")
                ends = {one["rank"]: one["ended_us"] for one in self.run_file(output)["processes"]}
                self.assertLessEqual(ends[1], ends[0])

    def test_a_hang_that_lasts_is_said_once(self):
        _, errors = self.run_command("--hang-after", "2", "--", PYTHON, self.script("wait.py", """\
            import time
            time.sleep(20)
            until = time.time() + 8
            while time.time() < until:
                pass
            time.sleep(8)
            """))
        self.assertEqual(errors.count("the command seems to hang"), 2)  # it worked in between


if __name__ == "__main__":
    unittest.main()
