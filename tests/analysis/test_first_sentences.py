"""What the first sentence names, of faults whose sign in the logs is far from their cause."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import ask, record, run  # noqa: E402
from test_sentences import SentenceTest  # noqa: E402


class RankTest(SentenceTest):
    def rank(self, rank, *records, suffix="abcdefgh"):
        self.log(f"job/dedicated_log_torch_trace_rank_{rank}_{suffix}.log", *records)

    def job_findings(self):
        self.database = self.ingest(os.path.join(self.scratch, "job"), name="job")
        return [one for one in self.findings(self.database) if one["kind"] != "missing_rank"]

    def compile(self, rank, frame, graph=None, guards=None, function="f", script="/u/m.py", time="08:30:01.000000", metrics=()):
        ids = {"rank": rank, "frame_id": frame, "frame_compile_id": 0, "attempt": 0}
        stack = [{"line": 3, "name": "<module>", "filename": 1, "loc": "f(x)"}, {"line": 10, "name": function, "filename": 1, "loc": "y = g(x)"}]
        text = record({"str": [script, 1]}, time=time) + record({"dynamo_start": {"stack": stack}, **ids}, time=time)
        if graph is not None:
            text += record({"dynamo_output_graph": {"sizes": {}}, **ids}, graph, time)
        if guards is not None:
            text += record({"dynamo_cpp_guards_str": {}, **ids}, guards, time)
        done = {"co_name": function, "co_filename": script, "co_firstlineno": 10, "compile_id": f"{frame}/0", **dict(metrics)}
        return text + record({"compilation_metrics": done, **ids}, time=time)


def graph(inputs, *lines):
    body = "".join(f"        {line}\n" for line in lines)
    return f"class GraphModule(torch.nn.Module):\n    def forward(self, {inputs}):\n{body}        return (y,)\n"


class Times(RankTest):
    def timed(self, rank, *compiles):
        """Of each its function, and when it began and how long it took, in seconds."""
        metrics = [{"start_time_us": 1795854601_000000 + start * 1000000, "duration_us": seconds * 1000000} for _, start, seconds in compiles]
        self.rank(rank, *(self.compile(rank, frame, graph('L_x_: "f32[4]"', "l_x_ = L_x_", f'y: "f32[4]" = l_x_.{one[0]}()'), function=one[0], metrics=metrics[frame])
                          for frame, one in enumerate(compiles)))

    def test_compiles_in_another_order_are_no_delay(self):
        """Each rank compiles what the other then finds in the cache."""
        for again in (1, 13):
            self.timed(0, ("cos", 1, 13), ("sin", 13, 1))
            self.timed(1, ("sin", 1, 13), ("cos", 13, again))
            self.assertEqual([one["ranks"] for one in self.job_findings() if one["kind"] == "slow_rank"], [[1]] if again > 1 else [])

    def test_logs_without_a_rank_have_no_slowest(self):
        """They may be of programs that ran one after another."""
        for ranked in (True, False):
            for rank, seconds in enumerate((2, 9)):
                text = self.compile(rank, 0, metrics={"start_time_us": 1795854601_000000, "duration_us": seconds * 1000000}).replace(" 4242 ", f" {5000 + rank} ")
                name = f"rank_{rank}_abcdefgh" if ranked else f"abcdefg{rank}"
                self.log(f"logs{ranked}/dedicated_log_torch_trace_{name}.log", text if ranked else text.replace(f'"rank": {rank}, ', ""))
            database = self.ingest(os.path.join(self.scratch, f"logs{ranked}"), name=f"logs{ranked}")
            self.assertEqual(run("ranks", database).count("slowest"), int(ranked))


class Graphs(RankTest):
    def test_lambdas_of_other_lines_are_other_functions(self):
        told = []
        for op in ("cos", "sin"):
            for rank in range(3):
                line, own = (14, op) if rank == 1 else (9, "sin")
                text = graph('L_x_: "f32[4]"', "l_x_ = L_x_", f"# File: /u/m.py:{line} in <lambda>, code: f = lambda x: x.{own}()", f'y: "f32[4]" = l_x_.{own}()')
                self.rank(rank, self.compile(rank, 0, text, function="<lambda>", metrics={"co_firstlineno": line}))
            told.append([one["title"] for one in self.job_findings()])
        # One that stands in another line and is equal is none.
        self.assertEqual(told, [["Rank 1 compiled <lambda> (m.py:14) as 0/0, most others compiled <lambda> (m.py:9)"], []])

    def test_a_dynamic_size_is_shown_with_its_parameter(self):
        weight = 'L_w_: "f32[12][1]cpu", '
        for rank in range(3):
            inputs = weight + ('s52: "Sym(s52)", L_x_: "f32[s52, 12][12, 1]cpu"' if rank == 1 else 'L_x_: "f32[8, 12][12, 1]cpu"')
            self.rank(rank, self.compile(rank, 0, graph(inputs, "l_x_ = L_x_", 'y: "f32[]" = l_x_.sum()')))
        one, = self.job_findings()
        self.assertEqual((one["kind"], one["ranks"], one["title"]),
                         ("graph_divergence", [1], "Rank 1 compiled another graph: 0/0 f: L_x_: f32[8 → s52, 12][12, 1]cpu"))
        self.assertIn("any size", one["detail"])
        self.assertIn("mark_dynamic", one["try"])

    def test_of_nodes_those_that_compute_are_shown(self):
        """Inputs and attributes are taken in the order in which they are used."""
        taken = ["l_a_ = L_a_", "w = self.weight", "l_b_ = L_b_"]
        for rank in range(3):
            lines = taken if rank < 2 else [taken[2], taken[1], taken[0]]
            called = "torch._foreach_add_" if rank < 2 else "l_a_.add_"
            self.rank(rank, self.compile(rank, 0, graph('L_a_: "f32[4]", L_b_: "f32[4]"', *lines, f'y: "f32[4]" = {called}(w, 1)')))
        one, = self.job_findings()
        self.assertEqual((one["ranks"], one["title"]),
                         ([2], "Rank 2 compiled another graph: 0/0 f: y = torch._foreach_add_ → y = l_a_.add_"))

    def test_the_value_that_two_ranks_were_compiled_for_is_said(self):
        for rank, value in enumerate(("True", "False")):
            guard = f"+- EQUALS_MATCH: L['self'].param_groups[0]['foreach'] == {value}  # if foreach:  # adam.py:7 in step"
            guards = f"\nTREE_GUARD_MANAGER:\n+- RootGuardManager\n| +- GuardManager: source=L['self'], type=<class 'Adam'>\n| | {guard}\n"
            self.rank(rank, self.compile(rank, 0, graph('L_x_: "f32[4]"', "l_x_ = L_x_", f'y: "f32[4]" = l_x_.{"mul" if rank else "add"}(1)'), guards))
        one, = self.job_findings()
        self.assertIn("Rank 1 compiled it for self.param_groups[0]['foreach'] == False, rank 0 for self.param_groups[0]['foreach'] == True, which "
                      "adam.py:7 tests: if foreach:", one["detail"])

    def test_a_graph_with_other_parameters_is_a_part_of_a_model(self):
        def body(tables):
            weights = [f"l_self_modules_t_modules_{k}_parameters_weight_ = L_self_modules_t_modules_{k}_parameters_weight_" for k in range(tables)]
            return graph('L_x_: "i64[4]"', *weights, *(f'e{k}: "f32[4, 8]" = torch.nn.functional.embedding(l_x_, {k})' for k in range(tables)))
        for rank in range(3):
            self.rank(rank, self.compile(rank, 0, body(2 if rank == 1 else 1)))
        one, = self.job_findings()
        self.assertEqual((one["kind"], one["severity"], one["ranks"]), ("graph_divergence", "note", [1]))
        self.assertIn("takes parameters that the other does not", one["detail"])


class Options(RankTest):
    def test_an_option_that_is_set_between_compiles(self):
        for rank in range(3):
            records = []
            for frame in range(3):
                config = {"assume_static_by_default": rank != 1 or frame == 0, "recompile_limit": 8}
                records.append(self.compile(rank, frame, function=f"f{frame}", metrics={"dynamo_config": json.dumps(config)}))
            self.rank(rank, *records)
        one, = self.job_findings()
        self.assertEqual((one["kind"], one["ranks"], one["title"]), (
            "config_divergence", [1], "Rank 1 compiled with another configuration: assume_static_by_default True → False"))

    def test_an_option_that_a_variable_sets(self):
        for rank in range(3):
            config = {"compiler_config": {"force_disable_caches": rank == 1}, "inductor_config": {"max_autotune": rank == 1, "max_fusion_size": 64 if rank == 1 else 13}}
            self.rank(rank, self.compile(rank, 0, metrics={name: json.dumps(values) for name, values in config.items()}))
        one, = self.job_findings()
        self.assertIn("; force_disable_caches is set by the variable TORCHINDUCTOR_FORCE_DISABLE_CACHES or TORCH_COMPILE_FORCE_DISABLE_CACHES, or torch.compiler.config", one["try"])
        self.assertTrue(one["try"].endswith("; max_autotune is also set by the variable TORCHINDUCTOR_MAX_AUTOTUNE"), one["try"])

    def test_a_value_may_hold_any_text(self):
        for rank in range(3):
            self.rank(rank, self.compile(rank, 0, metrics={"dynamo_config": json.dumps({"debug_mode": "a: 1 → 2; b" if rank == 2 else "c: 3 → 4; d"})}))
        one, = self.job_findings()
        self.assertEqual(one["title"], "Rank 2 compiled with another configuration: debug_mode c: 3 → 4; d → a: 1 → 2; b")
        self.assertEqual([(change["name"], change["value"]) for change in one["changes"]], [("torch._dynamo.config.debug_mode", "c: 3 → 4; d")])

    def test_options_of_keys_and_of_metrics_are_one_difference(self):
        for rank in range(3):
            ids = {"rank": rank, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}
            option = str(rank != 2)
            components = [f"[{'ab'[rank == 2] * 51}] inductor_config[epilogue_fusion]: {option}"]
            lookup = record({"artifact": {"name": "fx_graph_cache_miss", "encoding": "json"}, **ids},
                            json.dumps({"key": "f" + "ab"[rank == 2] * 51, "components": components, "cache_state": "miss"}))
            records = self.compile(rank, 0, metrics={"dynamo_config": json.dumps({"assume_static_by_default": rank != 2})})
            at = records.rindex("V1121")
            self.rank(rank, records[:at] + lookup + records[at:])
        one, = self.job_findings()
        self.assertEqual(one["title"], "Rank 2 compiled with another configuration: epilogue_fusion True → False; assume_static_by_default True → False")
        self.assertEqual(one["evidence"], [])

    def test_guards_fail_on_the_ranks_that_missed(self):
        """Most ranks hit; of the two that missed each has a graph of its own besides."""
        for rank in range(4):
            ids = {"rank": rank, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}
            event = {"key": "f" + "a" * 51, "components": [], "cache_state": "hit" if rank > 1 else "miss"}
            if rank < 2:
                event.update(cache_status_detailed="guard_miss", cache_status_guard_expr="s0 <= 64")
            lookup = record({"artifact": {"name": f"fx_graph_cache_{event['cache_state']}", "encoding": "json"}, **ids}, json.dumps(event))
            first = self.compile(rank, 0, graph('L_x_: "f32[4]"', "l_x_ = L_x_", 'y: "f32[4]" = l_x_.add(1)'))
            at = first.rindex("V1121")
            own = ("mul", "div", "sub", "sub")[rank]
            other = self.compile(rank, 1, graph('L_x_: "f32[4]"', "l_x_ = L_x_", f'y: "f32[4]" = l_x_.{own}(1)'), function="g")
            self.rank(rank, first[:at] + lookup + first[at:], other)
        told = [one for finding in self.job_findings() for one in (finding, *finding["evidence"]) if one["kind"] == "input_divergence"]
        self.assertEqual([one["title"].partition(" found ")[0] for one in told if "guards" in one["title"]], ["Ranks 0,1"])

    def test_a_rank_without_anything_of_inductor_has_another_backend(self):
        for rank in range(3):
            ids = {"rank": rank, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}
            compile_records = self.compile(rank, 0, graph('L_x_: "f32[4]"', "l_x_ = L_x_", 'y: "f32[4]" = l_x_.add(1)'))
            code = record({"inductor_output_code": {"filename": "/c/a.py"}, **ids}, "def call(args):\n    return args\n") if rank < 2 else ""
            at = compile_records.rindex("V1121")
            self.rank(rank, compile_records[:at] + code + compile_records[at:])
        one, = self.job_findings()
        self.assertEqual((one["kind"], one["ranks"], one["title"]), ("config_divergence", [2], "Rank 2 compiled with another configuration: backend: "
                         "Inductor → another (the log has neither generated code nor a cache lookup)"))


class Exceptions(RankTest):
    def test_what_an_op_raised_on_fake_tensors_is_said(self):
        reason = ("RuntimeError when making fake tensor call\n  Explanation: Dynamo failed to run FX node with fake tensors: call_function shop.scan("
                  "*(FakeTensor(..., size=(5,),\n               grad_fn=<ReluBackward0>),), **{}): got RuntimeError('There was no fake impl registered for shop.scan')\n"
                  "  Hint: Your code may result in an error when running in eager. Please double check.\n"
                  "  Hint: If the op is a custom op, did you implement a fake tensor implementation?\n"
                  "  Hint: If the op is a PyTorch op, please file an issue to PyTorch.\n")
        for rank in range(2):
            failed = {"fail_type": "torch._dynamo.exc.TorchRuntimeError", "fail_reason": reason} if rank else {}
            self.rank(rank, self.compile(rank, 0, metrics=failed))
        one = self.job_findings()[0]
        self.assertEqual(one["title"], "Rank 1 failed to compile 0/0 f: TorchRuntimeError: RuntimeError when making fake tensor call: "
                         "RuntimeError('There was no fake impl registered for shop.scan')")
        self.assertEqual(one["try"], "If the op is a custom op, did you implement a fake tensor implementation?")

    def test_a_log_that_goes_on_is_of_a_program_that_caught_it(self):
        failed = {"fail_type": "ValueError", "fail_reason": "bad"}
        for more, severity in ((False, "error"), (True, "note")):
            self.rank(0, self.compile(0, 0, function="h"), self.compile(0, 1, metrics=failed), *([self.compile(0, 2, function="g")] if more else []))
            one = self.job_findings()[0]
            self.assertEqual((one["title"], one["severity"]), ("Rank 0 failed to compile 1/0 f: ValueError: bad", severity))
            self.assertEqual("Its log goes on to another compile: the exception was caught." in one["detail"], more)

    def test_the_label_is_that_of_the_log(self):
        """Rank 1 compiled another function before it."""
        failed = {"fail_type": "ValueError", "fail_reason": "bad"}
        self.rank(0, self.compile(0, 0))
        self.rank(1, self.compile(1, 0, function="more"), self.compile(1, 1, metrics=failed))
        self.assertEqual(self.job_findings()[0]["title"], "Rank 1 failed to compile 1/0 f: ValueError: bad")

    def test_a_compiler_that_was_killed(self):
        reason = ("CppCompileError: C++ compile error\n\nCommand:\ng++ a.cpp\n\nOutput:\n"
                  "g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.\n")
        for rank in range(2):
            failed = {"fail_type": "torch._inductor.exc.InductorError", "fail_reason": reason} if rank else {}
            self.rank(rank, self.compile(rank, 0, metrics=failed))
        one = self.job_findings()[0]
        self.assertTrue(one["title"].endswith("fatal error: Killed signal terminated program cc1plus"), one["title"])
        self.assertIn("out of memory", one["try"])


class OtherFiles(RankTest):
    def of_file(self, folder, node, name="acts"):
        return graph('L_x_: "f32[4]"', "l_x_ = L_x_", f"# File: {folder}/{name}.py:4 in swish, code: return x * f(x)", f'y: "f32[4]" = l_x_.{node}(1)')

    def test_a_library_of_another_folder(self):
        for rank in range(3):
            self.rank(rank, self.compile(rank, 0, self.of_file("/opt/v2" if rank == 2 else "/opt/v1", "mul" if rank == 2 else "add")))
        one, = self.job_findings()
        self.assertEqual(one["ranks"], [2])
        self.assertTrue(one["title"].startswith("Rank 2 ran another text of acts.py: 0/0 f: y = l_x_.add → y = l_x_.mul"), one["title"])
        self.assertEqual(one["detail"], "Rank 2 ran /opt/v2/acts.py, ranks 0,1 /opt/v1/acts.py.")

    def test_a_folder_of_each_rank_is_no_other_text(self):
        for rank in range(3):
            self.rank(rank, self.compile(rank, 0, self.of_file(f"/job/{rank}", "mul" if rank == 2 else "add", "acts20")))
        one = self.job_findings()[0]
        self.assertTrue(one["title"].startswith("Rank 2 compiled another graph: 0/0 f: y = l_x_.add → y = l_x_.mul"), one["title"])
        self.assertIn("rank 0 (1 rank, the majority with those alike as far as their logs go)", " ".join(run("ranks", self.database).split()))


class WithoutIds(RankTest):
    def test_a_failed_export_has_the_line_that_began_it(self):
        stack = [{"line": 20, "name": "<module>", "filename": 1, "loc": "aoti_compile_and_package(ep)"},
                 {"line": 161, "name": "aoti_compile_and_package", "filename": 2, "loc": "return f()"}]
        text = record({"str": ["/u/pack.py", 1]}) + record({"str": ["/usr/lib/python3/dist-packages/torch/_inductor/__init__.py", 2]})
        text += record({"artifact": {"name": "before_pre_grad_graph", "encoding": "string"}, "stack": stack}, "class GraphModule:\n")
        text += record({"compilation_metrics": {"fail_type": "RuntimeError", "fail_reason": "no constant", "compile_id": None}})
        self.log("job/export.log", text)
        one, = [one for one in self.job_findings() if one["kind"] == "compile_failed"]
        self.assertEqual((one["title"], one["place"]["file"], one["place"]["line"]),
                         ("The compile at pack.py:20 failed: RuntimeError: no constant", "/u/pack.py", 20))


class Parts(RankTest):
    def test_a_function_that_one_rank_needs_not_is_a_note(self):
        for rank in range(3):
            functions = ["first", "last"] if rank == 0 else ["first", "piece", "last"]
            self.rank(rank, *(self.compile(rank, frame, function=name) for frame, name in enumerate(functions)))
        one, = self.job_findings()
        self.assertEqual((one["severity"], one["title"]), ("note", "Rank 0 did not compile 1/0 piece, the others did"))

    def test_functions_that_a_rank_compiled_both_are_no_versions_of_one(self):
        for rank, functions in enumerate((["first", "last"], ["first", "piece"], ["first", "piece", "last"])):
            self.rank(rank, *(self.compile(rank, frame, function=name, time=f"08:30:0{9 if name == 'last' else frame}.000000")
                              for frame, name in enumerate(functions)))
        one = self.job_findings()[0]
        self.assertEqual((one["kind"], one["ranks"], one["title"]),
                         ("stopped_first", [1], "Rank 1's log ends after 1/0 piece; ranks 0,2 went on to last"))  # 1/0 on one, 2/0 on the other

    def test_an_export_of_one_rank_is_a_note(self):
        for rank in range(3):
            text = self.compile(rank, 0)
            if rank == 0:
                text = record({"artifact": {"name": "before_pre_grad_graph", "encoding": "string"}, "rank": 0, "stack": []}, "class GraphModule:\n") + text
            self.rank(rank, text)
        one, = self.job_findings()
        self.assertEqual((one["severity"], one["title"]), ("note", "Rank 0 has a compile without an id; ranks 1,2 have none"))

    def test_functions_of_one_name_are_told_apart_and_a_missing_log_comes_first(self):
        for rank in (0, 2):
            ids = {"rank": rank, "frame_compile_id": 1, "attempt": 0}
            records = []
            for frame, script in enumerate(("/u/a.py", "/u/b.py")):
                reason = {"artifact": {"name": "recompile_reasons", "encoding": "json"}, "frame_id": frame, **ids}
                again = {"co_name": "f", "co_filename": script, "co_firstlineno": 10, "compile_id": f"{frame}/1"}
                records += [self.compile(rank, frame, script=script),
                            record(reason, json.dumps([f"{frame}/0: tensor 'x' size mismatch at index {frame}. expected 8, actual 12"])),
                            record({"dynamo_start": {"stack": []}, "frame_id": frame, **ids}), record({"compilation_metrics": again, "frame_id": frame, **ids})]
            self.rank(rank, *records)
        self.job_findings()
        self.assertEqual([one["title"] for one in self.findings(self.database)], [
            "No log from rank 1", "f at a.py:10 was recompiled once on each of ranks 0,2 (size 0 of x: 8, 12)",
            "f at b.py:10 was recompiled once on each of ranks 0,2 (size 1 of x: 8, 12)"])


class TwoJobs(RankTest):
    def test_two_jobs_in_one_folder_are_said_and_not_compared(self):
        for number, script in enumerate(("train.py", "score.py")):
            for rank in range(2):
                function = script.split(".")[0]
                node = "add" if number else "mul"
                # The first in order of names is rank 0 of one job and rank 1 of the other.
                suffix = "abcdefgh"[number ^ rank:] + "abcdefgh"[:number ^ rank]
                self.rank(rank, self.compile(rank, 0, graph('L_x_: "f32[4]"', "l_x_ = L_x_", f'y: "f32[4]" = l_x_.{node}(1)'), function=function,
                                             script=f"/u/{script}"), suffix=suffix)
        one, = self.job_findings()
        self.assertEqual((one["kind"], one["severity"]), ("several_jobs", "warning"))
        self.assertRegex(one["title"], r"^The logs are of 2 programs that ran at the same time: ranks 0(#2)?,1(#2)? ran score\.py, ranks 0(#2)?,1(#2)? ran train\.py$")
        self.assertEqual(one["title"].count("0#2,1#2"), 1)
        self.assertEqual([line.split()[0] for line in run("status", self.database).splitlines() if line[0].isdigit()], ["0", "0#2", "1", "1#2"])
        run("sql", self.database, one["query"])

    def test_a_script_that_one_rank_started_is_a_note(self):
        for rank in range(3):
            self.rank(rank, self.compile(rank, 0, script="/u/train.py"))
        self.rank(0, self.compile(0, 0, function="score", script="/u/eval.py"), suffix="ijklmnop")
        one, = self.job_findings()
        self.assertEqual((one["severity"], one["title"]),
                         ("note", "The logs are of 2 programs that ran at the same time: rank 0#2 ran eval.py, ranks 0-2 ran train.py"))

    def test_a_further_log_of_the_same_script_is_no_other_job(self):
        for number, suffix in enumerate(("abcdefgh", "ijklmnop")):
            self.rank(0, self.compile(0, 0, time=f"08:30:01.00000{number}"), suffix=suffix)
        self.assertNotIn("several_jobs", {one["kind"] for one in self.job_findings()})

    def test_two_jobs_of_one_script_are_said_and_not_compared(self):
        for number in range(2):
            node = "add" if number else "mul"
            for rank in range(2):
                # The first in order of names is rank 0 of one job and rank 1 of the other.
                self.rank(rank, self.compile(rank, 0, graph('L_x_: "f32[4]"', "l_x_ = L_x_", f'y: "f32[4]" = l_x_.{node}(1)'), time=f"08:30:0{number + 1}.00000{rank}"),
                          self.compile(rank, 1, function="last", time="08:30:09.000000"), suffix="abcdefgh"[number ^ rank:] + "abcdefgh"[:number ^ rank])
        one, = self.job_findings()
        self.assertEqual((one["kind"], one["severity"]), ("several_jobs", "warning"))
        self.assertEqual(one["title"], "Ranks 0,1 have two logs each of the same time, of processes that ran m.py: as of two jobs that write into one folder")
        self.assertIn("ranks 0,1 are of one job, ranks 0#2,1#2 of the other", one["detail"])
        run("sql", self.database, one["query"])


class Names(RankTest):
    def reasons(self, *reasons):
        parts = []
        for number, reason in enumerate(("", *reasons)):
            ids = {"frame_id": 0, "frame_compile_id": number, "attempt": 0}
            if reason:
                parts.append(record({"artifact": {"name": "recompile_reasons", "encoding": "json"}, **ids}, json.dumps([reason])))
            parts += [record({"dynamo_start": {"stack": []}, **ids}),
                      record({"compilation_metrics": {"co_name": "f", "co_filename": "/u/m.py", "co_firstlineno": 3}, **ids})]
        return self.findings(self.ingest(self.log("r.log", *parts), name="r"))[0]

    def test_a_variable_of_a_closure_has_its_name_and_no_advice(self):
        one = self.reasons('0/0: f.__closure__[0].cell_contents == 0.5  # return x * k  # m.py:4 in f (HINT: guard on "k")')
        self.assertEqual((one["title"], one["try"]), ("f was recompiled once (k (f.__closure__[0].cell_contents): 0.5)", None))

    def test_pytorchs_hint_for_a_parameter_is_no_value(self):
        one = self.reasons("0/0: tensor 'self._modules['e']._parameters['weight']' size mismatch at index 1. expected 24, actual 8. Guard failed on a parameter, "
                           "consider using torch._dynamo.config.force_parameter_static_shapes = False to allow dynamism on parameters.")
        self.assertEqual(one["title"], "f was recompiled once (size 1 of self.e.weight: 24, 8)")
        self.assertEqual(one["try"], "torch._dynamo.config.force_parameter_static_shapes = False to allow dynamism on parameters (PyTorch's hint for a parameter)")
        one = self.reasons("0/0: tensor 'self._modules['e']._parameters['bias']' dtype mismatch. expected Float, actual Double. Guard failed on a parameter, "
                           "consider using torch._dynamo.config.force_parameter_static_shapes = False to allow dynamism on parameters.")
        self.assertEqual((one["title"], one["try"]), ("f was recompiled once (dtype of self.e.bias: Float, Double)", None))


class Tables(RankTest):
    def test_history_and_status_fit_80_columns_and_keep_what_matters(self):
        for rank in range(2):
            self.rank(rank, *(self.compile(rank, frame, function=f"a_function_of_a_long_name_{frame}") for frame in range(3)))
        self.job_findings()
        for command in ("history", "status"):
            lines = run(command, self.database).splitlines()
            self.assertEqual([line for line in lines if len(line) > 80], [])
            self.assertTrue(any("a_function_" in line for line in lines), lines)
        self.assertTrue(any("left out at this width: " in line for line in run("history", self.database).splitlines()))
        self.assertEqual(len(ask("status", self.database)["rows"]), 2)


if __name__ == "__main__":
    unittest.main()
