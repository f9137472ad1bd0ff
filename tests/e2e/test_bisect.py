#!/usr/bin/env python3
"""tlparse bisect: runs a command again with parts of what differs between two runs. The jobs are stand-ins, as in test_try.py."""

import os
import sys
import unittest

import harness
from test_try import Try

sys.path.insert(0, os.path.join(harness.ROOT, "tests", "analysis"))
import answers  # noqa: E402


class Bisect(Try):
    """Two runs that differ in twelve variables; a condition on them decides which log the program leaves."""

    NAMES = [f"TORCH_TRY_{number:02}" for number in range(12)]

    def runs(self, condition, names=None):
        self.write_logs()
        program = self.script("s_dynamic.py", f"""
            import os, shutil
            name = "plain.log" if {condition} else "marked.log"
            shutil.copy(os.path.join(os.path.dirname(__file__), name), os.path.join(os.environ["TORCH_TRACE"], "dedicated_log_torch_trace_a.log"))
            """)
        for name, value in (("good", "0"), ("bad", "1")):
            self.command("run", "-q", "-o", name, "--", sys.executable, program, environment={one: value for one in names or self.NAMES})

    def bisect(self, *arguments, expect=0):
        finding = self.recompiles("bad")["id"]
        out, _ = self.command("bisect", "--good", "good", "--bad", "bad", "--finding", finding, "--yes", "--json", *arguments, expect=expect)
        return self.document("bisect", out)

    def test_one_of_twelve(self):
        self.runs("os.environ['TORCH_TRY_07'] == '1'")
        document = self.bisect()
        self.assertEqual([one["name"] for one in document["bad"]], self.NAMES)
        self.assertEqual([[one["name"], one["value"]] for one in document["cause"]], [["TORCH_TRY_07", "1"]])
        self.assertEqual([document["is_sure"], document["is_smallest"]], [True, True])
        self.assertLessEqual(len(document["runs"]), 7)  # 2 log2 12
        experiments = harness.rows(self.path("bad", "trace.db"), "SELECT id FROM experiment ORDER BY id")
        self.assertEqual([[one["experiment"]] for one in document["runs"]], experiments)

    def test_two_that_act_together(self):
        # Of four: each run of the command is ingested. bisection_test.cc has all sizes.
        self.runs("os.environ['TORCH_TRY_00'] == os.environ['TORCH_TRY_03'] == '1'", self.NAMES[:4])
        document = self.bisect()
        self.assertEqual([one["name"] for one in document["cause"]], ["TORCH_TRY_00", "TORCH_TRY_03"])
        self.assertEqual([document["is_sure"], document["is_smallest"]], [True, True])

    def test_none_is_the_cause(self):
        self.runs("os.environ['TORCH_TRACE'].endswith('bad/recorded')")
        document = self.bisect("--most-runs", "6", expect=1)
        self.assertEqual([document["is_sure"], len(document["runs"])], [False, 6])

    def test_wrong_numbers(self):
        """One of four variables changes an output by half, another by a rounding; outputs are looked at as in the bad run, each second call."""
        self.write_logs()
        program = self.script("s_numbers.py", """
            import hashlib, json, os, shutil, sys
            wrong, rounded = (os.environ["TORCH_TRY_%02d" % number] == "1" for number in (2, 1))
            path = os.path.join(os.environ["TORCH_TRACE"], "dedicated_log_torch_trace_a.log")
            shutil.copy(os.path.join(os.path.dirname(__file__), "marked.log"), path)
            every = os.environ.get("TLPARSE_RUN_NUMBERS")
            if not every or "none" in sys.argv:
                raise SystemExit
            assert every == "2", every
            with open(path, "a") as log:
                for call in range(0, 6, 2):
                    norm = 3.0 + (0.5 if wrong and call == 4 else 0) + (1e-6 if rounded else 0)
                    part = {"kind": "output", "name": "0", "text": "float32[4]", "norm": norm, "hash": "%051x" % hash(norm)}
                    text = json.dumps({"graph": "inference", "call": call, "parts": [part]})
                    head = {"artifact": {"name": "libtrace_run_digest", "encoding": "json"}, "frame_id": 0, "frame_compile_id": 0,
                            "has_payload": hashlib.md5(text.encode()).hexdigest()}
                    print("V1121 08:45:41.014000 10 a.py:1]", json.dumps(head), file=log)
                    print("\\t" + text, file=log)
            """)
        for name, value in (("good", "0"), ("bad", "1")):
            self.command("run", "-q", "--numbers=2", "-o", name, "--", sys.executable, program, environment={one: value for one in self.NAMES[:4]})
        out, errors = self.command("bisect", "--good", "good", "--bad", "bad", "--numbers", "--yes", "--json")
        document = self.document("bisect", out)
        self.assertEqual(([one["name"] for one in document["cause"]], document["is_sure"], document["is_smallest"]), (["TORCH_TRY_02"], True, True))
        self.assertIn("1 of 3 outputs differ from the good run's; output 0 of the inference graph of 0/0", errors)
        self.assertIn("call 4: norm 3 → 3.5", errors)
        self.assertIn("all 3 outputs are as in the good run, but for rounding", errors)
        _, errors = self.command("bisect", "--good", "good", "--bad", "good", "--numbers", "--yes", expect=2)
        self.assertIn("all 3 outputs are as in the good run", errors)

    def edited(self, name, change):
        """marked.log with other payloads."""
        self.assertGreater(answers.edit_log(self.path("marked.log"), self.path(name), lambda item: change(item.payload)), 0, name)

    def runs_of_logs(self, choice, *options):
        """`choice` names the log that the program leaves; the first four variables differ."""
        program = self.script("s_logs.py", f"""
            import json, os, shutil
            on = [os.environ["TORCH_TRY_%02d" % number] == "1" for number in range(4)]
            recorded = os.environ["TORCH_TRACE"]
            def profile():
                assert os.environ["TLPARSE_RUN_PROFILE"] == "steps 4 6"
                steps = [{{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d" % step, "pid": os.getpid(), "tid": os.getpid(), "ts": 2000.0 * step,
                          "dur": 1000 + 700 * on[1] + 100 * on[0]}} for step in (4, 5, 6)]
                with open(os.path.join(recorded, "profile_pid_%d.json" % os.getpid()), "w") as file:
                    json.dump({{"schemaVersion": 1, "baseTimeNanoseconds": 1795250945000000000, "traceEvents": steps}}, file)
            {choice}
            shutil.copy(os.path.join(os.path.dirname(__file__), name), os.path.join(recorded, "dedicated_log_torch_trace_a.log"))
            """)
        for name, value in (("good", "0"), ("bad", "1")):
            self.command("run", "-q", *options, "-o", name, "--", sys.executable, program, environment={one: value for one in self.NAMES[:4]})

    def cause(self, likeness):
        out, errors = self.command("bisect", "--good", "good", "--bad", "bad", likeness, "--yes", "--json")
        document = self.document("bisect", out)
        self.assertEqual((document["finding_id"], document["is_sure"], document["is_smallest"]), (likeness[2:], True, True))
        return [one["name"] for one in document["cause"]], errors

    def test_changed_code(self):
        """One of four variables changes what a kernel computes, another only the path that its code names."""
        self.write_logs()
        self.edited("other.log", lambda text: text and text.replace(b"float(tmp0 * tmp1)", b"float(tmp0 - tmp1)"))
        self.edited("path.log", lambda text: text and text.replace(b"# AOT ID: ['0_inference']", b"# AOT ID: ['7_inference']"))
        self.runs_of_logs('name = "other.log" if on[3] else "path.log" if on[0] else "marked.log"')
        cause, errors = self.cause("--code")
        self.assertEqual(cause, ["TORCH_TRY_03"])
        self.assertIn("1 of 1 generated codes differs from the good run's: inference of 0/0 auto", errors)
        self.assertIn("the generated code is as in the good run", errors)
        _, errors = self.command("bisect", "--good", "good", "--bad", "good", "--code", "--yes", expect=2)
        self.assertIn("the generated code is as in the good run", errors)
        _, errors = self.command("bisect", "--good", "good", "--bad", "bad", "--code", "--numbers", "--yes", expect=2)
        self.assertIn("go without one another", errors)

    def test_slow_steps(self):
        """One of four variables makes steps slow, another a little slower; they are profiled in each run as in the bad one."""
        self.write_logs()
        self.runs_of_logs("profile(); name = 'marked.log'", "--profile=4-6")
        cause, errors = self.cause("--time")
        self.assertEqual(cause, ["TORCH_TRY_01"])
        self.assertIn("nearer to the bad run's 1.8 ms than to the good run's 1.0 ms", errors)
        self.assertIn("step time 1.1 ms: nearer to the good run's 1.0 ms", errors)

    def test_slow_compiles(self):
        self.write_logs()
        log = harness.log_bytes(self.path("marked.log"))
        for name, us in (("slow.log", b"5252603"), ("same.log", b"2352603")):
            self.write(name, log.replace(b'"duration_us": 2252603', b'"duration_us": ' + us))
        self.runs_of_logs('name = "slow.log" if on[2] else "same.log" if on[1] else "marked.log"')
        cause, errors = self.cause("--time")
        self.assertEqual(cause, ["TORCH_TRY_02"])
        self.assertIn("compile time 2.35 s: nearer to the good run's 2.25 s", errors)
        _, errors = self.command("bisect", "--good", "good", "--bad", "good", "--time", "--yes", expect=2)
        self.assertIn("is not a fifth above", errors)


if __name__ == "__main__":
    unittest.main()
