"""Sentences of `diff` about recorded, edited and small logs: only what both sides finished is compared, guards are shown as written."""

import os
import json
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import SHARED, ask, record, run  # noqa: E402
from test_sentences import SentenceTest  # noqa: E402


class Unfinished(SentenceTest):
    """Rank 2 of one job ends inside 1/0, rank 1 of the other fails in it; both have finished 0/0."""

    def test_times_are_of_compiles_that_both_finished(self):
        a, b = self.job("hang_in_compile"), self.job("crash_in_compile")
        one = next(one for one in ask("diff", a, b)["comparisons"] if one["a_rank"] == "2")
        spent = {database: {row["label"]: row["total_us"] for row in json.loads(run("history", database, "--rank", "2", "--json"))["compiles"]} for database in (a, b)}
        total = next(phase for phase in one["phases"] if phase["phase"] == "total")
        self.assertEqual((total["a_us"], total["b_us"], one["finished_count"]), (spent[a]["0/0"], spent[b]["0/0"], 1))
        text = run("diff", a, b, "--rank", "2")
        self.assertIn("times of the 1 compile that both sides finished", text)

    def test_times_that_stand_for_several_ranks_say_whose_they_are(self):
        a, b = self.job("straggler_late"), self.job("one_rank_cold")
        one = ask("diff", a, b)["comparisons"][0]
        self.assertGreater(one["pair_count"], 1)
        self.assertRegex(run("diff", a, b), r"(?m)^phase +a \(rank 0\) +b \(rank 0\) +change")
        self.assertRegex(run("diff", a, b, "--rank", "0"), r"(?m)^phase +a +b +change")

    def test_what_a_failed_compile_has_not_logged_is_not_listed(self):
        a, b = self.job("crash_in_compile"), self.job("hang_in_compile")
        text = run("diff", a, b, "--rank", "1")
        self.assertIn("status: failed → ok", text)
        self.assertRegex(text, r"in the log of b only: \d+ guards, 4 kernels")
        self.assertNotIn("new guard", text)

    def test_no_compile_in_common(self):
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        start = record({"dynamo_start": {"stack": []}, **ids})
        done = start + record({"compilation_metrics": {"co_name": "f", "duration_ms": 1}, **ids})
        text = run("diff", self.log("a.log", start), self.log("b.log", done))
        self.assertIn("no compile was finished on both sides", text)
        self.assertNotIn("total", text)


class Guards(SentenceTest):
    def log_of(self, name, world, kind):
        """Checks of a user's global, of a local's type, and of something that only generated code names."""
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        tree = ("\nTREE_GUARD_MANAGER:\n+- RootGuardManager\n"
                "| +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(key='x', framelocals_idx=%d)\n"
                "| | +- TYPE_MATCH: ___check_type_id(L['x'], 94%d), type=<class '%s'>  # return x / WORLD  # m.py:3 in f\n"
                "| +- DictGuardManager: source=G, accessed_by=GlobalsGuardAccessor\n"
                "| | +- EQUALS_MATCH: G['WORLD'] == %d  # return x / WORLD  # m.py:3 in f\n"
                "| | +- ID_MATCH: ___check_obj_id(G['__import_torch']._config['%s'].get(), 7), type=<class 'object'>  # if override is not None:  "
                "# utils/_config.py:461 in get\n" % (world, world, kind, world, kind))
        return self.log(name, record({"dynamo_start": {"stack": []}, **ids}), record({"dynamo_cpp_guards_str": {}, **ids}, tree),
                        record({"compilation_metrics": {"co_name": "f"}, **ids}))

    def test_each_is_readable(self):
        a, b = self.log_of("a.log", 4, "int"), self.log_of("b.log", 8, "float")
        change, = ask("diff", a, b)["comparisons"][0]["compiles"]
        self.assertEqual((change["a_guard_count"], change["b_guard_count"]), (3, 3))
        place = " at: if override is not None: (utils/_config.py:461)"
        self.assertEqual(change["new_guards"], ["identity of torch._config['float'].get(): object" + place])
        self.assertEqual(change["vanished_guards"], ["identity of torch._config['int'].get(): object" + place])
        self.assertEqual(change["changed_guards"], ["G['WORLD'] == 4 → G['WORLD'] == 8", "type of x: int → type of x: float"])

    def test_a_check_of_another_kind_is_a_change(self):
        """Of the same value in the same line; the line is named once."""
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        def log(name, check):
            tree = ("\nTREE_GUARD_MANAGER:\n+- RootGuardManager\n| +- DictGuardManager: source=G, accessed_by=GlobalsGuardAccessor\n"
                    f"| | +- {check}  # if override is not None:  # utils/_config.py:461 in get\n"
                    "| | +- EQUALS_MATCH: G['n'] == 1  # return x / n  # m.py:3 in f\n")
            return self.log(name, record({"dynamo_start": {"stack": []}, **ids}), record({"dynamo_cpp_guards_str": {}, **ids}, tree),
                            record({"compilation_metrics": {"co_name": "f"}, **ids}))
        option = "G['__import_torch_dot_a'].torch.compiler.config._config['on_one_rank'].user_override.get()"
        change, = ask("diff", log("a.log", f"FALSE_MATCH: {option} == False"),
                      log("b.log", f"TYPE_MATCH: ___check_type_id({option}, 94), type=<class 'object'>"))["comparisons"][0]["compiles"]
        name = "torch.compiler.config.on_one_rank (user_override)"
        self.assertEqual((change["new_guards"], change["vanished_guards"]), ([], []))
        self.assertEqual(change["changed_guards"], [f"{name} == False → type of {name}: object at: if override is not None: (utils/_config.py:461)"])
        self.assertFalse(change["is_equal"])

    def test_those_that_are_shown_alike_are_counted(self):
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        def log(name, *modules):
            option = "G['__import_torch_dot_%s'].torch.compiler.config._config['on_one_rank'].user_override.get() == False"
            tree = ("\nTREE_GUARD_MANAGER:\n+- RootGuardManager\n| +- DictGuardManager: source=G, accessed_by=GlobalsGuardAccessor\n"
                    + "".join(f"| | +- FALSE_MATCH: {option % module}  # if override is not None:  # utils/_config.py:461 in get\n" for module in modules)
                    + "| | +- EQUALS_MATCH: G['n'] == 1  # return x / n  # m.py:3 in f\n")
            return self.log(name, record({"dynamo_start": {"stack": []}, **ids}), record({"dynamo_cpp_guards_str": {}, **ids}, tree),
                            record({"compilation_metrics": {"co_name": "f"}, **ids}))
        shown = "torch.compiler.config.on_one_rank (user_override) == False at: if override is not None: (utils/_config.py:461)"
        a, b, c = log("a.log"), log("b.log", "x", "y"), log("c.log", "z", "y")
        change, = ask("diff", a, b)["comparisons"][0]["compiles"]
        self.assertEqual((change["new_guards"], change["alike_guard_count"]), ([shown] * 2, 0))
        self.assertIn(f"new guard: {shown} (×2)", " ".join(run("diff", a, b).split()))
        change, = ask("diff", b, c)["comparisons"][0]["compiles"]
        self.assertEqual((change["new_guards"], change["vanished_guards"], change["alike_guard_count"], change["is_equal"]), ([], [], 1, True))

    def test_recorded_ones_are_readable(self):
        answer = ask("diff", self.job("restart_elastic"), "--launch", "1", "3")
        texts = [text for one in answer["comparisons"] for change in one["compiles"] + one["only_b"]
                 for text in change.get("new_guards", []) + change.get("vanished_guards", []) + change.get("recompile_reasons", [])]
        self.assertTrue(texts)
        for text in texts:
            self.assertNotIn("accessed_by=", text)
            self.assertNotIn("___check_type_id", text)
            self.assertNotIn("__import_", text)
            self.assertNotRegex(text, r"^(if|elif|return|tensor =) ")
        self.assertIn("after 1/0: type of torch.compiler.config.compile_on_one_rank (user_override): object at: "
                      'g = fcol.all_reduce(flat, "sum", dp) / WORLD (scripts/job.py:100)', texts)

    def test_other_versions_write_them_differently(self):
        a, b = self.job("mlp_train_2_6"), self.job("mlp_train")
        text = run("diff", a, b)
        self.assertRegex(text, r"guards: \d+ → \d+; versions of PyTorch write guards differently")
        self.assertNotIn("new guard", text)
        self.assertIn("new guard", run("diff", a, b, "--all"))

    def test_the_same_recompile_of_two_versions_is_no_change(self):
        """2.6 writes tensor 'L['x']' and L['n'], later versions write the name alone."""
        ids = {"frame_id": 0, "frame_compile_id": 1, "attempt": 0}
        def log(name, reasons):
            return self.log(name, record({"artifact": {"name": "recompile_reasons", "encoding": "json"}, **ids}, json.dumps(reasons)),
                            record({"dynamo_start": {"stack": []}, **ids}), record({"compilation_metrics": {"co_name": "f"}, **ids}))
        a = log("a.log", ["0/0: tensor 'L['x']' dtype mismatch. expected Float, actual Double", "0/0: L['n'] == 4"])
        b = log("b.log", ["0/0: tensor 'x' dtype mismatch. expected Float, actual Double", "0/0: n == 4  # return x + n  # m.py:3 in f"])
        change, = ask("diff", a, b)["comparisons"][0]["compiles"]
        self.assertEqual((change["new_recompiles"], change["vanished_recompiles"]), ([], []))
        c = log("c.log", ["0/0: n == 5  # return x + n  # m.py:3 in f"])
        change, = ask("diff", b, c)["comparisons"][0]["compiles"]
        self.assertEqual((change["new_recompiles"], change["vanished_recompiles"]),
                         (["after 0/0: n == 5"], ["after 0/0: tensor 'x' dtype mismatch. expected Float, actual Double", "after 0/0: n == 4"]))


class Functions(SentenceTest):
    def compiled(self, number, file, code="x = y", comment=None):
        ids = {"frame_id": number, "frame_compile_id": 0, "attempt": 0}
        graph = f"class GraphModule(torch.nn.Module):\n    def forward(self, s: \"f32[4][1]cpu\"):\n         # {comment}\n        {code}\n        return (x,)\n"
        return (record({"dynamo_start": {"stack": []}, **ids}) + (record({"dynamo_output_graph": {}, **ids}, graph) if comment else "")
                + record({"compilation_metrics": {"co_name": "f", "co_filename": file, "co_firstlineno": 3}, **ids}))

    def test_of_other_files_are_not_paired_silently(self):
        a = self.log("a.log", self.compiled(0, "/u/a.py") + self.compiled(1, "/u/b.py"))
        b = self.log("b.log", self.compiled(0, "/v/b.py") + self.compiled(1, "/v/a.py"))
        answer = ask("diff", a, b)["comparisons"][0]
        self.assertEqual([(one["a_label"], one["b_label"], one["a_file"], one["b_file"]) for one in answer["compiles"]],
                         [("0/0", "1/0", "/u/a.py", "/v/a.py"), ("1/0", "0/0", "/u/b.py", "/v/b.py")])
        self.assertNotIn("paired by name", run("diff", a, b))
        c = self.log("c.log", self.compiled(0, "/u/c.py"))
        self.assertIn("paired by name; the files differ: /u/a.py → /u/c.py", run("diff", a, c))

    def test_graphs_that_differ_in_comments_only(self):
        def difference(*others):
            a, b = (self.log(f"{name}.log", self.compiled(0, "/u/a.py", *other)) for name, other in zip("ab", others))
            return run("diff", a, b)
        code = "x = torch.add(s, '#')"
        self.assertIn("the Dynamo graph differs in comments only", difference((code, "File: a.py:3 in f"), (code, "File: a.py:4 in f")))
        self.assertIn("the Dynamo graph differs: x = torch.add(s, '#') → x = torch.add(s, '##')",
                      difference((code, "File: a.py:3 in f"), (code.replace("#", "##"), "File: a.py:3 in f")))

    def test_profiles_without_a_common_line(self):
        a, b = (os.path.join(SHARED, "runs", name) for name in ("p_dynamic", "p_graph_breaks"))
        if not os.path.isdir(a) or not os.path.isdir(b):
            self.skipTest("needs the recorded runs")
        text = run("diff", self.ingest(a, name="a"), self.ingest(b, name="b"))
        self.assertIn("compared: nothing, no line and no kernel is on both sides", text)


class GraphBreaks(SentenceTest):
    def test_a_break_in_the_same_place_is_the_same(self):
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        def log(name, cause, line):
            text = f"Graph break in user code at /u/m.py:{line}\nGraph Break Reason: {cause}\nUser code traceback:\n  File \"/u/m.py\", line {line}, in f\n    g(x)\n"
            return self.log(name, record({"dynamo_start": {"stack": []}, **ids}),
                            record({"artifact": {"name": "dynamo_graph_break_reason", "encoding": "string"}, **ids}, text),
                            record({"compilation_metrics": {"co_name": "f"}, **ids}))
        a, b, c = log("a.log", "Unsupported: a", 3), log("b.log", "Unsupported: b", 3), log("c.log", "Unsupported: a", 4)
        change, = ask("diff", a, b)["comparisons"][0]["compiles"]
        self.assertEqual((change["new_graph_breaks"], change["vanished_graph_breaks"], change["changed_graph_breaks"]),
                         ([], [], ["/u/m.py:3: Unsupported: a → Unsupported: b"]))
        change, = ask("diff", a, c)["comparisons"][0]["compiles"]
        self.assertEqual((change["new_graph_breaks"], change["vanished_graph_breaks"], change["changed_graph_breaks"]),
                         (["Unsupported: a at /u/m.py:4"], ["Unsupported: a at /u/m.py:3"], []))


class Launches(SentenceTest):
    def test_a_cause_of_many_keys_is_said_once(self):
        text = " ".join(run("diff", self.job("restart_manual_other_config"), "--launch", "1", "2").split())
        self.assertIn("ranks 0-3: alike within each side but for times, shown by rank 0 ", text)
        self.assertIn(", launch 1, rank 0", text)
        self.assertIn(", launch 2, rank 0", text)
        self.assertEqual(text.count("max_fusion_size"), 1)
        self.assertIn("cache keys, 9 lookups in 4 compiles: configuration differs: inductor_config[max_fusion_size]: 64 → 13", text)
        self.assertIn("4 compiles equal but for times and these cache keys", text)


class Versions(SentenceTest):
    def test_a_version_that_is_not_in_a_log_is_said_to_be_so(self):
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        compile_ = record({"dynamo_start": {"stack": []}, **ids}) + record({"compilation_metrics": {"co_name": "f"}, **ids})
        version = record({"artifact": {"name": "torch_version", "encoding": "json"}}, '{"pytorch_version": "2.14.1"}')
        a, b = self.log("a.log", compile_), self.log("b.log", version, compile_)
        self.assertIn("torch (not in the log) → 2.14.1", run("diff", a, b))
        answer = ask("diff", a, b)["comparisons"][0]
        self.assertEqual((answer["a_torch_version"], answer["b_torch_version"], answer["is_equal"]), (None, "2.14.1", True))


if __name__ == "__main__":
    unittest.main()
