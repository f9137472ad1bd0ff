#!/usr/bin/env python3
"""Recompiles and graph breaks of the text of TORCH_LOGS, and of the warning that PyTorch prints at the recompile limit; answers that say
what they stand on."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import profiles  # noqa: E402

CASE = os.path.join(profiles.ROOT, "fixtures", "inputs", "torch_logs_untagged")


class TorchLogsText(profiles.InputTest):
    def recompiles(self, database):
        return [[row[member] for member in ("label", "function", "file", "line", "prior_label", "guard", "status", "source")]
                for row in self.answer("recompiles", database)["recompiles"]]

    def test_recompiles_and_graph_breaks_are_rows(self):
        database = self.ingest(os.path.join(CASE, "recompiles_verbose.txt"))
        self.assertEqual([["1/1", "forward", "/app/model.py", 320, "1/0", "tensor 'L['x']' size mismatch at index 0. expected 4, actual 5", None, "torch_logs"]],
                         self.recompiles(database))
        self.assertEqual([["1/2", "Graph break in user code at /app/model.py:331", "Unsupported: Tensor.item"]],
                         self.rows(database, "SELECT label, message, reason FROM torch_log_graph_break"))
        self.assertIn("size mismatch at index 0", self.tlparse("recompiles", database, "--all").stdout)
        self.assertIn("4, 5", self.tlparse("recompiles", database).stdout)
        notes = [(one["kind"], one["severity"], one["title"]) for one in self.answer("findings", database)["findings"]]
        self.assertEqual([("graph_break", "warning", "One graph break at model.py:331, by the text of TORCH_LOGS: Unsupported: Tensor.item"),
                          ("recompiles", "note", "forward was recompiled once (size 0 of x: 4, 5), by the text of TORCH_LOGS")], notes)

    def test_a_break_is_as_urgent_as_in_a_trace(self):
        """One that the program asks for is a note."""
        with open(os.path.join(CASE, "recompiles_verbose.txt"), encoding="utf-8") as file:
            text = file.read()
        for reason, severity in (("Unsupported: Tensor.item", "warning"), ("Skip calling `torch.compiler.disable()`d function", "note")):
            path = self.write(f"{severity}.txt", text.replace("Unsupported: Tensor.item", reason).encode())
            found = self.answer("findings", self.ingest(path, name=f"{severity}.db"))["findings"]
            self.assertEqual([severity], [one["severity"] for one in found if one["kind"] == "graph_break"], reason)

    def test_messages_of_several_lines(self):
        """PyTorch 2.14.1: a guard with the user's stack, breaks whose reason is a line below, and breaks that were told before."""
        database = self.ingest(os.path.join(profiles.ROOT, "fixtures", "inputs", "torch_logs_2_14", "graph_breaks.txt"))
        self.assertEqual([["0/1", "f", "0/0", "k == 0"], ["2/1", "torch_dynamo_resume_in_f_at_6", "2/0", "tensor 'y' size mismatch at index 0. expected 4, actual 5"]],
                         self.rows(database, "SELECT label, function, prior_label, guard FROM torch_log_recompile ORDER BY line"))
        branch, call = "Data-dependent branching", "Failed to trace builtin operator"
        self.assertEqual([["0/0", "/app/p4.py", 5, branch], ["1/0", "/app/p4.py", 6, call], ["0/1", "/app/p4.py", 5, branch], ["3/0", "/app/p4.py", 6, call]],
                         self.rows(database, "SELECT label, file, user_line, reason FROM torch_log_graph_break ORDER BY line"))
        told = [(one["title"], one["try"][:30]) for one in self.answer("findings", database)["findings"] if one["kind"] == "graph_break"]
        self.assertEqual(told, [(f"2 graph breaks at p4.py:5, by the text of TORCH_LOGS: {branch}", "For the common pattern `if ten"),
                                (f"2 graph breaks at p4.py:6, by the text of TORCH_LOGS: {call}", "Avoid calling builtin `print` ")])

    def test_each_process_counts_for_itself(self):
        with open(os.path.join(CASE, "recompiles_verbose.txt"), encoding="utf-8") as file:
            text = file.read()
        one_text = "".join(f"[rank{rank}]:{line}\n" for rank in (0, 1) for line in text.splitlines())
        for paths in ([self.write("both.txt", one_text.encode())],
                      [self.write(f"rank{rank}.txt", "".join(f"[rank{rank}]:{line}\n" for line in text.splitlines()).encode()) for rank in (0, 1)]):
            found = self.answer("findings", self.ingest(*paths, name=f"{len(paths)}.db"))["findings"]
            self.assertEqual([("One graph break at model.py:331 in each of 2 processes, by the text of TORCH_LOGS: Unsupported: Tensor.item", [0, 1]),
                              ("forward was recompiled once in each of 2 processes (size 0 of x: 4, 5), by the text of TORCH_LOGS", [0, 1])],
                             [(one["title"], one["ranks"]) for one in found])

    def test_the_warning_at_the_limit(self):
        with open(os.path.join(CASE, "recompile.txt"), encoding="utf-8") as file:
            warned = file.read()
        bare = "".join(line.split("[1/8] ", 1)[-1] + "\n" for line in warned.splitlines())
        self.assertNotIn("W0301", bare)
        for text, label in ((warned, "1/8"), (bare, None)):
            database = self.ingest(self.write("stderr.txt", text.encode()))
            self.assertEqual([[label, "forward", "/app/model.py", 320, "1/0", "L['idx']['max_len'] == 31868", "refused", "torch_logs"]], self.recompiles(database))
            self.assertIn("refused 1", self.tlparse("recompiles", database).stdout)
            finding, = self.answer("findings", database)["findings"]
            self.assertEqual(("recompile_limit", "warning", {"file": "/app/model.py", "line": 320, "code": None}),
                             (finding["kind"], finding["severity"], finding["place"]))
            self.assertEqual("forward reached the recompile limit (torch._dynamo.config.cache_size_limit, 8); "
                             "last reason: L['idx']['max_len'] == 31868", finding["title"])
            os.unlink(database)

    def test_the_hint_of_the_warning_is_kept(self):
        hint = "you might want to make this integer dynamic using torch._dynamo.config.allow_unspec_int_on_nn_module = True"
        lines = ("torch._dynamo hit config.recompile_limit (3)", "   function: 'forward' (/app/m.py:8)",
                 f"   last reason: 1/2: s.n == 2    # return x*s.n  # app/m.py:8 in forward (HINT: {hint})", "User stack trace:",
                 '  File "/app/m.py", line 8, in forward')
        text = "".join(f"W1128 07:58:33.036000 463 torch/_dynamo/convert_frame.py:2008] [1/3] {line}\n" for line in lines)
        finding, = self.answer("findings", self.ingest(self.write("stderr.txt", text.encode())))["findings"]
        self.assertEqual(("forward reached the recompile limit (torch._dynamo.config.recompile_limit, 3); last reason: s.n == 2", hint),
                         (finding["title"], finding["try"]))

    def test_the_limit_as_an_error(self):
        """Under fullgraph=True nothing runs without compiled code: the program raises, behind a line that speaks of a failed guard."""
        lines = ("torch._dynamo hit config.recompile_limit (8)", "   function: 'forward' (/app/m.py:8)", "   last reason: 2/7: s.n == 2. Guard failed on a parameter")
        raised = ('Traceback (most recent call last):\n  File "/app/train.py", line 70, in <module>\n    step()\n'
                  "torch._dynamo.exc.FailOnRecompileLimitHit: recompile_limit reached with fullgraph=True.\n")
        text = "".join(f"W0110 12:27:06.332000 158 torch/_dynamo/convert_frame.py:1551] [2/8] {line}\n" for line in lines) + raised
        error, limit = self.answer("findings", self.ingest(self.write("stderr.txt", text.encode())))["findings"]
        self.assertEqual((error["severity"], error["title"]), ("error", "The program raised FailOnRecompileLimitHit: recompile_limit reached with fullgraph=True."))
        self.assertTrue(limit["detail"].startswith("With fullgraph=True that is an error, which the program raised."), limit["detail"])

    def test_the_format_of_older_versions(self):
        """As PyTorch 2.2 writes it; 2.1 writes no compile."""
        lines = ["[0/1] torch._dynamo.guards.__recompiles: [DEBUG] Recompiling function fn in /app/m.py:3",
                 "[0/1] torch._dynamo.guards.__recompiles: [DEBUG]     triggered by the following guard failure(s):",
                 "[0/1] torch._dynamo.guards.__recompiles: [DEBUG]     - L['t'] == 0",
                 "torch._dynamo.convert_frame: [WARNING] torch._dynamo hit config.cache_size_limit (8)",
                 "torch._dynamo.convert_frame: [WARNING]    function: 'step' (/app/adamw.py:151)",
                 "torch._dynamo.convert_frame: [WARNING]    last reason: L['self'].param_groups[0]['lr'] == 4.83e-05",
                 "torch._dynamo.convert_frame: [WARNING] To log all recompilation reasons, use TORCH_LOGS=\"recompiles\"."]
        text = "".join(f"[2024-02-29 10:11:12,334] {line}\n" for line in lines)
        limit, note = self.answer("findings", self.ingest(self.write("stderr.txt", text.encode())))["findings"]
        self.assertEqual("step reached the recompile limit (torch._dynamo.config.cache_size_limit, 8); last reason: L['self'].param_groups[0]['lr'] == 4.83e-05", limit["title"])
        self.assertTrue(note["title"].startswith("fn was recompiled once"), note["title"])
        alone = "".join(f"[2024-02-29 10:11:12,334] {line}\n" for line in lines[:3])
        self.assertEqual(note["title"], self.answer("findings", self.ingest(self.write("stderr.txt", alone.encode())))["findings"][0]["title"])

    def test_a_storm_is_one_finding_with_its_values(self):
        """As PyTorch 2.15.0 writes it: the compile that the limit refuses is told twice. The code has a comment of its own."""
        code = "return x * s.n  # scaled"
        lines = []
        for n in range(1, 4):
            lines.append(f"V1130 18:01:3{n}.269000 27 torch/_dynamo/guards.py:6374] [0/{n}] [__recompiles] Recompiling function forward in /app/m.py:7")
            lines.append(f"V1130 18:01:3{n}.269000 27 torch/_dynamo/guards.py:6374] [0/{n}] [__recompiles]     triggered by the following guard failure(s):")
            for prior in reversed(range(n)):
                lines.append(f"V1130 18:01:3{n}.269000 27 torch/_dynamo/guards.py:6374] [0/{n}] [__recompiles]     - 0/{prior}: s.n == {prior}   # {code}  # app/m.py:8 in forward")
        limit = ("torch._dynamo hit config.recompile_limit (3)", "   function: 'forward' (/app/m.py:7)", f"   last reason: 0/2: s.n == 2   # {code}  # app/m.py:8 in forward")
        lines += [f"W1130 18:01:36.715000 27 torch/_dynamo/convert_frame.py:2061] [0/3] {line}" for line in limit]
        text = "".join(line + "\n" for line in lines)
        finding, = self.answer("findings", self.ingest(self.write("stderr.txt", text.encode())))["findings"]
        self.assertEqual(("recompile_limit", "warning", "forward was recompiled twice (s.n: 0, 1, 2) and reached the recompile limit (torch._dynamo.config.recompile_limit, 3), "
                          "by the text of TORCH_LOGS"), (finding["kind"], finding["severity"], finding["title"]))
        self.assertEqual({"file": "/app/m.py", "line": 8, "code": code}, finding["place"])

    def test_an_empty_answer_says_what_it_stands_on(self):
        with open(os.path.join(CASE, "recompiles_verbose.txt"), encoding="utf-8") as file:
            fusion = [line for line in file if "__fusion" in line]
        database = self.ingest(self.write("text.txt", "".join(fusion).encode()))
        for command in ("recompiles", "history"):
            said = self.tlparse(command, database).stdout
            self.assertIn("not looked for: no structured trace is among the input", said)
            self.assertEqual(said.strip(), self.answer(command, database)["not_looked_for"])
        self.assertIn("0 findings\nnot looked for: no structured trace is among the input", self.tlparse("findings", database).stdout)
        self.assertIn("no structured trace", self.answer("findings", database)["not_looked_for"])
        self.assertIn("TORCH_LOGS=recompiles", self.tlparse("recompiles", database).stdout)
        database = self.ingest(profiles.harness.bundled("simple"), name="log.db")
        self.assertEqual("no recompiles\n", self.tlparse("recompiles", database).stdout)
        self.assertEqual({"series": [], "recompiles": []}, self.answer("recompiles", database))


if __name__ == "__main__":
    unittest.main()
