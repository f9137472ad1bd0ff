"""Sentences of `diff` about recorded, edited and small logs: only what both sides finished is compared, guards are shown as written."""

import os
import json
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import ask, record, run  # noqa: E402
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
        self.assertEqual(change["new_guards"], ["G['WORLD'] == 8", "if override is not None: (utils/_config.py:461)", "type of x: float"])
        self.assertEqual(change["vanished_guards"], ["G['WORLD'] == 4", "if override is not None: (utils/_config.py:461)", "type of x: int"])

    def test_recorded_ones_are_readable(self):
        answer = ask("diff", self.job("restart_elastic"), "--launch", "1", "3")
        texts = [text for one in answer["comparisons"] for change in one["compiles"] + one["only_b"]
                 for text in change.get("new_guards", []) + change.get("vanished_guards", []) + change.get("recompile_reasons", [])]
        self.assertTrue(texts)
        for text in texts:
            self.assertNotIn("accessed_by=", text)
            self.assertNotIn("___check_type_id", text)
        self.assertTrue(any(re.match(r"after 1/0: if user_override is not _UNSET_SENTINEL: \(\S*utils/_config_module\.py:461\)$", text) for text in texts), texts)

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
        self.assertIn("ranks 0-3: alike within each side, shown by rank 0 ", text)
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
