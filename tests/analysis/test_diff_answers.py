"""`tlparse diff` of small logs, and the times of compiles."""

import os
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import AnswerTest, ask, record, run  # noqa: E402


class Diff(AnswerTest):
    def test_an_unknown_time_is_not_zero(self):
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        a = self.save("a.log", record({"dynamo_start": {"stack": []}, **ids}))
        b = self.save("b.log", record({"dynamo_start": {"stack": []}, **{**ids, "frame_id": 1}}),
                      self.compiled(0, "g", "mul"))
        answer = ask("diff", a, b)["comparisons"][0]
        self.assertIn(None, [one["duration_us"] for one in answer["only_a"] + answer["only_b"]])
        self.assertNotIn(" 0 µs", run("diff", a, b))

    def test_diff_finds_a_function_whose_frame_moved_and_whose_graph_was_edited(self):
        name = record({"str": ["/u/m.py", 1]})
        a = self.save("a.log", name, self.compiled(0, "f", "add"))
        b = self.save("b.log", name, self.compiled(0, "g", "mul"), self.compiled(1, "f", "sub"))
        answer = ask("diff", a, b)["comparisons"][0]
        self.assertEqual([one["function"] for one in answer["only_a"]], [])
        self.assertEqual([one["function"] for one in answer["only_b"]], ["g"])
        self.assertEqual([(one["a_label"], one["b_label"], one["function"]) for one in answer["compiles"]], [("0/0", "1/0", "f")])

    def test_the_total_of_a_compile_has_its_backward(self):
        connection = sqlite3.connect(self.job("mlp_train"))
        self.addCleanup(connection.close)
        rows = connection.execute("SELECT duration_us, backward_duration_us, total_us FROM compile_history WHERE backward_duration_us > 0").fetchall()
        self.assertTrue(rows)
        self.assertTrue(all(total == own + backward for own, backward, total in rows), rows)


if __name__ == "__main__":
    unittest.main()
