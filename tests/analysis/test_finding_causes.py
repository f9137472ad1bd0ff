"""Findings of compiles: recompiles, failures, graph breaks, exceptions that the log does not name."""

import json
import os
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, SHARED, AnswerTest, ask, record, run  # noqa: E402


class Recompiles(AnswerTest):
    def test_grouped_by_function_with_what_varied(self):
        findings = {one["title"].split()[0]: one for one in ask("findings", self.job("recompiles_2_6"))["findings"]}
        # What the limit refused is no recompile. A function that is refused again had not been left to run eagerly: its caller got an error.
        self.assertEqual(findings["limit_fullgraph"]["title"], "limit_fullgraph was recompiled 3 times (n: 1, 2, 3, 4); "
                         "4 further attempts were refused at the recompile limit, which is an error with fullgraph=True")
        self.assertEqual(findings["limit_fullgraph"]["severity"], "error")
        self.assertRegex(findings["by_shape"]["title"], r"recompiled 3 times \(size 0 of x: 2, 3, 4, 5, 6\); 1 further attempt was refused .*: it runs "
                         "eagerly from then on where no compile fits, or fails with fullgraph=True")
        # It is compiled with dynamic=False.
        self.assertEqual(findings["by_shape"]["try"], "leave out what sets torch._dynamo.config.automatic_dynamic_shapes to False, as "
                         "torch.compile(dynamic=False) does, if size 0 of x is meant to vary")
        self.assertRegex(findings["by_dtype"]["title"], r"recompiled 3 times \(dtype of x: Float, Double, Half, BFloat16, Int\); 1 further")
        self.assertRegex(findings["by_global"]["title"], "recompiled 3 times")
        self.assertRegex(findings["by_const"]["title"], "recompiled twice")
        count = sum(len(one["compiles"]) for one in findings.values())
        connection = sqlite3.connect(self.job("recompiles_2_6"))
        self.addCleanup(connection.close)
        self.assertEqual(count, connection.execute("SELECT count(DISTINCT compile_id) FROM recompile").fetchone()[0])

    def test_code_and_line_are_of_one_origin(self):
        """A guard may come from several lines; paths are cut at the left by PyTorch."""
        first = ("0/0: 2 <= x.size()[0] <= 31  # n = x.shape[0]  # ser/jobs/job.py:114 in f (user code shown is first use (of this, value)) "
                 "and if n < 32: s = x.sin()  # ser/jobs/job.py:115 in f (_dynamo/variables/tensor.py:2849 in evaluate_expr)")
        place = self.place(first)
        self.assertEqual((place["file"], place["line"], place["code"]), ("/u/jobs/job.py", 115, "if n < 32: s = x.sin()"))
        place = self.place("0/0: x == 2  # a = b  # c  # k/other/model.py:7 in g (HINT: a hint)")
        self.assertEqual((place["file"], place["line"], place["code"]), ("…/other/model.py", 7, "a = b  # c"))
        place = self.place('0/0: x == 2\nUser stack trace:\n  File "/u/jobs/job.py", line 9, in f\n    y = x + 1\n')
        self.assertEqual((place["file"], place["line"], place["code"]), ("/u/jobs/job.py", 9, "y = x + 1"))

    def place(self, reason):
        path = os.path.join(self.scratch, f"{abs(hash(reason))}.log")
        with open(path, "w") as file:
            for number in range(2):
                ids = {"frame_id": 0, "frame_compile_id": number, "attempt": 0}
                file.write(record({"dynamo_start": {"stack": []}, **ids}))
                if number:
                    file.write(record({"artifact": {"name": "recompile_reasons", "encoding": "json"}, **ids}, json.dumps([reason])))
                file.write(record({"compilation_metrics": {"co_name": "f", "co_filename": "/u/jobs/job.py", "co_firstlineno": 100}, **ids}))
        findings = ask("findings", self.ingest(path, name=os.path.basename(path)))["findings"]
        return next(one for one in findings if one["kind"] == "recompiles")["place"]

    def test_once_on_each_rank_is_once(self):
        findings = ask("findings", self.job("fsdp2"))["findings"]
        self.assertIn("forward at d_fsdp2.py:15 was recompiled once on each of the 4 ranks", [one["title"].split(" (")[0] for one in findings])

    def recompiled(self, functions, reasons, rank=None, times=()):
        """A log in which each function is compiled again for its reason, once, or so many times."""
        records = []
        for frame, (function, reason) in enumerate(zip(functions, reasons)):
            for number in range(1 + (times[frame] if times else 1)):
                ids = {"frame_id": frame, "frame_compile_id": number, "attempt": 0, **({} if rank is None else {"rank": rank})}
                records.append(record({"dynamo_start": {"stack": []}, **ids}))
                if number:
                    records.append(record({"artifact": {"name": "recompile_reasons", "encoding": "json"}, **ids}, json.dumps([reason])))
                records.append(record({"compilation_metrics": {"co_name": function, "co_filename": "/u/m.py", "co_firstlineno": 10 + frame}, **ids}))
        return self.save(f"job/dedicated_log_torch_trace_rank_{rank or 0}_abcdefgh.log", *records)

    def recompiles(self):
        findings = ask("findings", self.ingest(os.path.join(self.scratch, "job")))["findings"]
        return [one for one in findings if one["kind"] == "recompiles"]

    def test_a_mode_that_changed_is_one_note(self):
        self.recompiled("abc", [f"{frame}/0: GLOBAL_STATE changed: grad_mode" for frame in range(3)], rank=0)
        (one,) = self.recompiles()
        self.assertEqual((one["title"], one["severity"], len(one["evidence"])),
                         ("a and 2 other functions were recompiled once (GLOBAL_STATE changed: grad_mode)", "note", 2))

    def test_how_often_is_not_told_of_functions_that_differ_in_it(self):
        self.recompiled("ab", [f"{frame}/0: GLOBAL_STATE changed: grad_mode" for frame in range(2)], rank=0, times=(1, 2))
        (one,) = self.recompiles()
        self.assertEqual(one["title"], "a and 1 other function were recompiled (GLOBAL_STATE changed: grad_mode)")
        self.assertEqual([other["title"] for other in one["evidence"]], ["b was recompiled twice (GLOBAL_STATE changed: grad_mode)"])

    def test_a_mode_comes_behind_values(self):
        self.recompiled("ab", ["0/0: GLOBAL_STATE changed: grad_mode", "1/0: self.k == 4.0"], rank=0)
        self.assertEqual([one["title"] for one in self.recompiles()], ["b was recompiled once (self.k: 4.0)", "a was recompiled once (GLOBAL_STATE changed: grad_mode)"])

    LIBRARY = "/usr/lib/python3/dist-packages/lib/model.py"

    def library(self, functions, reasons_of):
        """A log of functions of a library that line 20 of a user's file runs, each with its recompiles."""
        records = [record({"str": ["/u/serve.py", 0]}), record({"str": [self.LIBRARY, 1]})]
        for frame, (function, reasons) in enumerate(zip(functions, reasons_of)):
            stack = [{"line": 20, "name": "serve", "filename": 0}, {"line": 10 + frame, "name": function, "filename": 1}]
            for number, reason in enumerate((None, *reasons)):
                ids = {"frame_id": frame, "frame_compile_id": number, "attempt": 0}
                if reason:
                    reason = f"{frame}/{number - 1}: {reason}  # x = f(x)  # {self.LIBRARY[1:]}:{30 + frame} in {function}"
                    records.append(record({"artifact": {"name": "recompile_reasons", "encoding": "json"}, **ids}, json.dumps([reason])))
                records.append(record({"dynamo_start": {"stack": stack}, **ids}))
                records.append(record({"compilation_metrics": {"co_name": function, "co_filename": self.LIBRARY, "co_firstlineno": 10 + frame}, **ids}))
        self.save("job/dedicated_log_torch_trace_rank_0_abcdefgh.log", *records)

    def test_what_a_line_recompiles_in_a_library_is_one_note(self):
        self.library("abcd", [[f"tensor '{name}' size mismatch at index 1. expected 12, actual 1"] for name in "wxyz"])
        (one,) = self.recompiles()
        self.assertEqual((one["title"], one["severity"]), ("4 functions of libraries were recompiled below serve.py:20 (size 1 of w: 12, 1; size 1 of x: 12, 1; "
                                                           "size 1 of y: 12, 1; and 1 more)", "note"))
        self.assertEqual([other["title"] for other in one["evidence"]], [f"{name} was recompiled once (size 1 of {size}: 12, 1)" for name, size in zip("abcd", "wxyz")])

    def test_two_functions_of_a_library_are_told_one_by_one(self):
        self.library("ab", [[f"tensor '{name}' size mismatch at index 1. expected 12, actual 1"] for name in "wx"])
        self.assertEqual(len(self.recompiles()), 2)

    def test_a_wrapper_of_a_library_is_compiled_for_each_function_that_it_wraps(self):
        calls = ["len(args) == 1", "len(args) == 2", "not args", "len(kwargs) == 3", "len(args) == 1", "len(args) == 4"]
        self.library(["wrapper"], [calls])
        (one,) = self.recompiles()
        self.assertEqual(one["severity"], "note")
        self.assertIn("a library wraps several functions in this code, or calls it in several ways.", one["detail"])
        self.library(["wrapper"], [[f"tensor 'x' size mismatch at index 1. expected {n}, actual {n + 1}" for n in range(2, 8)]])
        (one,) = self.recompiles()
        self.assertEqual(one["severity"], "warning")

    def test_values_of_one_rank_are_not_told_of_the_others(self):
        for rank in range(2):
            self.recompiled("f", [f"0/0: tensor 'x' size mismatch at index 0. expected 8, actual {16 + rank}"], rank=rank)
        (one,) = self.recompiles()
        self.assertEqual(one["title"], "f was recompiled once on each of the 2 ranks (size 0 of x: 8, 16 on rank 0)")
        self.assertIn("Guards that failed on rank 0: ", one["detail"])


class AheadOfTime(AnswerTest):
    """torch._dynamo.aot_compile, as vLLM calls it: Dynamo's part has ids and neither start nor metrics, what follows has no ids. Its
    metrics come after the event that encloses both, the numbers of its backend in a record of their own."""

    def test_a_compile_ahead_of_time_is_one_compile_with_its_function(self):
        start = 1_795_959_369_000_000
        ids = {"rank": 0, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}

        def event(name, phase, seconds, ids={"rank": 0}):
            compile_id = "0/0" if "frame_id" in ids else "None"
            return record({"chromium_event": {}, **ids}, json.dumps({"name": name, "ts": start + seconds * 1e6, "args": {"compile_id": compile_id}, "ph": phase,
                                                                     "cat": "dynamo_timed", "tid": 0, "pid": 0}))

        stack = [{"line": 418, "name": "forward", "filename": 0}, {"line": 404, "name": "embed", "filename": 0}]
        symbol = {"symbol": "s72", "val": "8", "vr": "[2, int_oo]", "source": "L['x'].size()[0]", "user_stack": stack, "stack": stack}
        metrics = {"compile_id": None, "co_name": None, "start_time": start / 1e6}
        path = self.save(
            "r.log", record({"str": ["/u/llama.py", 0]}), event("fullgraph_capture", "B", 0), event("compile_attempt_0", "B", 1, ids),
            record({"create_symbol": symbol, **ids}), record({"dynamo_output_graph": {"sizes": {}}, **ids}, "class GraphModule: pass"),
            event("compile_attempt_0", "E", 4, ids), record({"aot_inference_graph": {}, "rank": 0, "stack": stack}, "class <lambda>: pass"),
            event("fullgraph_capture", "E", 120), record({"compilation_metrics": {**metrics, "duration_us": 10704}, "rank": 0, "stack": stack}),
            record({"compilation_metrics_runtime": {**metrics, "start_time": start / 1e6 + 5, "duration_us": 110_000_000}, "rank": 0, "stack": stack}))
        compiles = ask("history", self.ingest(path))["compiles"]
        self.assertEqual([(row["function"], row["status"], row["total_us"]) for row in compiles if row["label"].startswith("unknown_")],
                         [("forward", "ok", 120_000_000)])
        self.assertEqual({row["label"][:7]: row["restarts"] for row in compiles}, {"0/0": 0, "unknown": None})
        self.assertEqual([(row["function"], row["status"]) for row in compiles if row["label"] == "0/0"], [("forward", "ok")])


class Failures(AnswerTest):
    def test_a_violated_constraint_says_what_was_violated_and_the_suggestion_has_the_remedy(self):
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        reason = ("Constraints violated (L['x'].size()[0])! For more information, run with TORCH_LOGS=\"+dynamic\".\n  - You marked L['x'].size()[0] as "
                  "dynamic but your code specialized it to be a constant (8). Use maybe_mark_dynamic.\n\nThe above exception was the cause")
        metrics = {"co_name": "f", "co_filename": "/u/m.py", "co_firstlineno": 3, "fail_reason": reason,
                   "fail_type": "torch.fx.experimental.symbolic_shapes.ConstraintViolationError"}
        for number, form in enumerate(("{}", "<class '{}'>")):  # the latter: PyTorch 2.3
            path = self.save(f"r{number}.log", record({"dynamo_start": {"stack": []}, **ids}),
                             record({"compilation_metrics": {**metrics, "fail_type": form.format(metrics["fail_type"])}, **ids}))
            (one,) = [one for one in ask("findings", self.ingest(path, name=f"r{number}"))["findings"] if one["kind"] == "compile_failed"]
            self.assertEqual(one["cause"], "ConstraintViolationError: Constraints violated (L['x'].size()[0])! You marked L['x'].size()[0] as dynamic but "
                                           "your code specialized it to be a constant (8)")
            self.assertIn("torch._dynamo.maybe_mark_dynamic", one["try"])

    def test_the_place_of_a_failure_in_a_library_is_the_line_that_ran_it(self):
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        library = "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py"
        stack = [{"line": 20, "name": "serve", "filename": 0}, {"line": 67, "name": "inner", "filename": 1}]
        reason = f'bad shape\n\nfrom user code:\n   File "{library}", line 134, in forward\n    return F.linear(input, self.weight, self.bias)\n'
        error = f"Traceback (most recent call last):\n  File \"/x.py\", line 1, in f\nValueError: {reason}"
        metrics = {"co_name": "inner", "co_filename": library, "co_firstlineno": 67, "fail_type": "ValueError", "fail_reason": reason}
        path = self.save("r.log", record({"str": ["/u/server.py", 0]}), record({"str": [library, 1]}), record({"dynamo_start": {"stack": stack}, **ids}),
                         record({"artifact": {"name": "dynamo_error", "encoding": "string"}, **ids}, error), record({"compilation_metrics": metrics, **ids}))
        one, = ask("findings", self.ingest(path))["findings"]
        self.assertEqual((one["place"]["file"], one["place"]["line"]), ("/u/server.py", 20))
        self.assertIn(f"The code is of a library, {library}:134; the place named is the line of the user's code that ran it.", one["detail"])

    def test_another_function_with_the_same_label_did_not_compile_it(self):
        for number, (name, failed) in enumerate((("whiten", {}), ("train", {"fail_type": "ValueError", "fail_reason": "bad"}))):
            ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
            metrics = {"co_name": name, "co_filename": "/u/m.py", "co_firstlineno": 3, **failed}
            self.save(f"job/{name}.log", record({"dynamo_start": {"stack": []}, **ids}, time=f"08:30:0{number}.000000"),
                      record({"compilation_metrics": metrics, **ids}, time=f"08:30:0{number}.500000"))
        one, = [one for one in ask("findings", self.ingest(os.path.join(self.scratch, "job")))["findings"] if one["kind"] == "compile_failed"]
        self.assertNotIn("compiled it", one["detail"] or "")

    def test_one_exception_is_one_finding(self):
        findings = [one for one in ask("findings", self.job("failures"))["findings"] if one["kind"] == "compile_failed"]
        connection = sqlite3.connect(self.job("failures"))
        self.addCleanup(connection.close)
        # A function that PyTorch skips after a graph break is no failure.
        failed = connection.execute("""SELECT count(*) FROM compile c WHERE status = 'failed' AND NOT EXISTS (SELECT 1 FROM graph_break g
            WHERE g.compile_id = c.id AND g.reason LIKE '%Skipping the function and falling back to eager%')""").fetchone()[0]
        self.assertEqual(sum(len(one["compiles"]) for one in findings), failed)
        self.assertTrue(all("Set TORCHDYNAMO_VERBOSE" not in one["title"] for one in findings))
        self.assertNotIn("the graph so far", json.dumps(findings))


class GraphBreaks(AnswerTest):
    def test_the_cause_is_said_and_the_announcement_left_out(self):
        for scenario in ("ddp_optimizer_2_6", "graph_breaks_2_6", "fsdp2"):
            for one in ask("findings", self.job(scenario))["findings"]:
                self.assertNotIn("Encountered graph break", one["title"])
                self.assertNotIn("Failed to handle graph break gracefully", one["title"])

    def test_a_frame_that_runs_eagerly_is_no_failed_compile(self):
        findings = ask("findings", self.job("graph_breaks_2_6"))["findings"]
        self.assertEqual([one["title"] for one in findings if one["severity"] == "error"], [])
        self.assertEqual([one["title"] for one in findings if "32/0" in one["compiles"]],
                         ["tolist is not compiled, it runs eagerly: graph break at s_graph_breaks.py:84: DataDependentOutputException: "
                          "aten._local_scalar_dense.default"])
        self.assertRegex(next(one["title"] for one in findings if "14/0" in one["compiles"]), "^in_loop is not compiled, it runs eagerly: graph break at")
        # PyTorch 2.6 logs an unsupported construct with and without fullgraph=True alike.
        in_try = next(one for one in findings if "15/0" in one["compiles"])
        self.assertRegex(in_try["title"], "^15/0 in_try is not compiled: Unsupported: ")
        self.assertIn("does not show which", in_try["detail"])

    def test_functions_that_torch_func_calls_after_a_break_are_part_of_it(self):
        """Nothing failed but the graph: they run eagerly as well."""
        text = ("Observed exception\n  Explanation: Dynamo found no exception handler.\n\n  Developer debug context: raised exception RuntimeError(\"Dynamo "
                "failed to run FX node with fake tensors: call_function <built-in function sub>(*(BatchedTensor(lvl=1, bdim=0, value=\\n    FakeTensor(..., "
                "size=(8, 12, 1))\\n)), **{}): got RuntimeError('size 12 and size 10')\")\n\n For more details\n")
        failed = {"fail_type": "Unsupported", "fail_reason": "Unsupported functorch tracing attempt\n  Explanation: If you are reaching here, it means dynamo "
                  "failed for one of the following reasons:\n    - Calling torch.func.vmap(compiled_fn) function from eager mode is not supported.\n"}
        for is_broken in (True, False):
            records = []
            for frame, name in enumerate(("outer", "task", "net")):
                ids = {"frame_id": frame, "frame_compile_id": 0, "attempt": 0}
                records.append(record({"dynamo_start": {"stack": []}, **ids}))
                if frame == 0 and is_broken:
                    records.append(record({"artifact": {"name": "dynamo_graph_break_reason", "encoding": "string"}, **ids}, text))
                metrics = {"co_name": name, "co_filename": "/u/maml.py", "co_firstlineno": 9, **(failed if frame else {})}
                records.append(record({"compilation_metrics": metrics, **ids}))
            findings = ask("findings", self.ingest(self.save(f"func_{is_broken}.log", *records), name=str(is_broken)))["findings"]
            self.assertEqual([one["severity"] for one in findings], ["warning"] if is_broken else ["error", "warning"])
            if is_broken:
                self.assertEqual(findings[0]["title"], "outer breaks the graph: Observed exception: RuntimeError('size 12 and size 10')")
                self.assertIn("task and net, which torch.func calls then, are not compiled either.", findings[0]["detail"])

    def test_the_place_is_the_users_line_and_a_break_of_a_library_is_not_said_to_be_there(self):
        stack = ('  File "/u/train.py", line 11, in opt_step\n    opt.step()\n'
                 '  File "/usr/lib/python3/dist-packages/torch/optim/optimizer.py", line 78, in _use_grad\n    torch._dynamo.graph_break()\n')
        for version, reason in (("2_14", "Call to `torch._dynamo.graph_break()`\n  Hint: Remove the `torch._dynamo.graph_break()` call.\n"),
                                ("2_6", "Unsupported: 'skip function graph_break in file /usr/lib/python3/dist-packages/torch/_dynamo/decorators.py'\n")):
            text = ("Graph break in user code at /usr/lib/python3/dist-packages/torch/optim/optimizer.py:78\nGraph Break Reason: " + reason
                    + "\nUser code traceback:\n" + stack)
            ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
            path = os.path.join(self.scratch, f"library_{version}.log")
            with open(path, "w") as file:
                file.write(record({"dynamo_start": {"stack": []}, **ids}))
                file.write(record({"artifact": {"name": "dynamo_graph_break_reason", "encoding": "string"}, **ids}, text))
                file.write(record({"compilation_metrics": {"co_name": "opt_step", "co_filename": "/u/train.py", "co_firstlineno": 9}, **ids}))
            one = ask("findings", self.ingest(path, name=version))["findings"][0]
            self.assertEqual(one["place"], {"file": "/u/train.py", "line": 11, "code": None})
            self.assertIn(" in optimizer.py:78, called from train.py:11: ", one["title"])
            self.assertIn("The break is meant by PyTorch, /usr/lib/python3/dist-packages/torch/optim/optimizer.py:78 "
                          "(torch._dynamo.graph_break()); the place named is the nearest line of the user's code.", one["detail"])
            # PyTorch asks for the break around an optimizer's step: there is nothing to try, and its hint is not given.
            self.assertEqual((one["try"], one["severity"]), (None, "note"), version)

    def test_a_break_before_a_function_of_pytorch_that_is_compiled_by_itself_is_a_note(self):
        """An optimizer's step, which a schedule wraps."""
        text = ("Graph break in user code at /u/train.py:11\nGraph Break Reason: Attempted to call function marked as skipped\n  Explanation: Dynamo developers "
                "have intentionally marked that the function `Adam.step` in file `/usr/lib/python3/dist-packages/torch/optim/lr_scheduler.py` should not be "
                "traced.\n  Hint: Avoid calling the function `Adam.step`.\n\nUser code traceback:\n  File \"/u/train.py\", line 11, in update\n    opt.step()\n")
        for is_compiled in (True, False):
            path = os.path.join(self.scratch, f"step_{is_compiled}.log")
            with open(path, "w") as file:
                for frame, (name, place) in enumerate((("update", "/u/train.py"), ("step", "/usr/lib/python3/dist-packages/torch/optim/adam.py"))):
                    ids = {"frame_id": frame, "frame_compile_id": 0, "attempt": 0}
                    if frame == 1 and not is_compiled:
                        continue
                    file.write(record({"dynamo_start": {"stack": []}, **ids}))
                    if frame == 0:
                        file.write(record({"artifact": {"name": "dynamo_graph_break_reason", "encoding": "string"}, **ids}, text))
                    file.write(record({"compilation_metrics": {"co_name": name, "co_filename": place, "co_firstlineno": 9}, **ids}))
            one, = ask("findings", self.ingest(path, name=str(is_compiled)))["findings"]
            self.assertEqual((one["severity"], one["try"] is None), ("note", True) if is_compiled else ("warning", False))
        self.assertNotIn("compiled by itself", one["detail"] or "")

    def test_a_break_between_pytorchs_own_functions_is_a_note(self):
        one, = [one for one in ask("findings", self.job("ddp_optimizer_2_6"))["findings"] if one["kind"] == "graph_break"]
        self.assertTrue(one["title"].startswith("inner breaks the graph in distributed.py:1511, called from d_ddp.py:29: "), one["title"])
        self.assertEqual(one["severity"], "note")


class UnfinishedWork(AnswerTest):
    def test_an_exception_that_pytorch_does_not_name_is_a_failure(self):
        """KeyboardInterrupt inside Inductor: a graph, metrics without an exception, no code."""
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        path = os.path.join(self.scratch, "interrupted.log")
        with open(path, "w") as file:
            file.write(record({"dynamo_start": {"stack": []}, **ids}) + record({"dynamo_output_graph": {"sizes": {}}, **ids}, "class GraphModule: pass"))
            file.write(record({"compilation_metrics": {"co_name": "f", "fail_type": None, "has_guarded_code": False}, **ids}))
        logs = {"synthetic": path}
        for version in ("2.6.0", "2.14.1"):
            shared = os.path.join(SHARED, "traces", version, "killed", "exception")
            if os.path.isdir(shared):
                logs[version] = shared
        for name, log in logs.items():
            with self.subTest(name):
                database = self.ingest(log, name=name)
                findings = ask("findings", database)["findings"]
                self.assertRegex(findings[0]["title"], "ended without code, and the log names no exception")
                self.assertEqual(findings[0]["kind"], "compile_failed")
                self.assertEqual({row["state"] for row in ask("status", database)["rows"]}, {"failed"})

    def test_only_a_log_that_ends_inside_a_compile_is_said_to(self):
        for scenario in ("export", "exotic", "compiled_autograd", "aoti_2_6", "dtrace", "mlp_train", "tlparse_meta"):
            if os.path.isdir(os.path.join(LOGS, scenario)):
                with self.subTest(scenario):
                    self.assertNotIn("stopped_first", {one["kind"] for one in ask("findings", self.job(scenario))["findings"]})
        killed = ask("findings", self.ingest(os.path.join(LOGS, "killed"), name="killed"))["findings"]
        self.assertIn("stopped_first", {one["kind"] for one in killed})


if __name__ == "__main__":
    unittest.main()
