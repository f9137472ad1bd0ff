"""Standard error of a job of several ranks that failed: tracebacks of its ranks and torchrun's report, and the finding of these."""

import json
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
        self.database = self.ingest(os.path.join(self.scratch, "job"))
        return ask("findings", self.database)["findings"][0]

    def test_what_torchrun_logs_without_its_report(self):
        logged = ("W0801 13:23:17.366000 32974 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 33051 closing signal SIGTERM\n"
                  "E0325 20:57:27.620000 2606 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: {}) local_rank: 5 "
                  "(pid: 4496) of binary: /opt/bin/python\n")
        first = self.first(logged.format(-9))
        self.assertEqual((first["title"], first["ranks"], first["cause"]), ("Local rank 5 was ended by SIGKILL", [], "SIGKILL"))
        self.assertEqual(self.first(logged.format(1))["title"], "Local rank 5 ended with exit code 1")
        reported = self.first(logged.format(-9), REPORT.format(rank=13, code=-9))
        self.assertEqual(reported["title"], "Rank 13 was ended by SIGKILL", "the report says more of the same process")
        raised = self.first(logged.format(1), traceback(2, "ValueError: nan"))
        self.assertEqual(raised["title"], "Rank 2 raised ValueError: nan")

    def test_an_exception_of_a_rank(self):
        first = self.first(traceback(2, GONE), traceback(1, "FloatingPointError: not finite\nin step 7"), traceback(0, GONE))
        self.assertEqual((first["kind"], first["severity"], first["ranks"]), ("crashed", "error", [1]))
        self.assertEqual(first["title"], "Rank 1 raised FloatingPointError: not finite")
        self.assertEqual(first["place"], {"file": "/rec/train.py", "line": 35, "code": None})
        self.assertEqual([row["table"] for row in first["rows"]], ["uncaught_exception"])
        lines = ask("findings", self.database, "--evidence")["findings"][0]["log_lines"]
        self.assertEqual(["File \"/rec/train.py\", line 35, in <module>", "FloatingPointError: not finite⏎in step 7"],
                         [line["text"].strip() for line in lines])

    def test_the_report_names_one_of_several(self):
        first = self.first(traceback(0, "ValueError: a"), traceback(3, "ValueError: b"), REPORT.format(rank=3, code=1))
        self.assertEqual((first["title"], first["ranks"]), ("Rank 3 raised ValueError: b", [3]))

    def test_the_report_names_one_that_raised_nothing_and_others_found_gone(self):
        """It left by SystemExit, which prints nothing."""
        first = self.first(traceback(1, GONE), traceback(0, GONE), REPORT.format(rank=2, code=4))
        self.assertEqual((first["title"], first["ranks"]), ("Rank 2 ended with exit code 4", [2]))
        self.assertEqual(["Rank 1 raised " + GONE], [one["title"] for one in first["evidence"]])

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

    def test_where_a_signal_came_by_faulthandler(self):
        """As Python 3.11 prints it. The innermost line of the user's is named, of the thread that was running."""
        stack = ("Thread 0x00007ff3e67fc6c0 (most recent call first):\n  <no Python frame>\n\nThread 0x00007ff3e67fc6c1 (most recent call first):\n"
                 "  File \"/u/watch.py\", line 9 in watch\n\nCurrent thread 0x00007ff4bf52eb80 (most recent call first):\n"
                 "  File \"/usr/lib/python3.11/ctypes/__init__.py\", line 519 in string_at\n  File \"/u/a.py\", line {0} in decode\n  File \"/u/a.py\", line 31 in main\n\n"
                 "Extension modules: numpy.random.mtrand (total: 1)\n")
        one, other, fatal = stack.format(14), stack.format(15), "Fatal Python error: Segmentation fault\n\n"
        gone = traceback(0, GONE)
        for number, (lines, title) in enumerate((
                ((fatal, one, gone, REPORT.format(rank=1, code=-11)), "Rank 1 was ended by SIGSEGV at a.py:14"),
                ((fatal, one, fatal, other, REPORT.format(rank=1, code=-11)), "Rank 1 was ended by SIGSEGV"),
                ((fatal, one, REPORT.format(rank=1, code=-7)), "Rank 1 was ended by SIGBUS"),
                ((fatal, one, gone), "The program was ended by SIGSEGV at a.py:14"),
                (("Fatal Python error: Aborted\n\n", one, "terminate called without an active exception\n", REPORT.format(rank=3, code=-6)),
                 "Rank 3 was ended by SIGABRT at a.py:14: terminate called without an active exception"),
                ((fatal, one, traceback(0, "ValueError: 3")), "Rank 0 raised ValueError: 3"))):
            with self.subTest(title=title, number=number):
                self.save(f"fault{number}/stderr.txt", *lines)
                first = ask("findings", self.ingest(os.path.join(self.scratch, f"fault{number}"), name=f"fault{number}"))["findings"][0]
                self.assertEqual(first["title"], title)
                self.assertEqual("which called string_at" in first["detail"], ":14" in title, first["detail"])

    def test_what_an_abort_printed(self):
        """Of the C library, C++ and glog, as they print it; a what() belongs to what was thrown just before."""
        thrown = "terminate called after throwing an instance of 'std::runtime_error'\n"
        for number, (lines, text) in enumerate((
                ((thrown, "step 3\n", "  what():  slot 4711\n"), "std::runtime_error: slot 4711"),
                ((thrown,), "std::runtime_error"),
                (("[rank3]: " + thrown, "  what():  of another\n"), "std::runtime_error"),
                (("python3.11: tok.cc:9: long ns::clean(long): Assertion `n < 10' failed.\n",), "tok.cc:9: Assertion `n < 10' failed."),
                (("/usr/include/c++/12/bits/stl_vector.h:1123: T& std::vector<T>::operator[](size_t) [with T = int]: Assertion '__n < this->size()' failed.\n",),
                 "/usr/include/c++/12/bits/stl_vector.h:1123: Assertion '__n < this->size()' failed."),
                (("F1128 01:54:15.100000 4496 table.cc:7] Check failed: a == b (1 vs. 2) \n",), "table.cc:7] Check failed: a == b (1 vs. 2)"),
                (("Fatal Python error: Aborted\n", "free(): double free detected in tcache 2\n"), "free(): double free detected in tcache 2"),
                (("the loader said: free(): x\n", "Fatal Python error: Segmentation fault\n"), None))):
            with self.subTest(text=text, lines=lines):
                self.save(f"job{number}/stderr.txt", *lines, REPORT.format(rank=3, code=-6))
                found = ask("findings", self.ingest(os.path.join(self.scratch, f"job{number}"), name=f"a{number}"))["findings"]
                self.assertEqual(found[0]["title"], "Rank 3 was ended by SIGABRT" + (f": {text}" if text else ""))


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

    def test_a_rank_that_did_not_join(self):
        us, join = 1_764_000_000_000_000, "/u/a.py:31 in main, which called init_process_group"
        for elsewhere, ranks in (("/u/a.py:19 in unpack", [1]), (join, [])):
            places = [join, elsewhere, join]
            processes = [{"pid": 10 + rank, "parent_pid": 9, "rank": rank, "signal": 15, "started_us": us, "ended_us": us + 90_000_000} for rank in range(3)]
            self.save("join/run.json", json.dumps({
                "version": 1, "command": ["torchrun"], "directory": "/u", "started_us": us, "exit_code": 143, "processes": [{"pid": 9, "parent_pid": 1, "started_us": us}, *processes],
                "hangs": [{"time_us": us + 60_000_000, "why": "idle", "was_ended": True,
                           "taken": [f"rank {rank} (pid {10 + rank}) is at {where}" for rank, where in enumerate(places)]}]}))
            one, = ask("findings", self.ingest(os.path.join(self.scratch, "join"), name=f"join{len(ranks)}"))["findings"]
            self.assertEqual(("stuck", ranks), (one["kind"], one["ranks"]))
        self.assertTrue(one["title"].startswith("The command seemed to hang, ranks 0-2 in init_process_group at a.py:31"), one["title"])

    def test_what_a_child_left_behind_is_no_rank_that_was_started_again(self):
        """A loader worker had started it; its parent is that of the command since the worker has ended."""
        error = 'Traceback (most recent call last):\n  File "/u/a.py", line 22, in __getitem__\n    run(check=True)\nValueError: clip 27\n'
        late = 'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\nBrokenPipeError: [Errno 32] Broken pipe\n'
        command, rank = {"pid": 9, "parent_pid": 1, "exit_code": 1}, {"pid": 11, "parent_pid": 9, "rank": 1, "exit_code": 1, "traceback": error, "raised_us": 5_000_000}
        decoder = {"pid": 20, "parent_pid": 1, "rank": 1, "exit_code": 1, "traceback": late, "started_us": 5_200_000, "raised_us": 5_300_000, "ended_us": 5_400_000}
        again = {**rank, "pid": 21, "started_us": 10_000_000, "raised_us": 11_000_000, "ended_us": 12_000_000}
        for name, more, was_again in (("left", decoder, False), ("again", again, True)):
            first = self.all_of(name, [command, rank, more])[0]
            self.assertEqual("Rank 1 raised ValueError: clip 27", first["title"])
            self.assertEqual(was_again, "started again" in first["detail"], first["detail"])

    def all_of(self, name, processes, aborts=()):
        processes = [{"pid": 100 + index, "parent_pid": 99, "started_us": 1_000_000, "ended_us": 9_000_000 + index, **one} for index, one in enumerate(processes)]
        self.save(f"{name}/run.json", json.dumps({"command": ["a"], "directory": "/", "started_us": 1, "exit_code": 1, "processes": processes,
                                                  "printed_aborts": [{"rank": rank, "text": text} for rank, text in aborts]}))
        return ask("findings", self.ingest(os.path.join(self.scratch, name), name=name))["findings"]

    def first_of(self, name, processes, aborts=()):
        found = self.all_of(name, processes, aborts)
        return found[0]["title"] if found else None

    def test_whose_the_text_of_an_abort_is(self):
        command, asked = {"exit_code": 1}, {"rank": 0, "signal": 15}
        one, other = {"rank": 1, "signal": 6}, {"rank": 2, "signal": 6}
        for name, processes, aborts, title in (
                ("alone", [command, one], [(None, "free(): invalid pointer")], "Rank 1 was ended by SIGABRT: free(): invalid pointer"),
                ("seen_with_others", [command, asked, one], [(None, "a: b")], "Rank 1 was ended by SIGABRT: a: b"),
                ("same", [command, one, other], [(None, "a: b")] * 2, "Rank 1 was ended by SIGABRT: a: b"),
                ("not_known", [command, one, other], [(None, "a: b"), (None, "c")], "Rank 1 was ended by SIGABRT"),
                ("of_rank", [command, one, other], [(2, "c"), (1, "a: b")], "Rank 1 was ended by SIGABRT: a: b"),
                ("of_backend", [command, one], [(None, "gloo::EnforceNotMet: 80 vs 8")], "Rank 1 was ended by SIGABRT (gloo::EnforceNotMet: 80 vs 8)"),
                ("of_another", [command, {"rank": 1, "signal": 11}], [(None, "a: b")], "Rank 1 was ended by SIGSEGV"),
                ("asked", [command, asked, {"rank": 1, "signal": 9}], [], None)):
            with self.subTest(name):
                self.assertEqual(self.first_of(name, processes, aborts), title)

    def test_an_abort_by_calls_that_do_not_fit(self):
        gone = traceback(0, GONE, line=26).replace("[rank0]: ", "").replace("/rec/train.py", "/u/a.py")
        gloo, own = [(None, "gloo::EnforceNotMet: op.preamble.length <= op.nbytes. 80 vs 8")], [(None, "std::bad_alloc")]
        call = "/u/a.py:20 in <module>, which called all_reduce"
        end = "Rank 0 was ended by SIGABRT at a.py:20"
        note = " (gloo::EnforceNotMet: op.preamble.length <= op.nbytes. 80 vs 8)"
        for name, at, text, aborts, title, advice, ranks in (
                ("apart", call, gone, gloo, end + note + ", ranks 1,2 were at a.py:26", "compare a.py:26 with a.py:20", [0]),
                ("no_text", call, gone, [], end + ", ranks 1,2 were at a.py:26", "compare a.py:26 with a.py:20", [0]),
                ("together", call, gone.replace("line 26", "line 20"), gloo, end + note, "compare what the ranks pass at a.py:20", [0, 1, 2]),
                ("own", call, gone, own, end + ": std::bad_alloc", None, [0]),
                ("own_code", "/u/a.py:20 in clean", gone, [], end, "read what was printed last", [0])):
            with self.subTest(name):
                others = [{"rank": rank, "exit_code": 1, "raised_us": 9_000_000, "traceback": text} for rank in (2, 1)]
                found = self.all_of(name, [{"exit_code": 1}, {"rank": 0, "signal": 6, "at": at, "fault_thread": "main", "ended_us": 8_000_000}, *others], aborts)
                self.assertEqual((found[0]["title"], found[0]["ranks"]), (title, ranks))
                self.assertTrue((found[0]["try"] or "").startswith(advice or ""), found[0]["try"])
                self.assertEqual(found[0]["try"] is None, advice is None)

    def test_where_a_rank_was_that_found_the_others_gone(self):
        """At once when they give up, it had waited elsewhere; much later it may have gone on to there."""
        texts = [traceback(0, message, line=line).replace("[rank0]: ", "").replace("/rec/train.py", "/u/a.py") for message, line in ((LATE, 28), (GONE, 25))]
        gave_up = "Ranks 0-2 raised RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 60000ms for recv operation to complete"
        for name, later_us, title, ranks in (("at_once", 7_000, "Rank 3 was at a.py:25 when ranks 0-2 gave up waiting at a.py:28", [3]), ("later", 9_000_000, gave_up, [0, 1, 2])):
            processes = [{"rank": rank, "exit_code": 1, "ended_us": 80_000_000, "raised_us": 60_000_000 + (later_us if rank == 3 else rank),
                          "traceback": texts[rank == 3]} for rank in range(4)]
            found = self.all_of(name, [{"exit_code": 1, "ended_us": 81_000_000}, *processes])
            self.assertEqual((found[0]["title"], found[0]["ranks"]), (title, ranks))

    def test_ranks_that_send_and_receive_in_vain_while_one_is_elsewhere(self):
        """It raised nothing: what the others miss is not among themselves."""
        waits = [traceback(0, LATE.replace("recv", what), line=51).replace("[rank0]: ", "").replace("/rec/train.py", "/u/a.py") for what in ("send", "recv")]
        waiting = [{"rank": rank, "exit_code": 1, "ended_us": 80_000_000, "raised_us": 60_000_000 + rank, "traceback": waits[rank]} for rank in range(2)]
        found = self.all_of("reads", [{"exit_code": 1, "ended_us": 81_000_000}, *waiting, {"rank": 2, "signal": 15, "at": "/u/a.py:33 in encode", "ended_us": 80_000_001}])
        self.assertEqual((found[0]["title"], found[0]["ranks"], found[0]["place"]["line"]), ("Rank 2 was at a.py:33 when ranks 0,1 gave up waiting at a.py:51", [2], 33))
        self.assertRegex(found[0]["detail"], r"^Rank 0 first, at .*; it ended with exit code 1 .* Rank 2 was at /u/a\.py:33 in encode then\.$")

    def test_an_exception_of_another_process_by_rpc(self):
        """The type of the callee writes its message as a string of Python; PyTorch 2.15.0."""
        remote = ("On WorkerInfo(id=0, name=store):\n{0}\nTraceback (most recent call last):\n"
                  "  File \"/v/site-packages/torch/distributed/rpc/internal.py\", line 209, in _run_function\n    result = python_udf.func()\n"
                  "  File \"/u/serve.py\", line 22, in push\n    weights[name] -= gradient\n{1}\n")
        began = ("Traceback (most recent call last):\n  File \"/u/a.py\", line 61, in <module>\n    main()\n  File \"/u/a.py\", line 47, in train\n    rpc.rpc_sync(\"store\", push)\n"
                 "  File \"/v/site-packages/torch/distributed/rpc/api.py\", line 842, in rpc_sync\n    return fut.wait()\n")
        key, value = remote.format("KeyError('b.scale')", "KeyError: 'b.scale'"), remote.format("ValueError('odd')", "ValueError: odd")
        for name, text, told in (("key", f"RuntimeError: KeyError: {key!r}\n\nAt:\n  internal.py(236): _handle_exception\n", "KeyError: 'b.scale'"),
                                 ("value", f"RuntimeError: ValueError: {value}\n\nAt:\n  internal.py(236): _handle_exception\n", "ValueError: odd")):
            first, = self.all_of(f"rpc_{name}", [{"exit_code": 1}, {"rank": 2, "exit_code": 1, "raised_us": 9_000_000, "traceback": began + text}])
            self.assertEqual((f"Rank 2 raised {told} (on worker store of torch.distributed.rpc)", "/u/serve.py", 22),
                             (first["title"], first["place"]["file"], first["place"]["line"]))
            self.assertIn(" Above it in the traceback: a.py:47 in train.", first["detail"])
            self.assertNotIn("\\n", first["detail"])

    def test_the_caller_of_a_helper_and_the_end_of_a_long_message(self):
        middle = " ".join(f"word{i}" for i in range(200))
        text = ("Traceback (most recent call last):\n  File \"/u/a.py\", line 61, in <module>\n    main()\n  File \"/u/a.py\", line 47, in main\n    exchange(x)\n"
                f"  File \"/u/moe.py\", line 18, in exchange\n    raise RuntimeError(x)\nRuntimeError: It failed. {middle}. Parameter 4 got none.\n")
        first, = self.all_of("caller", [{"exit_code": 1}, {"rank": 1, "exit_code": 1, "raised_us": 9_000_000, "traceback": text}])
        self.assertIn(" Above it in the traceback: a.py:47 in main. The message goes on: word0 word1 ", first["detail"])
        self.assertRegex(first["detail"], r"word\d+ … word\d+ .* word199\. Parameter 4 got none\.$")

    def test_a_checkpoint_that_one_rank_could_not_write(self):
        """All raise what names it."""
        text = (traceback(0, "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([1])").replace("[rank0]: ", "") +
                "Traceback (most recent call last): (RANK 1)\n  File \"/v/site-packages/torch/distributed/checkpoint/utils.py\", line 197, in reduce_scatter\n    f()\n"
                "  File \"/u/a.py\", line 17, in write_data\n    raise OSError(122)\nOSError: [Errno 122] Disk quota exceeded: '/b/step6'\n")
        found = self.all_of("quota", [{"exit_code": 1}, *({"rank": rank, "exit_code": 1, "raised_us": 9_000_000 + rank, "traceback": text} for rank in range(3))])
        self.assertEqual((found[0]["title"], found[0]["ranks"], found[0]["place"]["line"]), (
            "Rank 1 raised OSError: [Errno 122] Disk quota exceeded: '/b/step6': each of the 3 ranks raised CheckpointException", [1], 17))

    def test_a_rank_that_was_done_before_others_hung(self):
        hang = {"time_us": 5_000_000, "why": "idle", "was_ended": True, "taken": [f"rank {rank} (pid 1) is at /u/a.py:7 in f, which called barrier" for rank in (0, 2)]}
        for name, ended_us, ranks, title in (("early", 3_000_000, [1], "Rank 1 had ended with exit code 0 when the others hung, ranks 0,2 in barrier at a.py:7"),
                                             ("late", 7_000_000, [], "The command seemed to hang, ranks 0,2 in barrier at a.py:7")):
            processes = [{"pid": 99, "signal": 15}, *({"pid": 100 + rank, "rank": rank, "signal": 15} for rank in (0, 2)), {"pid": 101, "rank": 1, "exit_code": 0, "ended_us": ended_us}]
            self.save(f"{name}/run.json", json.dumps({"command": ["a"], "directory": "/", "started_us": 1, "exit_code": 143, "hangs": [hang],
                                                      "processes": [{"started_us": 1, "ended_us": 6_000_000, **one} for one in processes]}))
            first = ask("findings", self.ingest(os.path.join(self.scratch, name), name=name))["findings"][0]
            self.assertEqual((first["kind"], first["ranks"], first["title"]), ("stuck", ranks, title))

    def test_a_rank_that_was_busy_and_then_where_the_others_were(self):
        for name, place, titles in (("still", "load", ["Rank 1 was busy in load at a.py:9 while the others waited, rank 0 in all_reduce at a.py:33", "Rank 1 was ended by SIGKILL"]),
                                    ("no_longer", "all_reduce", ["Rank 1 was ended by SIGKILL"])):
            where = ("/u/a.py:33 in main, which called all_reduce", "/u/a.py:9 in main, which called load" if place == "load" else "/u/a.py:33 in main, which called all_reduce")
            hang = {"time_us": 5_000_000, "why": "rank 1 alone used the CPU for 20 s", "busy": [1], "taken": [f"rank {rank} (pid 1) is at {where[rank]}" for rank in range(2)]}
            processes = [{"pid": 99, "exit_code": 1}, {"pid": 101, "rank": 1, "signal": 9}, {"pid": 100, "rank": 0, "signal": 15}]
            self.save(f"{name}/run.json", json.dumps({"command": ["a"], "directory": "/", "started_us": 1, "exit_code": 1, "hangs": [hang],
                                                      "processes": [{"started_us": 1, "ended_us": 6_000_000 + number, **one} for number, one in enumerate(processes)]}))
            first = ask("findings", self.ingest(os.path.join(self.scratch, name), name=name))["findings"][0]
            self.assertEqual(sorted([first["title"], *(one["title"] for one in first["evidence"])]), sorted(titles))

    def test_a_rank_that_was_done_before_others_gave_up_waiting(self):
        late = traceback(0, "torch.distributed.DistStoreError: wait timeout after 20000ms, keys: /0").replace("[rank0]: ", "")
        waited = [{"rank": rank, "exit_code": 1, "ended_us": 60_000_000, "raised_us": 59_000_000, "traceback": late} for rank in (0, 1)]
        done = {"rank": 2, "exit_code": 0, "ended_us": 30_000_000}
        self.assertEqual(self.first_of("done", [{"exit_code": 1}, *waited, done]), "Rank 2 ended with exit code 0 before ranks 0,1, which waited in vain")
        self.assertEqual(self.first_of("later", [{"exit_code": 1}, *waited, {**done, "ended_us": 61_000_000}]),
                         "Ranks 0,1 raised DistStoreError: wait timeout after 20000ms, keys: /0")


if __name__ == "__main__":
    unittest.main()
