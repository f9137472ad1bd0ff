"""The rows and the lines of the logs behind findings: of every recorded job they are there, and the lines are in the logs."""

import glob
import json
import os
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, ROOT, SHARED, AnswerTest, ask, run, trace_lines, validator  # noqa: E402


def all_of(findings):
    for one in findings:
        yield one
        yield from all_of(one["evidence"])


class Evidence(AnswerTest):
    def check(self, database):
        answer = json.loads(run("findings", database, "--json", "--evidence"))
        validator("findings").validate(answer)  # has rows, at least one each
        connection = sqlite3.connect(database)
        self.addCleanup(connection.close)
        lines = {}
        for one in all_of(answer["findings"]):
            self.assertGreaterEqual(one["row_count"], len(one["rows"]))
            for row in one["rows"]:
                found = connection.execute(f"SELECT count(*) FROM {row['table']} WHERE id = ?", (row["id"],)).fetchone()
                self.assertEqual(found, (1,), (one["title"], row))
            self.assertTrue(one["log_lines"], one["title"])
            for line in one["log_lines"]:
                self.assertLessEqual(len(line["text"].encode()), 210)
                self.assertTrue(line["text"].isprintable(), line["text"])
                if line["line"] is not None and line["record"]:
                    log = lines.setdefault(line["file"], []) or lines[line["file"]]
                    if not log:
                        log += trace_lines.open_log(line["file"]).read().decode(errors="replace").split("\n")
                    self.assertIn(line["text"].strip("…"), log[line["line"] - 1])
        return answer["findings"]

    def test_recorded_jobs(self):
        jobs = sorted(glob.glob(os.path.join(LOGS, "*")) + glob.glob(os.path.join(ROOT, "fixtures", "runs", "*")))
        self.assertGreater(len(jobs), 40)
        count = 0
        for job in jobs:
            with self.subTest(job=os.path.basename(job)):
                count += len(self.check(self.ingest(job, name=os.path.basename(job))))
        self.assertGreater(count, 60)

    def test_jobs_beside_the_checkout(self):
        jobs = sorted(glob.glob(os.path.join(SHARED, "jobs*", "*", "logs")))
        if not jobs:
            self.skipTest("no recordings beside the checkout")
        for job in jobs:
            with self.subTest(job=job):
                self.check(self.ingest(job, name=job.replace("/", "_")))

    def test_the_lines_are_printed_under_their_finding(self):
        database = self.job("no_compiler")
        text = run("findings", database, "--evidence")
        self.assertRegex(text, r"(?s)error: Rank 3 failed.*\S+:\d+\s+\(\w+\):")
        self.assertNotIn("log_lines", ask("findings", database)["findings"][0])


if __name__ == "__main__":
    unittest.main()
