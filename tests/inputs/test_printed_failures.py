"""Standard error of a job of several ranks that failed: tracebacks of its ranks and torchrun's report, and the finding of these."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "analysis"))
from answers import AnswerTest, ask, record  # noqa: E402

# As PyTorch 2.14 prints them.
TRACEBACK = """[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File "/rec/train.py", line {line}, in <module>
[rank{rank}]:     step()
[rank{rank}]:     ~~~~^^
[rank{rank}]:   File "/usr/lib/python3/dist-packages/torch/distributed/c10d_logger.py", line 83, in wrapper
[rank{rank}]:     return func(*args, **kwargs)
[rank{rank}]: {message}
"""
GONE = "RuntimeError: [./gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:36038"
LATE = "RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 60000ms for recv operation to complete"
REPORT = """============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-28_01:54:15
  host      : vm
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 4495)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 4495
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-28_01:54:14
  host      : vm
  rank      : {rank} (local_rank: {rank})
  exitcode  : {code} (pid: 4496) 
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""


def traceback(rank, message, line=35):
    return TRACEBACK.format(rank=rank, line=line, message=message.replace("\n", f"\n[rank{rank}]: "))


class PrintedFailures(AnswerTest):
    def first(self, *texts):
        self.save("job/stderr.txt", "step 1: loss 0.5\n", *texts)
        database = self.ingest(os.path.join(self.scratch, "job"))
        return ask("findings", database)["findings"][0]

    def test_an_exception_of_a_rank(self):
        first = self.first(traceback(2, GONE), traceback(1, "FloatingPointError: not finite\nin step 7"), traceback(0, GONE))
        self.assertEqual((first["kind"], first["severity"], first["ranks"]), ("crashed", "error", [1]))
        self.assertEqual(first["title"], "Rank 1 raised FloatingPointError: not finite")
        self.assertEqual(first["place"], {"file": "/rec/train.py", "line": 35, "code": None})
        self.assertEqual([row["table"] for row in first["rows"]], ["uncaught_exception"])

    def test_the_report_names_one_of_several(self):
        first = self.first(traceback(0, "ValueError: a"), traceback(3, "ValueError: b"), REPORT.format(rank=3, code=1))
        self.assertEqual((first["title"], first["ranks"]), ("Rank 3 raised ValueError: b", [3]))

    def test_several_ranks_that_raised_the_same_are_named_together(self):
        first = self.first(*(traceback(rank, f"ValueError: row {rank} of 9 is empty") for rank in (2, 0)), traceback(1, GONE))
        self.assertEqual((first["title"], first["ranks"]), ("Ranks 0,2 raised ValueError: row 2 of 9 is empty", [0, 2]))

    def test_a_signal_is_in_the_report_only(self):
        first = self.first(traceback(0, GONE), traceback(1, GONE), REPORT.format(rank=3, code=-9))
        self.assertEqual((first["title"], first["ranks"]), ("Rank 3 was ended by SIGKILL", [3]))

    def test_all_name_another_that_was_gone(self):
        first = self.first(traceback(0, GONE), traceback(1, GONE))
        self.assertEqual(first["ranks"], [0])
        self.assertIn("look for the process that was gone", first["try"])

    def test_an_exception_of_another_that_was_gone_follows_from_its_end(self):
        def compiled(rank, frame, function, time):
            ids = {"rank": rank, "frame_id": frame, "frame_compile_id": 0, "attempt": 0}
            metrics = {"co_name": function, "co_filename": "/u/m.py", "co_firstlineno": 10, "compile_id": f"{frame}/0"}
            stack = [{"line": 10, "name": function, "filename": 1, "loc": "x"}]
            return (record({"str": ["/u/m.py", 1]}, time=time) + record({"dynamo_start": {"stack": stack}, **ids}, time=time)
                    + record({"compilation_metrics": metrics, **ids}, time=time))
        for rank in range(3):
            later = compiled(rank, 1, "update", "08:30:09.000000") if rank else ""
            self.save(f"job/dedicated_log_torch_trace_rank_{rank}_abcd{rank}.log", compiled(rank, 0, "step", "08:30:01.000000") + later)
        first = self.first(traceback(1, GONE))
        self.assertEqual((first["kind"], first["severity"], first["ranks"]), ("stopped_first", "error", [0]))
        self.assertEqual(first["title"], "Rank 0's log ends after 0/0 step; ranks 1,2 went on to 1/0 update")
        self.assertRegex(first["detail"], r"No traceback of rank 0 is in .*stderr\.txt\.")
        self.assertEqual([(one["kind"], one["ranks"]) for one in first["evidence"]][0], ("crashed", [1]))

    def test_the_only_rank_that_raised_nothing_is_the_one_to_look_at(self):
        for rank in range(3):
            self.save(f"job/dedicated_log_torch_trace_rank_{rank}_abcd{rank}.log", self.compiled(0, "step", "a", rank))
        first = self.first(traceback(0, GONE), traceback(2, GONE))
        self.assertEqual(first["try"], "look at why rank 1 was gone: of the ranks with a log it alone raised nothing")

    def test_ranks_waited_for_each_other_at_one_line(self):
        """Where one left out an exchange with its neighbours, nobody is the first."""
        waits = {rank: f"RuntimeError: [unbound_buffer.cc:{78 if rank else 129}] Timed out waiting 12000ms for {'recv' if rank else 'send'} operation to complete"
                 for rank in range(3)}
        first = self.first(*(traceback(rank, waits[rank]) for rank in (1, 2, 0)))
        self.assertEqual(first["ranks"], [0, 1, 2])
        self.assertRegex(first["title"], r"^Ranks 0-2 gave up waiting at train.py:\d+: rank 0 to send, ranks 1,2 to receive$")

    def test_ranks_waited_at_several_lines(self):
        texts = [traceback(rank, LATE, line=31 if rank == 1 else 27) for rank in (2, 1, 0)]
        first = self.first(*texts, traceback(3, GONE, line=27), REPORT.format(rank=2, code=1))
        self.assertEqual(first["title"], "Rank 1 gave up waiting at train.py:31, ranks 0,2,3 at train.py:27")
        self.assertEqual(first["ranks"], [1])

    def test_ranks_that_found_another_gone_are_not_compared(self):
        """Rank 3 was killed, and printed nothing. The others were at several lines then."""
        first = self.first(*(traceback(rank, GONE, line=31 if rank == 1 else 27) for rank in (2, 1, 0)))
        self.assertEqual(first["title"], "Rank 2 raised " + GONE)
        self.assertIn("look for the process that was gone", first["try"])

    def test_lines_of_ranks_may_be_mixed_and_exceptions_chained(self):
        one = traceback(0, "KeyError: 'x'\n\nThe above exception was the direct cause of the following exception:\n\n") + traceback(0, "ValueError: y")
        other = traceback(1, GONE)
        lines = [line for pair in zip(one.splitlines(True), other.splitlines(True)) for line in pair]
        rest = one.splitlines(True)[len(other.splitlines()):]
        self.assertEqual(self.first(*lines, *rest)["title"], "Rank 0 raised ValueError: y, from KeyError: 'x'")

    def test_a_traceback_that_was_caught_is_no_failure(self):
        text = traceback(0, "ValueError: a").replace("[rank0]: ", "")
        with self.assertRaisesRegex(AssertionError, "no structured trace"):
            self.first(text, "[rank0]:W1128 01:54:15.1 Traceback (most recent call last):\n", LATE)


class RunFile(AnswerTest):
    def test_hangs_of_any_form_are_no_error(self):
        for number, hangs in enumerate(('[3, "x", [], null, {"why": "w", "was_ended": true, "taken": {"q": [1]}}]', '"text"', '{"a": {"why": "w", "taken": 5, "was_ended": 1}}')):
            with self.subTest(hangs):
                self.save(f"job{number}/run.json", '{"command": ["a"], "directory": "/", "started_us": 1, "exit_code": 143, "hangs": ' + hangs + ', "processes": []}')
                self.save(f"job{number}/a.log", record({"dynamo_start": {"stack": []}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}))
                database = self.ingest(os.path.join(self.scratch, f"job{number}"), name=str(number))
                found = ask("findings", database)["findings"]
                titles = [one["title"] for finding in found for one in [finding, *finding["evidence"]] if one["kind"] == "stuck"]
                self.assertEqual(titles, [] if number == 1 else ["The command seemed to hang: w"])
                ask("status", database)


if __name__ == "__main__":
    unittest.main()
