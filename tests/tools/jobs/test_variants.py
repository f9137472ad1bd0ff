#!/usr/bin/env python3
"""Parts of recorded jobs: which files are left, and which alarms the absence of the others explains."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import variants  # noqa: E402


class Variants(unittest.TestCase):
    PATHS = ["d/logs/x_rank_0_a.log", "d/logs/x_rank_1_b.log", "d/fr/dump_1", "d/run.json"]

    def test_parts(self):
        self.assertEqual(
            list(variants.parts(self.PATHS)),
            [
                ("without rank 0", {0}, self.PATHS[1:]),
                ("without rank 1", {1}, [self.PATHS[0], self.PATHS[3]]),
                ("rank 0 alone", {1}, [self.PATHS[0], self.PATHS[3]]),
                ("rank 1 alone", {0}, self.PATHS[1:]),
            ],
        )
        self.assertEqual(list(variants.parts(self.PATHS[1:])), [])

    def test_only_what_the_absence_explains_is_expected(self):
        def answer(*findings):
            return {"findings": [dict(zip(("kind", "severity", "title", "ranks"), one)) for one in findings]}

        known = ("graph_break", "warning", "f breaks the graph", [])
        note = ("late_rank", "note", "rank 1 is late", [1])
        part = answer(
            known,
            note,
            ("missing_rank", "warning", "No log from rank 0", [0]),
            ("missing_rank", "warning", "No log from rank 1", [1]),
            ("late_rank", "warning", "rank 1 is late", [1]),
        )
        self.assertEqual(
            variants.unexpected(answer(known, note), part, {0}), ["No log from rank 1", "rank 1 is late"]
        )


if __name__ == "__main__":
    unittest.main()
