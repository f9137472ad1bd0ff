"""A job of 32 ranks with one planted divergence of each kind: all are found, nothing else is reported."""

import glob
import json
import os
import re
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, ROOT, TLPARSE, AnswerTest, ask, run, trace_lines  # noqa: E402


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
        database = self.ingest(directory)
        answer = ask("ranks", database)
        self.assertEqual([one["ranks"]["ranks"] for one in answer["classes"]], ["0-7"])
        self.assertFalse(answer["has_divergence"])
        # Every rank has its own device: said, and no divergence unless asked for.
        self.assertEqual(len(answer["notes"]), 1)
        self.assertRegex(answer["notes"][0], r"device index.*index=0\) → .*index=1\)")
        run("check", database, "--no-divergence")
        run("check", database, "--no-divergence", "--notes-are-divergence", code=1)
        # Its keys, components and hashes are those of the log, whatever is stored once.
        self.assertEqual(self.components(database), self.components_of_logs(directory))

    def test_a_job_in_batches_equals_one_ingested_at_once(self):
        template = sorted(glob.glob(os.path.join(LOGS, "train_order", "*_rank_0_*")))[0]
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "bench", "many_ranks.py"), TLPARSE, template,
                               os.path.join(self.scratch, "batches.db"), "12", "--batch", "5", "--folder", os.path.join(self.scratch, "logs"), "--verify"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\b\d{2,3} tables compared, 0 differ")

    def components(self, database):
        connection = sqlite3.connect(database)
        self.addCleanup(connection.close)
        rows = connection.execute("SELECT key, name, hash, value FROM cache_component ORDER BY key, ordinal").fetchall()
        keys = connection.execute("SELECT count(DISTINCT component_set_id), count(*), count(DISTINCT device_index) FROM cache_key_set_row").fetchone()
        # Eight ranks, one set for each key of one rank.
        self.assertEqual((keys[1], keys[2]), (8 * keys[0], 8))
        return rows

    def components_of_logs(self, directory):
        """The same from the logs, by another way: the JSON of the artifacts, lines taken apart with a regular expression."""
        keys = {}
        for log in glob.glob(os.path.join(directory, "*.log")):
            for item in trace_lines.read_log(log):
                if isinstance(item, trace_lines.Record) and (item.name or "").startswith("fx_graph_cache_"):
                    lookup = json.loads(item.payload)
                    lines = "\n".join(lookup["components"])
                    found = re.findall(r"^\[([a-z2-7]{51})\] (\w+(?:\[.*?\](?=: ))?): (.*?)(?=\n\[[a-z2-7]{51}\] |\Z)", lines, re.S | re.M)
                    keys[lookup["key"]] = [(lookup["key"], name, hash_, value) for hash_, name, value in found]
        return [row for key in sorted(keys) for row in keys[key]]


if __name__ == "__main__":
    unittest.main()
