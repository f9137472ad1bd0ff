"""tlparse source: what came of a line of Python."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, ask, run  # noqa: E402
from test_compile import guards_of, node  # noqa: E402
from test_first_sentences import RankTest, graph  # noqa: E402


class Source(RankTest):
    def source(self, place, *arguments):
        return ask("source", self.database, place, *arguments)["outcomes"]

    def short(self, place, *arguments):
        return [(one["kind"], one["line"], one["compile"], one["ranks"], one["count"]) for one in self.source(place, *arguments)]

    def branch(self, *lines, folder="/u"):
        nodes = ["l_x_ = L_x_"] + [part for line in lines for part in node(line, f"y = x + {line}", folder)] + ["y = l_x_"]
        return self.compile(0, 0, graph('L_x_: "f32[4]"', *nodes), guards_of(12))

    def ranks(self):
        for rank in range(3):
            self.rank(rank, self.branch(*((11, 13) if rank == 2 else (11, 16))).replace('"rank": 0', f'"rank": {rank}'))
        self.database = self.ingest(os.path.join(self.scratch, "job"), name="job")

    def test_equal_ranks_are_one(self):
        self.ranks()
        self.assertEqual(self.short("/u/m.py:11"), [("node", 11, "0/0", [0, 1, 2], 1)])
        self.assertEqual(self.short("m.py:13"), [("node", 13, "0/0", [2], 2)])
        self.assertEqual(self.short("m.py:12"), [("guard", 12, "0/0", [0, 1, 2], 1)])
        self.assertEqual(self.short("m.py:11", "--rank", "1"), [("node", 11, "0/0", [1], 1)])
        text = run("source", self.database, "m.py:13")
        self.assertIn("/u/m.py:13\n    y = x + 13\n", text)
        self.assertRegex(text, r"(?m)^node  0/0      f +2 +dynamo_output_graph: \w+ and 1 more$")

    def test_a_name_is_the_end_of_a_path(self):
        self.rank(0, self.branch(11, folder="/u/x"))
        self.database = self.ingest(os.path.join(self.scratch, "job"), name="job")
        self.assertEqual(self.short("x/m.py:11"), self.short("m.py:11"))
        self.assertEqual(len(self.short("m.py:11")), 1)
        for other in (".py:11", "y/m.py:11", "m_py:11", "%m.py:11", "m.py:17"):
            self.assertEqual(self.source(other), [], other)
        self.assertIn("names it", " ".join(run("source", self.database, "m.py:17").split()))

    def test_a_cut_path_is_the_one_file_that_ends_so(self):
        self.rank(0, self.branch(12, folder="/srv/long/u").replace("  # m.py:12 in f", "  # ong/u/m.py:12 in f"))
        self.database = self.ingest(os.path.join(self.scratch, "job"), name="job")
        self.assertEqual([(one["kind"], one["file"]) for one in self.source("u/m.py:12")], [("guard", "/srv/long/u/m.py"), ("node", "/srv/long/u/m.py")])

    def test_recorded(self):
        """Each break, failure and recompile of a log whose line is known comes of that line."""
        for name in ("graph_breaks_2_6", "failures", "recompiles_2_6", "dynamic"):
            self.database = self.ingest(os.path.join(LOGS, name), name=name)
            count = 0
            for kind, query in (("graph_break", "SELECT compile_id, user_file, user_line, cause AS text FROM graph_break"),
                                ("failure", "SELECT compile_id, user_file, user_line, coalesce(type, kind) AS text FROM failure"),
                                ("recompile", "SELECT compile_id, user_file, user_line, coalesce(guard, reason) AS text FROM recompile"),
                                ("function", "SELECT id AS compile_id, file AS user_file, line AS user_line, status AS text FROM compile")):
                rows = run("sql", self.database, "--json", f"SELECT * FROM ({query}) WHERE compile_id IS NOT NULL AND user_file LIKE '/%' AND user_line > 0")
                for row in json.loads(rows)["rows"]:
                    found = [one for one in self.source(f"{row['user_file']}:{row['user_line']}")
                             if (one["kind"], one["file"], one["text"]) == (kind, row["user_file"], row["text"])]
                    self.assertTrue(found, (name, kind, row))
                    count += 1
            self.assertGreater(count, 3, name)


if __name__ == "__main__":
    unittest.main()
