"""Texts of answers are short unless all is asked for, and say what they left out: of every recorded job."""

import glob
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, SHARED, TLPARSE, AnswerTest, ask, record  # noqa: E402

LIMITS = {"findings": 2500, "history": 4000, "recompiles": 4000, "ranks": 4000, "cache": 4000, "collectives": 4000, "execution": 4000,
          "provenance": 4000, "import-log": 4000}


def run(*arguments):
    """What a pipe gets: lines of any width."""
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run([TLPARSE, *arguments], capture_output=True, text=True, env=environment, check=True).stdout


class Lengths(AnswerTest):
    def check(self, database, where):
        for command, most in LIMITS.items():
            text = run(command, database)
            self.assertLessEqual(len(text), most, (command, where))
            if command == "findings":
                self.assertLessEqual(len(run(command, database, "--evidence")), 4000, where)
            left_out = re.search(r"(?m)^and (\d+) more (lines|rows|: )", text)
            if left_out:
                whole = run(command, database, "--all") if command != "recompiles" else ""
                self.assertTrue(not whole or len(whole) > len(text), (command, where))

    @unittest.skipUnless(os.path.isdir(SHARED), "recordings are not beside the checkout")
    def test_recordings_beside_the_checkout(self):
        for folder in sorted(glob.glob(os.path.join(SHARED, "jobs", "*", ""))):
            self.check(self.ingest(folder, name="shared"), folder)
            os.unlink(os.path.join(self.scratch, "shared.db"))


for job in sorted(glob.glob(os.path.join(LOGS, "*"))):
    setattr(Lengths, f"test_{os.path.basename(job)}", lambda self, folder=job: self.check(self.ingest(folder), folder))


class Many(AnswerTest):
    """A rank in the way of many others."""

    def metrics(self, rank, frame, **more):
        ids = {"rank": rank, "frame_id": frame, "frame_compile_id": 0, "attempt": 0}
        start = 1_700_000_000_000_000 + frame * 1_000_000
        done = {"co_name": f"function_{frame}", "co_filename": "/u/m.py", "co_firstlineno": frame, "start_time_us": start,
                "duration_us": 1000 * (frame + 1) + rank, **more}
        return record({"dynamo_start": {"stack": []}, **ids}) + record({"compilation_metrics": done, **ids})

    def test_rows_of_equal_ranks_are_one_and_the_failed_one_is_shown(self):
        for rank in range(24):
            failed = {"fail_type": "ValueError", "fail_reason": "bad"}
            self.save(f"job/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log",
                      *(self.metrics(rank, frame, **(failed if (rank, frame) == (7, 3) else {})) for frame in range(90)))
        database = self.ingest(os.path.join(self.scratch, "job"), name="job")
        text = run("history", database)
        self.assertLessEqual(len(text), 4000)
        lines = text.splitlines()
        self.assertTrue(any(line.split()[:2] == ["7", "3/0"] and "ValueError" in line for line in lines), text)
        slowest = next(line for line in lines if line.split()[:2] == ["0-23", "89/0"])
        self.assertIn("90.0 ms", slowest)
        shown = sum(1 for line in lines if re.match(r"(0-23|7|0-6,8-23) +\d+/0 ", line))
        self.assertEqual(re.search(r"and (\d+) more rows", text)[1], str(91 - shown))
        self.assertEqual(len(run("history", database, "--all").splitlines()), 24 * 90 + 1)
        of_one = run("history", database, "--rank", "7", "--all").splitlines()
        self.assertEqual((len(of_one), of_one[-1]), (92, "only what involves rank 7; left out: 2070 compiles of others"))


class Series(AnswerTest):
    def recompiled(self, rank, reasons, refused=()):
        text = ""
        for number, reason in enumerate([None, *reasons]):
            ids = {"rank": rank, "frame_id": 0, "frame_compile_id": number, "attempt": 0}
            if reason:
                text += record({"artifact": {"name": "recompile_reasons", "encoding": "json"}, **ids}, '["%s"]' % reason)
            failed = {"fail_type": "torch._dynamo.exc.FailOnRecompileLimitHit", "fail_reason": "recompile_limit reached"} if number in refused else {}
            done = {"co_name": "f", "co_filename": "/u/m.py", "co_firstlineno": 3, "duration_us": 2_000_000 + rank, **failed}
            text += record({"dynamo_start": {"stack": []}, **ids}) + record({"compilation_metrics": done, **ids})
        return text

    def test_a_series_for_a_guard(self):
        for rank in range(3):
            count = 8 if rank == 2 else 6
            reasons = [f"0/{n}: self.seen == {n}  # self.seen += 1  # m.py:11 in f" for n in range(count)]
            self.save(f"job/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", self.recompiled(rank, reasons, {8} if rank == 2 else ()))
        database = self.ingest(os.path.join(self.scratch, "job"), name="job")
        one, = ask("recompiles", database)["series"]
        self.assertEqual((one["function"], one["guard"], one["values"], one["user_line"], one["ranks"]),
                         ("f", "self.seen", [str(n) for n in range(8)], 11, [0, 1, 2]))
        self.assertEqual((one["recompiles"], one["least_recompiles"], one["refused"], one["is_limit_reached"]), (7, 6, 1, True))
        self.assertAlmostEqual(one["seconds_lost"], 8 * 2.000002)
        self.assertEqual(one["compiles"], [f"0/{n + 1}" for n in range(8)])  # rank 0 has six of them
        heading, row, *_ = run("recompiles", database).splitlines()
        self.assertIn("refused 1", row)
        self.assertIn("0, 1, 2, 3, 4, 5, 6, 7", row)
        self.assertIn("6 to 7", row)
        self.assertEqual(len(run("recompiles", database, "--all").splitlines()), 1 + 6 + 6 + 8)
        self.assertEqual([len(one["compiles"]) for one in ask("recompiles", database, "--rank", "2")["series"]], [8])

    def test_other_guards_are_other_series(self):
        self.save("a.log", self.recompiled(0, ["0/0: n == 1", "0/1: tensor 'x' size mismatch at index 0. expected 8, actual 16", "0/2: n == 2"]))
        found = {one["guard"]: one["values"] for one in ask("recompiles", self.ingest(os.path.join(self.scratch, "a.log")))["series"]}
        self.assertEqual(found, {"n": ["1", "2"], "size 0 of x": ["8", "16"]})


if __name__ == "__main__":
    unittest.main()
