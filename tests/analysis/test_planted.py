"""A job of 32 ranks with one planted divergence of each kind: all are found, nothing else is reported."""

import glob
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, ROOT, AnswerTest, ask  # noqa: E402


class Planted(AnswerTest):
    def make(self, count, *options):
        directory = os.path.join(self.scratch, f"job_{count}")
        template = sorted(glob.glob(os.path.join(LOGS, "train_order", "*_rank_0_*")))[0]
        subprocess.run([sys.executable, os.path.join(ROOT, "tests", "tools", "make_job.py"), template, directory, str(count), *options],
                       check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(directory, "plan.json")) as file:
            plan = json.load(file)
        os.unlink(os.path.join(directory, "plan.json"))
        return directory, plan

    def test_all_are_found_and_nothing_else(self):
        directory, plan = self.make(32)
        database = self.ingest(directory)
        found = self.aspects(database)
        planted = {str(row["rank"]): row for row in plan["planted"] if row["kind"] != "no_log"}
        self.assertEqual(set(found), set(planted))
        for rank, row in planted.items():
            self.assertTrue(any(text.startswith(row["area"] + ":") and row["text"] in text for text in found[rank]), (row, found[rank]))
        answer = ask("ranks", database)
        absent = [str(row["rank"]) for row in plan["planted"] if row["kind"] == "no_log"]
        self.assertEqual(answer["missing_ranks"]["ranks"], ",".join(absent))
        # Every rank has its own device and keys of its own: one note, no divergence.
        self.assertTrue(all("device index" in note for note in answer["notes"]), answer["notes"])
        causes = {(finding["cause"], finding["ranks"]["ranks"]) for finding in ask("cache", database)["findings"] if not finding["is_note"]}
        kinds = {"config": "config", "shape": "inputs", "collective": "graph", "build": "build", "graph": "missing_compile"}
        self.assertEqual(causes, {(kinds[row["kind"]], rank) for rank, row in planted.items() if row["kind"] in kinds})

    def test_a_job_without_plants_is_one_class(self):
        directory, _ = self.make(8, "--plant", "none")
        answer = ask("ranks", self.ingest(directory))
        self.assertEqual([one["ranks"]["ranks"] for one in answer["classes"]], ["0-7"])
        self.assertFalse(answer["has_divergence"])


if __name__ == "__main__":
    unittest.main()
