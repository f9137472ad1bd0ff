"""Sentences of `findings`, `history` and `recompiles` about functions that were compiled again."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import ROOT, ask, record, run  # noqa: E402
from test_sentences import SentenceTest  # noqa: E402


class Recorded(SentenceTest):
    """Sizes that dynamic=False compiles apart, sizes of two dimensions, a reset; backends that make no code."""

    def recompiled(self, function):
        return next(one for one in self.findings(self.job("sizes_and_backends")) if one["title"].startswith(function))

    def test_sizes_that_are_to_be_compiled_apart_are_a_note(self):
        one = self.recompiled("fixed")
        self.assertEqual((one["severity"], one["title"]), ("note", "fixed was recompiled 3 times (size 0 of x: 3, 4, 16, 1)"))
        self.assertEqual(one["try"], "leave out what sets torch._dynamo.config.automatic_dynamic_shapes to False, as torch.compile(dynamic=False) "
                         "does, if size 0 of x is meant to vary")

    def test_how_long_another_rank_waited_meanwhile(self):
        """By the dumps of ranks 0 and 2 the latter came to collective 5 at 35.343 s, rank 0 at 39.335 s; it recompiled from 35.350 to 39.324 s."""
        database = self.ingest(os.path.join(ROOT, "fixtures", "runs", "fewer_evaluations"))
        series = {one["guard"]: one["others_waited_s"] for one in ask("recompiles", database)["series"]}
        self.assertAlmostEqual(3.974767, series["size 0 of x"])
        self.assertIn("others waited 3.97 s in collectives while ranks 0,1 recompiled forward: size 0 of x,", " ".join(run("recompiles", database).split()))
        self.assertEqual({None}, {one["others_waited_s"] for one in ask("recompiles", self.job("sizes_and_backends"))["series"]})

    def test_a_guard_without_a_place_has_that_of_its_function(self):
        lines = run("recompiles", "--all", self.job("sizes_and_backends")).splitlines()[1:]
        self.assertEqual({line.split()[1]: line.split()[-2].rsplit(":")[-1] for line in lines}, {"fixed": "6", "loose": "11"})

    def test_another_thing_each_time_comes_to_an_end(self):
        one = self.recompiled("loose")
        self.assertEqual((one["severity"], one["title"]), ("note", "loose was recompiled 3 times (size 0 of x: 3, 4; size 1 of x: 5, 6; dtype of x: Float, "
                                                                   "Double)"))
        self.assertIn("; 0/1#2 after 0/0#2: tensor 'x' dtype mismatch", one["detail"])
        self.assertEqual(one["try"], "torch._dynamo.mark_dynamic(x, 0), torch._dynamo.mark_dynamic(x, 1) and torch._dynamo.mark_dynamic(y, 0) before the "
                         "call, if these sizes are meant to vary (against 2 of the 3 recompiles)")
        self.assertEqual(one["compiles"], ["1/1", "1/2", "0/1#2"])

    def test_a_compile_after_a_reset_has_one_name(self):
        database = self.job("sizes_and_backends")
        for command, *arguments in (("history",), ("recompiles", "--all"), ("status",), ("compile", "0/1#2"), ("source", "sizes_and_backends.py")):
            text = run(command, database, *arguments)
            self.assertIn("0/1#2", text, command)
            self.assertNotIn("after reset", text)
        self.assertEqual(ask("status", database)["rows"][0]["compile"], "0/1#2")
        self.assertIn("after 0/0#2: ", json.loads(run("history", database, "--json"))["compiles"][-1]["failed_guards"])

    def test_graphs_of_a_backend_that_logs_none(self):
        graphs = {one["label"]: one["graphs"] for one in ask("history", self.job("sizes_and_backends"))["compiles"]}
        self.assertEqual((graphs["0/0"], graphs["2/0"]), (1, 2))  # eager; aot_eager: forward and backward


    def test_what_the_limit_refused_is_no_recompile_and_counts_against_the_budget(self):
        database = self.job("recompiles_2_6")
        rule, = ask("check", database, "--max-recompiles", "28", code=1)["rules"]
        self.assertEqual(rule["actual"], "21 and 8 refused")
        self.assertIn("3/4 by_str: refused at the recompile limit, after 3/3: L['mode'] == 'd'", rule["rows"])
        findings = " ".join(one["title"] for one in self.findings(database))
        self.assertEqual([findings.count(f"was recompiled {times}") for times in ("once", "twice", "3 times")], [1, 1, 6])


class GuardsThatFailed(SentenceTest):
    """A recompile names what each cache entry failed on, not the newest alone."""

    REASONS = [[], ["0/0: tensor 'x' size mismatch at index 0. expected 8, actual 16"],
               ["0/1: tensor 'w' dtype mismatch. expected Float, actual Double", "0/0: tensor 'x' dtype mismatch. expected Float, actual Double"],
               ["0/2: tensor 'w' dtype mismatch. expected Double, actual Float", "0/1: tensor 'x' rank mismatch. expected 2, actual 3",
                "0/0: tensor 'x' rank mismatch. expected 2, actual 3"]]

    def job_of(self, reasons, refused=(), function="f", name="r.log", ranks=(None,), fail_type="torch._dynamo.exc.RecompileLimitExceeded"):
        for rank in ranks:
            parts = [record({"str": ["/u/m.py", 1]})]
            for number, own in enumerate(reasons):
                ids = {"frame_id": 0, "frame_compile_id": number, "attempt": 0, **({} if rank is None else {"rank": rank})}
                if own:
                    parts.append(record({"artifact": {"name": "recompile_reasons", "encoding": "json"}, **ids}, json.dumps(own)))
                metrics = {"co_name": function, "co_filename": "/u/m.py", "co_firstlineno": 3}
                if number in refused:
                    metrics.update(fail_type=fail_type, fail_reason="recompile_limit reached")
                parts += [record({"dynamo_start": {"stack": []}, **ids}), record({"compilation_metrics": metrics, **ids})]
            path = self.log(name if rank is None else f"{name}/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", *parts)
        return path if ranks == (None,) else os.path.join(self.scratch, name)

    def test_compiles_after_a_reset_are_told_apart(self):
        with open(self.job_of([[], ["0/0: n == 1"]])) as log:
            text = log.read()
        database = self.ingest(self.log("reset.log", text, text.replace("n == 1", "n == 2")))
        one = next(one for one in self.findings(database) if one["kind"] == "recompiles")
        self.assertIn("0/1 after 0/0: n == 1; 0/1#2 after 0/0#2: n == 2", one["detail"])

    def test_every_reason_is_named(self):
        database = self.ingest(self.job_of(self.REASONS))
        one = next(one for one in self.findings(database) if one["kind"] == "recompiles")
        self.assertEqual(one["title"], "f was recompiled 3 times (dtype of w: Float, Double; size 0 of x: 8, 16; dtype of x: Float, Double; and 1 more)")
        self.assertIn("0/2 after 0/1: tensor 'w' dtype mismatch. expected Float, actual Double; after 0/0: tensor 'x' dtype mismatch. expected Float, "
                      "actual Double; 0/3 after 0/2: tensor 'w' dtype mismatch. expected Double, actual Float; after 0/1,0/0: tensor 'x' rank mismatch. "
                      "expected 2, actual 3.", one["detail"])
        self.assertEqual(one["try"], "torch._dynamo.mark_dynamic(x, 0) before the call, if this size is meant to vary (against 1 of the 3 recompiles)")
        guards = [row["failed_guards"] for row in json.loads(run("history", database, "--json"))["compiles"]]
        self.assertEqual(guards[0], None)
        self.assertEqual(guards[3], "after 0/2: tensor 'w' dtype mismatch. expected Double, actual Float; after 0/1: tensor 'x' rank mismatch. expected 2, "
                         "actual 3; after 0/0: tensor 'x' rank mismatch. expected 2, actual 3")

    def test_what_only_generated_code_names_is_said_with_its_line(self):
        guard = "0/0: ___check_type_id(G['__import_torch'].config._config['x'].get(), 119), type=<class 'object'>  # if override is None:  # utils/_config.py:461 in get"
        database = self.ingest(self.job_of([[], [guard], ["0/1: ___check_type_id(n, 11), type=<class 'int'>  # return x * n  # m.py:4 in f"]]))
        one = self.findings(database)[0]
        self.assertEqual(one["title"], "f was recompiled twice (type of torch.config._config['x'].get(): object; type of n: int)")
        self.assertEqual(one["detail"], "Guards that failed: 0/1 after 0/0: type of torch.config._config['x'].get(): object at: "
                         "if override is None: (utils/_config.py:461); 0/2 after 0/1: type of n: int.")
        for command in ("history", "recompiles", "findings"):
            self.assertNotIn("___check", run(command, database))

    def test_a_value_on_the_stack_is_shown(self):
        line = "if y.sum().item() > 0:"
        guard = f"0/0: ___stack0 == 678.75  # {line}  # ome/u/m.py:12 in resume\nUser stack trace:\n  File \"/u/m.py\", line 12, in resume\n    {line}\n"
        database = self.ingest(self.job_of([[], [guard]]))
        one = self.findings(database)[0]
        self.assertEqual(one["title"], f"f was recompiled once (___stack0 (a value on the stack): 678.75 at: {line} (u/m.py:12))")
        said = f"___stack0 == 678.75 (a value on the stack) at: {line} (u/m.py:12)"
        self.assertIn(said, one["detail"])
        self.assertIn("___stack0 == 678.75", run("recompiles", database, "--all"))

    def test_an_option_is_named_with_the_users_line(self):
        option = "G['__import_torch_dot_a'].torch.compiler.config._config['on_one_rank'].user_override.get()"
        guard = (f"0/0: ___check_type_id({option}, 119), type=<class 'object'>  # if override is None:  # utils/_config.py:461 in get (HINT: type object)\n"
                 "User stack trace:\n  File \"/u/m.py\", line 9, in f\n    y = g(x)\n"
                 "  File \"/usr/lib/python3/dist-packages/torch/utils/_config.py\", line 461, in get\n    if override is None:\n")
        one = self.findings(self.ingest(self.job_of([[], [guard]])))[0]
        self.assertEqual(one["title"], "f was recompiled once (type of torch.compiler.config.on_one_rank (user_override): object)")
        self.assertIn("(user_override): object at: y = g(x) (u/m.py:9)", one["detail"])
        self.assertEqual((one["place"]["file"], one["place"]["line"], one["place"]["code"]), ("/u/m.py", 9, "y = g(x)"))

    def test_a_hint_against_specialization_is_passed_on(self):
        guard = ("0/1: 2 <= x.size()[0]  # y = g(x)  # ome/u/m.py:4 in f (user code shown is first use of this value--the guard itself is not due user code but "
                 "due to 0/1 specialization in the framework; to avoid specialization try torch._dynamo.decorators.mark_unbacked(tensor, dim))")
        size = "0/0: tensor 'x' size mismatch at index 0. expected 8, actual 16"
        hint = "torch._dynamo.decorators.mark_unbacked(tensor, dim) to avoid specialization (PyTorch's hint for 2 <= x.size()[0])"
        advice = "torch._dynamo.mark_dynamic(x, 0) before the call, if this size is meant to vary"
        self.assertEqual(self.findings(self.ingest(self.job_of([[], [size], ["0/1: n == 1", guard, size]]), name="a"))[0]["try"],
                         f"{advice} (against 1 of the 2 recompiles); {hint}")
        database = self.ingest(self.job_of([[], [guard]], name="b.log"), name="b")
        self.assertEqual(self.findings(database)[0]["try"], hint)
        text = run("recompiles", database)
        self.assertIn(" /u/m.py:4 ", text)
        self.assertNotIn("ome/u", text)

    def test_values_are_in_the_order_in_which_they_were_compiled(self):
        reasons = [[], ["0/0: mode == 'a'"], ["0/1: mode == 'b'"], ["0/2: n == 3", "0/1: n == 2", "0/0: n == 1"]]
        self.assertEqual(self.findings(self.ingest(self.job_of(reasons)))[0]["title"], "f was recompiled 3 times (mode: 'a', 'b'; n: 1, 2, 3)")

    def test_what_goes_on_to_change_is_named_where_a_mode_alternates(self):
        """Each compile fails on the newest entry for its mode, as blocks do of which the first has an input without gradient."""
        def reason(prior, value):
            return f"0/{prior}: " + (f"self.n == {value}  # self.n += 1  # /u/m.py:9 in f" if value else f"tensor 'x' requires_grad mismatch. expected requires_grad={prior % 2}")
        reasons = [[], [reason(0, 0)], [reason(1, 0), reason(0, 1)], [reason(2, 0), reason(1, 1)], [reason(3, 0), reason(2, 2), reason(0, 1)],
                   [reason(4, 0), reason(3, 2), reason(1, 1)], [reason(5, 0), reason(4, 3), reason(2, 2), reason(0, 1)]]
        database = self.ingest(self.job_of(reasons))
        one = self.findings(database)[0]
        self.assertEqual((one["severity"], one["title"], one["place"]["line"]),
                         ("warning", "f was recompiled 6 times (self.n: 1, 2, 3; requires_grad of x)", 9))
        series = json.loads(run("recompiles", database, "--json"))["series"]
        self.assertEqual([("self.n", ["1", "2", "3"], 5), ("requires_grad of x", [], 1)],
                         sorted((row["guard"], row["values"], row["recompiles"]) for row in series)[::-1])

    def test_older_values_of_the_same_are_not_repeated(self):
        one = self.findings(self.ingest(self.job_of([[], ["0/0: n == 1"], ["0/1: n == 2", "0/0: n == 1"]])))[0]
        self.assertEqual(one["detail"], "Guards that failed: 0/1 after 0/0: n == 1; 0/2 after 0/1: n == 2.")

    def test_advice_does_not_count_what_the_limit_refused(self):
        size = "0/%d: tensor 'x' size mismatch at index 0. expected 8, actual 16"
        reasons = [[], [size % 0], ["0/1: n == 1"], [size % 2], [size % 3]]
        one = next(one for one in self.findings(self.ingest(self.job_of(reasons, refused={3, 4}))) if one["kind"] == "recompile_limit")
        self.assertIn("f was recompiled twice", one["title"])
        self.assertTrue(one["try"].endswith("(against 1 of the 2 recompiles)"), one["try"])

    def test_a_log_that_ends_with_an_error_of_the_limit_ends_with_a_failure(self):
        database = self.ingest(self.job_of([[], ["0/0: n == 1"]], refused={1}, fail_type="torch._dynamo.exc.FailOnRecompileLimitHit"))
        self.assertIn(": failed: its log ends after 0/1 f, which failed: FailOnRecompileLimitHit", " ".join(run("status", database).split()))

    def test_a_compile_of_one_rank_only_names_all_of_them(self):
        job = self.job_of(self.REASONS[:2], name="job", ranks=(0, 1))
        self.job_of(self.REASONS[:3], name="job", ranks=(2,))
        one = next(one for one in self.findings(self.ingest(job, name="job")) if one["kind"] == "extra_compile")
        self.assertEqual(one["title"], "Rank 2 recompiled f twice (size 0 of x: 8, 16; dtype of w: Float, Double; dtype of x: Float, Double), ranks 0,1 once")

    def test_all_ranks_on_which_the_same_varied_are_named(self):
        job = self.job_of(self.REASONS[:2], name="alike", ranks=(0, 2))
        self.job_of([[], [self.REASONS[2][0].replace("0/1", "0/0")]], name="alike", ranks=(1,))
        one, = [one for one in self.findings(self.ingest(job, name="alike")) if "recompiled" in one["title"]]
        self.assertEqual(one["title"], "f was recompiled once on each of the 3 ranks (size 0 of x: 8, 16 on ranks 0,2)")
        self.assertTrue(one["detail"].startswith("Guards that failed on rank 0: 0/1 after 0/0"), one["detail"])


class OnSomeRanks(SentenceTest):
    job_of = GuardsThatFailed.job_of
    TASKS = [[]] + [[f"0/{number}: self.task == 'task{number}'  # s = W[self.task]  # m.py:19 in f"] for number in range(5)]

    def job_with(self, reasons, refused=(), others=(0, 1), other_reasons=([],)):
        """Rank 2 with these recompiles, the others with theirs."""
        name = f"job{len(os.listdir(self.scratch))}"
        self.job_of(list(other_reasons), name=name, ranks=others)
        return self.ingest(self.job_of(reasons, refused=refused, name=name, ranks=(2,), fail_type="torch._dynamo.exc.Unsupported"), name=name)

    def test_several_of_one_function_name_the_value_once(self):
        found = [one for one in self.findings(self.job_with(self.TASKS)) if one["severity"] != "note"]
        self.assertEqual([(one["kind"], one["ranks"], one["title"]) for one in found],
                         [("extra_compile", [2], "Only rank 2 recompiled f: 5 times (self.task: 'task0', 'task1', 'task2', 'task3', 'task4')")])
        self.assertEqual(found[0]["evidence"], [])
        self.assertEqual(found[0]["detail"], "Guards that failed: 0/1 after 0/0: self.task == 'task0'; and 4 more on the same.")
        self.assertEqual((found[0]["place"]["line"], found[0]["place"]["code"]), (19, "s = W[self.task]"))
        self.assertEqual(found[0]["try"], "branch on self.task outside of the compiled function, if it is meant to vary")

    def test_values_of_several_ranks_are_not_mixed(self):
        """A series has the values of the rank that recompiled most, and says whose they are if others have others."""
        def sizes(*values):
            return [[]] + [[f"0/{number}: tensor 'x' size mismatch at index 0. expected {old}, actual {new}"]
                           for number, (old, new) in enumerate(zip(values, values[1:]))]
        for others, rank, text in ((sizes(9, 4), 2, "  rank 2: 8, 16, 24"), (sizes(8, 16), None, "  8, 16, 24 ")):
            database = self.job_with(sizes(8, 16, 24), other_reasons=others)
            one, = json.loads(run("recompiles", database, "--json"))["series"]
            self.assertEqual((one["values"], one["values_rank"], one["ranks"]), (["8", "16", "24"], rank, [0, 1, 2]))
            self.assertIn(text, run("recompiles", database))

    def test_more_often_than_the_others(self):
        database = self.job_with(self.TASKS, other_reasons=self.TASKS[:2])
        one, = [one for one in self.findings(database) if one["severity"] != "note"]
        self.assertEqual((one["ranks"], one["title"]), ([2], "Rank 2 recompiled f 5 times (self.task: 'task0', 'task1', 'task2', 'task3', 'task4'), ranks 0,1 once"))

    def test_the_limit_is_the_finding_and_no_failure(self):
        database = self.job_with(self.TASKS, refused={5})
        one, = [one for one in self.findings(database) if one["severity"] != "note"]
        self.assertEqual((one["kind"], one["ranks"]), ("recompile_limit", [2]))
        self.assertTrue(one["title"].startswith("Only rank 2 recompiled f: 4 times (self.task: 'task0', "), one["title"])
        self.assertIn("; 1 further attempt was refused at the recompile limit: it runs eagerly from then on where no compile fits", one["title"])
        self.assertEqual([(other["kind"], other["ranks"]) for other in one["evidence"]], [("extra_compile", [2])])
        self.assertIn("recompiled 4 times", one["evidence"][0]["title"])
        rows = ask("status", database)["rows"]
        self.assertEqual([row["state"] for row in rows], ["between_compiles"] * 3)
        ask("check", database, "--no-failures")
        ask("check", database, "--no-divergence", code=1)

    def test_with_fullgraph_the_limit_is_a_failure(self):
        rule, = ask("check", self.job("recompiles_2_6"), "--no-failures", code=1)["rules"]
        self.assertEqual(len(rule["rows"]), 1)
        self.assertIn("limit_fullgraph", rule["rows"][0])

    def test_on_all_ranks_it_is_no_divergence(self):
        database = self.job_with(self.TASKS, others=(0, 1), other_reasons=self.TASKS)
        one, = [one for one in self.findings(database) if one["severity"] != "note"]
        self.assertEqual((one["kind"], one["ranks"]), ("recompiles", []))
        self.assertTrue(one["title"].startswith("f was recompiled 5 times on each of the 3 ranks"), one["title"])

    def test_the_same_values_in_another_mode_are_no_more_values(self):
        """Three adapters, trained and evaluated: two values beside the first, in each grad mode."""
        values = ["0/{}: self.active == 'chat'  # m.py:4 in f", "0/{}: self.active == 'code'  # m.py:4 in f"]
        mode = "0/0: GLOBAL_STATE changed: grad_mode"
        modes = [[], [values[0].format(0)], [values[1].format(1)], [mode], [values[0].format(3)], [values[1].format(4)]]
        one = self.findings(self.ingest(self.job_of(modes), name="modes"))[0]
        self.assertEqual((one["kind"], one["severity"]), ("recompiles", "note"))
        self.assertRegex(one["title"], r"^f was recompiled 5 times \(self\.active: 'chat', 'code'; GLOBAL_STATE changed: grad_mode\)$")
        # Without a mode between them the same guard fails for another reason.
        again = [[], [values[0].format(0)], [values[1].format(1)], [values[0].format(2)], [values[1].format(3)]]
        one = self.findings(self.ingest(self.job_of(again), name="again"))[0]
        self.assertEqual((one["kind"], one["severity"]), ("recompiles", "warning"))

    def test_rank_0_that_evaluates_is_a_note(self):
        grad = [[], ["0/0: GLOBAL_STATE changed: grad_mode"]]
        name = f"job{len(os.listdir(self.scratch))}"
        self.job_of([[]], name=name, ranks=(1, 2))
        one, = self.findings(self.ingest(self.job_of(grad, name=name, ranks=(0,)), name=name))
        self.assertEqual((one["kind"], one["severity"], one["ranks"]), ("extra_compile", "note", [0]))
        self.assertEqual(one["detail"], "As where rank 0 alone evaluates: it ran the function in another grad mode.")
        # Not so on another rank, or for another reason.
        one, = self.findings(self.job_with(grad))
        self.assertEqual(one["severity"], "warning")

    def test_train_and_eval_and_one_new_size_are_a_note(self):
        size = "0/1: tensor 'x' size mismatch at index 0. expected 8, actual {}"
        evaluated = [[], ["0/0: GLOBAL_STATE changed: grad_mode"], [size.format(3)]]
        one, = self.findings(self.job_with(evaluated, other_reasons=evaluated))
        self.assertEqual((one["kind"], one["severity"]), ("recompiles", "note"))
        sizes = [[]] + [[size.format(number)] for number in (3, 4, 5)]
        one, = self.findings(self.job_with(sizes, other_reasons=sizes))
        self.assertEqual((one["kind"], one["severity"]), ("recompiles", "warning"))

    def test_a_rank_that_lacks_one_of_several_recompiles_is_a_note(self):
        """Each rank has sizes of its own: the function was recompiled on all."""
        size = "0/0: tensor 'x' size mismatch at index 0. expected 8, actual {}"
        two, one = [[], [size.format(3)], [size.format(4)]], [[], [size.format(4)]]
        for own, others in ((one, two), (two, one)):
            found = self.findings(self.job_with(own, other_reasons=others))
            self.assertEqual({finding["severity"] for finding in found}, {"note"}, found)

    def test_a_value_on_the_stack_has_no_name_to_advise_for(self):
        size = "0/0: tensor '___stack0' size mismatch at index 0. expected 560, actual 561"
        self.assertIsNone(self.findings(self.ingest(self.job_of([[], [size]])))[0]["try"])


class TwoRanks(SentenceTest):
    def test_a_compile_of_one_of_them(self):
        """Neither is the odd one; that it was recompiled is said there."""
        job = GuardsThatFailed.job_of(self, GuardsThatFailed.REASONS[:1], name="job", ranks=(0,))
        GuardsThatFailed.job_of(self, GuardsThatFailed.REASONS[:2], name="job", ranks=(1,))
        found = [one for one in self.findings(self.ingest(job, name="job")) if one["kind"] != "missing_rank"]
        self.assertEqual([one["title"] for one in found], ["Rank 1 recompiled f: 0/1 after 0/0: tensor 'x' size mismatch "
                                                           "at index 0. expected 8, actual 16; rank 0 did not"])
        self.assertEqual(found[0]["evidence"], [])
        self.assertIn("mark_dynamic(x, 0)", found[0]["try"])


if __name__ == "__main__":
    unittest.main()
