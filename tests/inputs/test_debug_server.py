#!/usr/bin/env python3
"""Stacks of all ranks by the debug server of torch.distributed: files of its dump_dir as PyTorch 2.15 wrote them (three ranks, gloo,
paths shortened), and its page as its templates render it."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import profiles  # noqa: E402

TORCH = "/opt/venv/lib/python3.11/site-packages/torch/distributed"
HEAD = "http://node{0}:{0}6153/handler/dump_traceback?"
SERVER = "Current thread 0x00007fcf62ffd6c0 (most recent call first):\n  <no Python frame>\n\n"
MAIN = "Thread 0x00007fd020a8bb80 (most recent call first):\n"
WAITS = MAIN + f"""  File "{TORCH}/distributed_c10d.py", line 4181 in all_reduce
  File "{TORCH}/c10d_logger.py", line 83 in wrapper
  File "/job/hang.py", line 12 in train
  File "/job/hang.py", line 19 in <module>
"""
ELSEWHERE = MAIN + """  File "/job/hang.py", line 6 in wait_for_lock
  File "/job/hang.py", line 11 in train
  File "/job/hang.py", line 19 in <module>
"""
PYSPY = """Process 24572: python hang.py
Python v3.11.2 (/usr/bin/python3.11)

Thread 24572 (idle): "MainThread"
    wait_for_lock (hang.py:6)
    train (/job/hang.py:11)
    <module> (/job/hang.py:19)
Thread 24600 (idle): "pt_gloo"
    run (/job/other.py:3)
"""


def text_of(ranks):
    """`ranks`: what the server of each says, None: it does not answer."""
    parts = []
    if None in ranks:
        parts += [f"PARTIAL DATA: {sum(r is not None for r in ranks)}/{len(ranks)} workers responded"]
        parts += [f"  Rank {i}: TimeoutError: " for i, r in enumerate(ranks) if r is None] + [""]
    for i, stacks in enumerate(ranks):
        parts += [f"=== Rank {i}: {HEAD.format(i)} ===", "Error: 408" if stacks is None else SERVER + stacks]
    return "\n".join(parts)


def page_of(ranks):
    html = "\n<!doctype html>\n<head>\n    <title>Stacks - PyTorch Distributed</title>\n</head>\n<section class=\"content\">\n    <h1>Stacks</h1>\n\n"
    for i, stacks in enumerate(ranks):
        html += f"    \n        <h2>Rank {i}: {HEAD.format(i)}</h2>\n        \n"
        if stacks is None:
            html += "            <p>Failed to fetch: status=408</p>\n            <pre>TimeoutError: </pre>\n        \n"
        else:
            html += f"            <pre>{SERVER}{stacks}</pre>\n        \n"
    return html + "    \n\n</section>\n    "


class DebugServer(profiles.InputTest):
    def made(self, dumps, name, form=text_of, ending="txt"):
        folder = self.path(name)
        os.mkdir(folder)
        for i, ranks in enumerate(dumps):
            with open(os.path.join(folder, f"stacks_20261201_0457{i:02}.{ending}"), "w") as file:
                file.write(form(ranks))
        return self.ingest(folder, name=name + ".db")

    def findings(self, database):
        return self.answer("findings", database)["findings"]

    def test_rows(self):
        database = self.made([[WAITS, ELSEWHERE, None]], "rows")
        self.assertEqual([["dump_traceback", "2026-12-01 04:57:00"]], self.rows(database, "SELECT endpoint, taken_at FROM debug_server_dump"))
        expected = [[0, 5, "http://node0:06153", None, "/job/hang.py:12 in train, which called all_reduce", 1],
                    [1, 15, "http://node1:16153", None, "/job/hang.py:6 in wait_for_lock", 0],
                    [2, 24, "http://node2:26153", "Error: 408", None, 0]]
        query = "SELECT rank, {} address, error, stopped_at, is_in_collective FROM debug_server_rank ORDER BY rank"
        lines = self.rows(database, "SELECT line FROM debug_server_rank ORDER BY rank")
        with open(self.path("rows/stacks_20261201_045700.txt")) as file:
            heads = [i for i, line in enumerate(file, 1) if line.startswith("=== ")]
        self.assertEqual([[one] for one in heads], lines)
        self.assertEqual([[one[0], *one[2:]] for one in expected], self.rows(database, query.format("")))
        (stacks,), = self.rows(database, "SELECT stacks FROM debug_server_rank WHERE rank = 1")
        self.assertEqual((SERVER + ELSEWHERE).strip(), stacks.strip())
        page = self.made([[WAITS, ELSEWHERE, None]], "page", page_of, "html")
        self.assertEqual(self.rows(database, query.format("")), self.rows(page, query.format("")))
        self.assertEqual([[(SERVER + ELSEWHERE).strip()]], [[s.strip()] for s, in self.rows(page, "SELECT stacks FROM debug_server_rank WHERE rank = 1")])
        self.assertEqual([[None]], self.rows(page, "SELECT taken_at FROM debug_server_dump"))
        with open(self.path("pyspy_dump_20261201_045700.txt"), "w") as file:
            file.write(f"=== Rank 0: http://node0:1/handler/pyspy_dump?nonblocking=1 ===\n{PYSPY}")
        database = self.ingest(self.path("pyspy_dump_20261201_045700.txt"), name="pyspy.db")
        self.assertEqual([["pyspy_dump", "hang.py:6 in wait_for_lock"]], self.rows(
            database, "SELECT d.endpoint, r.stopped_at FROM debug_server_rank r JOIN debug_server_dump d ON d.id = r.dump_id"))

    def test_a_rank_that_is_elsewhere(self):
        database = self.made([[ELSEWHERE] * 3] + [[WAITS, ELSEWHERE, WAITS]] * 3, "elsewhere")
        finding, = self.findings(database)
        self.assertEqual(("stuck", "warning", [1]), (finding["kind"], finding["severity"], finding["ranks"]))
        self.assertEqual("Rank 1 was at hang.py:6 in each of 3 dumps of the debug server, while ranks 0,2 waited in all_reduce at hang.py:12",
                         finding["title"])
        self.assertEqual("Rank 1 was at /job/hang.py:6 in wait_for_lock. Ranks 0,2 were at /job/hang.py:12 in train, which called all_reduce. The "
                         "dumps are of 2026-12-01 04:57:01 to 2026-12-01 04:57:03, by the clock of the server. A rank that is only slow looks the "
                         "same.", finding["detail"])
        self.assertEqual([("debug_server_rank", 3)], [(row["table"], finding["row_count"]) for row in finding["rows"][:1]])

        lines = self.answer("findings", database, "--evidence")["findings"][0]["log_lines"]
        self.assertEqual(["rank 1: /job/hang.py:6 in wait_for_lock", "rank 0: /job/hang.py:12 in train, which called all_reduce"],
                         [line["text"] for line in lines[:2]])

    def test_a_copy_with_pseudonyms(self):
        self.made([[WAITS, ELSEWHERE, WAITS]] * 3, "plain")
        self.tlparse("redact", self.path("plain"), "-o", self.path("redacted"))
        with open(self.path("redacted/stacks_20261201_045700.txt")) as file:
            self.assertNotIn("wait_for_lock", file.read())
        title = self.findings(self.ingest(self.path("redacted"), name="redacted.db"))[0]["title"]
        self.assertRegex(title, r"^Rank 1 was at \w+\.py:6 in each of 3 dumps of the debug server, while ranks 0,2 waited in all_reduce at \w+\.py:12$")

    def test_a_rank_that_does_not_answer(self):
        finding, = self.findings(self.made([[WAITS, WAITS, None]] * 4, "silent"))
        self.assertEqual("Rank 2 did not answer (Error: 408) in each of 4 dumps of the debug server, while ranks 0,1 waited in "
                         "all_reduce at hang.py:12", finding["title"])

        finding, = self.findings(self.made([[WAITS, WAITS, WAITS, ELSEWHERE, None]] * 3, "both"))
        self.assertEqual("Rank 3 was at hang.py:6, rank 4 did not answer (Error: 408) in each of 3 dumps of the debug server, while ranks 0-2 "
                         "waited in all_reduce at hang.py:12", finding["title"])

    def test_what_a_healthy_job_leaves(self):
        other = WAITS.replace("line 12", "line 30")
        for i, dumps in enumerate(([[WAITS, ELSEWHERE, WAITS]] * 2,                      # too few
                                   [[WAITS, ELSEWHERE, WAITS], [ELSEWHERE, WAITS, WAITS]] * 3,  # they move
                                   [[WAITS] * 3] * 5, [[ELSEWHERE] * 3] * 5,             # all at one place
                                   [[ELSEWHERE, ELSEWHERE, WAITS]] * 5,                  # most are elsewhere
                                   [[WAITS, other, other]] * 5)):
            with self.subTest(i=i):
                self.assertEqual([], self.findings(self.made(dumps, f"healthy{i}")))


if __name__ == "__main__":
    unittest.main()
