"""Precompiled code that was saved, loaded, and compiled all the same: recordings of fixtures/precompiled."""

import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import ROOT, AnswerTest, ask, run  # noqa: E402


def recording(name):
    return os.path.join(ROOT, "fixtures", "precompiled", name)


def logged_guards(name, rank=None):
    """By label of a compile: the guards of the log itself that name SCALE."""
    guards = {}
    for entry in sorted(os.listdir(recording(name))):
        if rank is not None and f"_rank_{rank}_" not in entry:
            continue
        text = subprocess.run(["zstdcat", os.path.join(recording(name), entry)], capture_output=True, text=True, check=True).stdout
        for header, payload in re.findall(r'^V.*?(\{"dynamo_cpp_guards_str".*)\n((?:\t.*\n)+)', text, re.M):
            ids = json.loads(header)
            guards.setdefault(f'{ids["frame_id"]}/{ids["frame_compile_id"]}', []).extend(re.findall(r"G\['SCALE'\] == \d", payload))
    return guards


def findings_of(database, *kinds):
    return [one for one in ask("findings", database)["findings"] if one["kind"] in kinds]


class Precompiled(AnswerTest):
    def test_ranks_that_load_what_another_saved(self):
        database = self.ingest(recording("ranks_loaded"))
        self.assertEqual({"0/0": ["G['SCALE'] == 3"], "1/0": [], "2/0": ["G['SCALE'] == 2"]}, logged_guards("ranks_loaded", 0))
        compiles = ask("history", database)["compiles"]
        self.assertEqual([(rank, "0/0", "project", "loaded") for rank in range(4)] + [(rank, "1/0", "norm", "loaded") for rank in range(4)] +
                         [(rank, "2/0", "project", "ok") for rank in (0, 2)],
                         sorted(((one["rank"], one["label"], one["function"], one["status"]) for one in compiles), key=lambda one: (one[1], one[0])))
        self.assertTrue(all(one["total_us"] > 0 for one in compiles))
        code = ask("cache", database)["precompiled"]
        self.assertEqual((8, [], []), (code["loaded"], code["entries"], code["different_entries"]))
        again, = code["compiled_again"]
        self.assertEqual(("project", 5, "0/0", "2/0", {"count": 2, "ranks": "0,2"}, [{"a": "G['SCALE'] == 3", "b": "G['SCALE'] == 2"}]),
                         tuple(again[name] for name in ("function", "line", "loaded", "compiled", "ranks", "changes")))
        found, = findings_of(database, "precompiled_again")
        self.assertEqual("Precompiled code of project at rmodel.py:5 was loaded, and compiled again on ranks 0,2: the loaded code needs "
                         "G['SCALE'] == 3, the new code G['SCALE'] == 2", found["title"])
        self.assertEqual("warning", found["severity"])
        # PyTorch logs no guard of loaded code that failed: that is not "no recompiles".
        self.assertTrue(run("recompiles", database).startswith("8 compiles had precompiled code that was loaded, of which PyTorch logs no guard"))
        # No record is lost: loaded code has no metrics.
        self.assertNotIn("missing_metrics", run("import-log", database))
        self.assertIn("project (rmodel.py:5): loaded in 0/0, compiled again in 2/0 on ranks 0,2", run("cache", database))

    def test_code_after_a_graph_break_is_no_finding_of_its_own(self):
        database = self.ingest(recording("break_loaded"))
        self.assertEqual([("step", "0/0", "2/0"), ("torch_dynamo_resume_in_step_at_7", "1/0", "3/0")],
                         [(one["function"], one["loaded"], one["compiled"]) for one in ask("cache", database)["precompiled"]["compiled_again"]])
        found, = findings_of(database, "precompiled_again")
        self.assertIn("step at model.py:5", found["title"])
        self.assertIn("So was torch_dynamo_resume_in_step_at_7, in 3/0.", found["detail"])

    def test_another_size_is_a_note(self):
        found, = findings_of(self.ingest(recording("size_loaded")), "precompiled_again")
        self.assertEqual(("note", True), (found["severity"], "size=[4, 8] of x" in found["title"] and "size=[6, 8] of x" in found["title"]))
        self.assertIn("mark_dynamic", found["try"])

    def test_what_is_only_loaded_is_no_finding(self):
        database = self.ingest(recording("all_loaded"))
        code = ask("cache", database)["precompiled"]
        self.assertEqual((2, []), (code["loaded"], code["compiled_again"]))
        self.assertEqual([], ask("findings", database)["findings"])
        self.assertIn("2 compiles loaded", run("cache", database))

    def test_ranks_that_save_over_each_other(self):
        database = self.ingest(recording("ranks_saved"))
        answer = ask("cache", database, "--one-artifact")
        entries = answer["precompiled"]["entries"]
        self.assertEqual([("project", 5, 1, 1, 0, "cpu", "0-3"), ("norm", 9, 1, 1, 0, "cpu", "0-3")],
                         [(*(one[name] for name in ("function", "line", "codes", "backends", "missing_backends", "device_type")),
                           one["ranks"]["ranks"]) for one in entries])
        self.assertEqual(2, len({one["key"] for one in entries}))
        different, = answer["precompiled"]["different_entries"]
        self.assertEqual(("project", "0,2", "1,3", [{"a": "G['SCALE'] == 2", "b": "G['SCALE'] == 3"}]),
                         (different["function"], different["ranks"]["ranks"], different["other_ranks"]["ranks"], different["changes"]))
        found, = findings_of(database, "precompiled_differs")
        self.assertEqual([1, 3], found["ranks"])
        one = answer["one_artifact"]
        self.assertEqual({"of": "0", "served": {"count": 2, "ranks": "0,2"}, "others": {"count": 2, "ranks": "1,3"}}, one["code"])
        self.assertEqual([("project", "1,3", False)], [(other["function"], other["ranks"]["ranks"], other["is_absent"]) for other in one["guards"]])
        # Inductor's keys: project's graph holds the constant, norm's graph is the same.
        self.assertEqual("0,2", one["caches"]["served"]["ranks"])
        self.assertEqual([("1,3", 2)], [(other["ranks"]["ranks"], other["lookups"]) for other in one["keys"]])
        self.assertEqual(8, one["of_named_graphs"])
        text = run("cache", database, "--one-artifact")
        self.assertIn("project (rmodel.py:5): the code of rank 0 needs G['SCALE'] == 2, that of\n", text)

    def test_of_one_rank(self):
        database = self.ingest(recording("ranks_loaded"))
        code = ask("cache", database, "--rank", "1")["precompiled"]
        self.assertEqual((2, []), (code["loaded"], code["compiled_again"]))
        self.assertEqual(1, len(ask("cache", database, "--rank", "2")["precompiled"]["compiled_again"]))
        self.assertIn("left out: 1 difference between others, 2 lookups that it did not make, 1 function that others compiled again",
                      " ".join(run("cache", database, "--rank", "1").split()))

    def test_an_entry_without_its_graph(self):
        database = self.ingest(recording("eager_saved"))
        entry, = ask("cache", database)["precompiled"]["entries"]
        self.assertEqual(("norm", 1, 1), (entry["function"], entry["backends"], entry["missing_backends"]))
        found, = findings_of(database, "cache_bypassed")
        self.assertEqual("Precompiled code of norm (line 9) was saved without the code that calls 1 of its 1 compiled graph", found["title"])
        self.assertIsNone(ask("cache", database)["one_artifact"])


if __name__ == "__main__":
    unittest.main()
