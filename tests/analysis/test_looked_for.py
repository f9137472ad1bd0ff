"""What findings say was looked for and is not there: of every recorded job it is not in the folder."""

import glob
import json
import os
import re
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, ROOT, SHARED, AnswerTest, expanded, run, validator  # noqa: E402
from inputs_there import Inputs  # noqa: E402
from test_evidence import all_of  # noqa: E402

RUNS = os.path.join(ROOT, "fixtures", "runs")
OF_JOB = ("run_record", "watchdog", "ras_report")


def people(text):
    """Ranks, and names of logs without rank."""
    if text in (None, "job"):
        return set()
    logs = set(re.findall(r"log:[^,]+", text))
    return logs | expanded(re.sub(r"(^|,)log:[^,]+", "", text).strip(","))


class LookedFor(AnswerTest):
    def of(self, database):
        answer = json.loads(run("findings", database, "--json", "--evidence"))
        validator("findings").validate(answer)
        return answer["findings"]

    def check(self, folder, name="job"):
        there = None
        database = self.ingest(folder, name=name)
        for one in all_of(self.of(database)):
            self.assertTrue(one["looked_for"] or one["kind"] == "import_errors", one["title"])
            for look in one["looked_for"]:
                there = there or Inputs(folder)
                where = (folder, one["title"], look)
                self.assertTrue(look["found"] or look["not_found"] or look["not_known"], where)
                if look["input"] in OF_JOB or "job" in look.values():
                    self.assertEqual([look["found"], look["not_found"], look["not_known"]].count("job"), 1, where)
                    if look["not_found"]:
                        self.assertNotIn(look["input"], there.there, where)
                    continue
                absent = people(look["not_found"])
                self.assertFalse(absent & people(look["found"]), where)
                for who in absent:
                    self.assertFalse(there.has(look["input"], who), where)
        os.unlink(database)

    def test_jobs_beside_the_checkout(self):
        jobs = sorted(glob.glob(os.path.join(SHARED, "jobs*", "*", "logs")))
        if not jobs:
            self.skipTest("no recordings beside the checkout")
        for job in jobs:
            with self.subTest(job=job):
                self.check(job)

    def looked(self, folder, kind, name):
        one = next(one for one in all_of(self.of(self.ingest(folder, name=name))) if one["kind"] == kind)
        return {look["input"]: (look["found"], look["not_found"], look["not_known"]) for look in one["looked_for"]}

    def part(self, job, name, **changed):
        """A copy of a job: without the files that are None, or with other bytes; without the same dump as JSON."""
        folder = os.path.join(self.scratch, name)
        shutil.copytree(os.path.join(RUNS, job), folder)
        for path in glob.glob(os.path.join(folder, "*.json")):
            os.unlink(path)
        for pattern, data in changed.items():
            path = os.path.join(folder, pattern)
            os.unlink(path)
            if data is not None:
                with open(path, "wb") as file:
                    file.write(data)
        return folder

    def test_a_dump_that_is_there_not_there_or_damaged(self):
        kind = "collective_divergence"
        self.assertEqual(self.looked(os.path.join(RUNS, "fr_wrong_op"), kind, "whole")["recorder_dump"], ("0-3", None, None))
        self.assertEqual(self.looked(self.part("fr_wrong_op", "less", fr_hang_trace_rank_3=None), kind, "less")["recorder_dump"], ("0-2", "3", None))
        with open(os.path.join(RUNS, "fr_wrong_op", "fr_hang_trace_rank_3"), "rb") as file:
            data = file.read()
        cut = self.part("fr_wrong_op", "cut", fr_hang_trace_rank_3=data[:len(data) // 2])
        self.assertEqual(self.looked(cut, kind, "cut")["recorder_dump"], ("0-2", None, "3"))
        shutil.move(os.path.join(cut, "fr_hang_trace_rank_3"), os.path.join(cut, "comm_lib_trace_rank_3"))
        with open(os.path.join(cut, "comm_lib_trace_rank_3"), "wb") as file:
            file.write(b"\0" * 40)
        self.assertEqual(self.looked(cut, kind, "noise")["recorder_dump"], ("0-2", None, "3"))

    def test_gloo_has_no_reports_of_nccl(self):
        looked = self.looked(os.path.join(RUNS, "fr_wrong_op"), "collective_divergence", "gloo")
        self.assertEqual([name for name in looked if name in ("watchdog", "ras_report")], [])

    def test_it_is_one_line_of_the_text(self):
        database = self.job("hang_in_compile")
        text = " ".join(run("findings", database, "--evidence").split())
        self.assertIn("not among the inputs: record of a failure in the trace of rank 2, traceback of rank 2, run.json, recorder dump of rank 2", text)
        self.assertNotIn("not among the inputs", run("findings", database))


# A test a job, so that parts of the suite share them; TRACEKIT_EXTRA_JOBS names more folders, separated by ':'.
for job in (sorted(path for part in ("runs", "logs", "inputs") for path in glob.glob(os.path.join(ROOT, "fixtures", part, "*")))
            + [folder for folder in os.environ.get("TRACEKIT_EXTRA_JOBS", "").split(":") if folder]):
    setattr(LookedFor, f"test_{os.path.basename(job)}", lambda self, folder=job: self.check(folder))


if __name__ == "__main__":
    unittest.main()
