"""NaN in the outputs of compiled graphs, by logs that `tlparse run --numbers` recorded with PyTorch 2.14.1."""

import contextlib
import importlib.util
import json
import os
import re
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import ROOT, AnswerTest, ask, record, run  # noqa: E402

RUNS = os.path.join(ROOT, "fixtures", "runs")


class NotFinite(AnswerTest):
    def found(self, *inputs, name):
        self.database = self.ingest(*inputs, name=name)
        return [one for one in ask("findings", self.database)["findings"] if one["kind"] == "not_finite"]

    def test_the_line_whose_result_is_nan_first(self):
        """The output of the graph is made at line 14; what the backward needs shows that it comes of the logarithm at line 13."""
        finding, = self.found(os.path.join(RUNS, "nan_in_forward"), name="one")
        self.assertEqual("warning", finding["severity"])
        self.assertRegex(finding["title"], r"^The forward graph of 0/0 forward gives NaN from its 4th call on, first at \S*one\.py:13$")
        self.assertEqual("NaN in output 0 (float32[4, 1]): 4 values, output 5 (float32[4, 8]): 28 values. No input of that call held NaN or infinity: "
                         "they arise in this graph. Then: the backward graph of 0/0 forward from its 4th call on.", finding["detail"])
        self.assertEqual(13, finding["place"]["line"])

    def test_the_rank_that_had_it_first(self):
        """Rank 2 divides by zero in call 3, its fourth; after the all_reduce of the gradients all ranks have it."""
        finding, = self.found(os.path.join(RUNS, "nan_on_one_rank"), name="ranks")
        self.assertEqual(("warning", [2]), (finding["severity"], finding["ranks"]))
        self.assertRegex(finding["title"], r"^The forward graph of 0/0 loss_of gives NaN from its 4th call on, first at \S*ddp\.py:16, on rank 2$")
        self.assertIn("they arise in this graph. Then: the backward graph of 0/0 loss_of from its 4th call on (rank 2); ", finding["detail"])
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            first = connection.execute("SELECT p.rank, d.graph, d.call FROM run_digest d JOIN record r ON r.id = d.record_id JOIN process p ON p.id = r.process_id "
                                       "WHERE d.kind = 'output' AND d.nan_count > 0 ORDER BY r.time_us LIMIT 1").fetchone()
        self.assertEqual((2, "forward", 3), first)

    def test_nan_that_was_there_before_and_nan_that_ends(self):
        def log(name, calls):
            path = os.path.join(self.scratch, name + ".log")
            with open(path, "w") as file:
                file.write(record({"dynamo_start": {"stack": []}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}))
                for call, parts in enumerate(calls):
                    file.write(record({"artifact": {"name": "libtrace_run_digest", "encoding": "json"}, "frame_id": 0, "frame_compile_id": 0},
                                      json.dumps({"graph": "backward", "call": call, "parts": parts})))
            return path
        fine, nan = ({"kind": "output", "name": "0", "text": "float32[2]", "hash": "a" * 51, **more} for more in ({"norm": 1.5}, {"nan": 2}))
        data = {"kind": "input", "name": "1", "text": "float32[2]", "hash": "b" * 51, "inf": 1}
        finding, = self.found(log("scaled", [[fine], [data, nan], [fine]]), name="scaled")
        self.assertEqual("note", finding["severity"])
        self.assertIn("gives NaN in its 2nd call", finding["title"])
        self.assertIn("Of its inputs, input 1 (float32[2]) holds infinity already", finding["detail"])
        self.assertIn("The last calls that were looked at hold none", finding["detail"])
        self.assertEqual([], self.found(log("fine", [[fine], [fine]]), name="fine"))
        self.assertEqual([], self.found(log("infinite", [[{**fine, "inf": 1}]]), name="infinite"))

    def test_ranks_of_one_run_are_compared(self):
        self.found(os.path.join(RUNS, "nan_on_one_rank"), name="compared")
        said = " ".join(run("diff", self.database, "--rank", "0", "--rank", "1").split())
        self.assertRegex(said, r"output 0\b")


class Hook(unittest.TestCase):
    """Whatever fails in it is left out; the graph gives what it gave."""

    def test_a_graph_is_called_as_before(self):
        path = os.path.join(ROOT, "tlparse", "src", "runner", "tlparse_numbers.py")
        spec = importlib.util.spec_from_file_location("tlparse_numbers", path)
        numbers = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(numbers)
        inputs = [1, 2]
        graph = numbers.Graph(lambda given: (given.pop(), given.pop()), "forward", None, 2)
        with self.subTest("a module torch without anything"):
            sys.modules["torch"], before = type(sys)("torch"), sys.modules.get("torch")
            try:
                self.assertEqual((2, 1), graph(inputs))
                self.assertEqual([], inputs)
                self.assertEqual((4, 3), graph([3, 4]))
                self.assertEqual(2, graph.calls)
            finally:
                sys.modules.pop("torch") if before is None else sys.modules.update(torch=before)
        self.assertRegex(numbers.digest(b"x"), re.compile("^[a-z2-7]{51}$"))


if __name__ == "__main__":
    unittest.main()
