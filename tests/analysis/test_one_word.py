"""Answers of one recorded job agree: one word for one state, the same ranks, numbers and places, wherever they are said."""

import collections
import glob
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, ROOT, AnswerTest, ask, expanded, run  # noqa: E402

STATUSES = ("ok", "restarted", "empty", "failed", "skipped", "unfinished")


def flat(findings):
    for one in findings:
        yield one
        yield from flat(one["evidence"])


class OneWord(AnswerTest):
    def load(self, folder):
        self.database = self.ingest(folder, name="job")
        self.where = os.path.basename(folder)
        self.compiles = self.sql("SELECT c.id, c.label, c.rank, c.status, c.generation, c.file, c.line, c.process_id, n.ordinal AS launch FROM compile c "
                                 "JOIN process p ON p.id = c.process_id LEFT JOIN launch n ON n.id = p.launch_id")
        self.ranks = {one["rank"] for one in self.sql("SELECT rank FROM process WHERE rank IS NOT NULL UNION SELECT rank FROM profile WHERE rank IS NOT NULL "
                                                      "UNION SELECT rank FROM run_process WHERE rank IS NOT NULL")}
        self.history = ask("history", self.database)["compiles"]
        self.findings = ask("findings", self.database)
        self.status = ask("status", self.database)["rows"]

    def sql(self, query):
        return json.loads(run("sql", self.database, "--json", query))["rows"]

    def check_states(self):
        by_id = {one["id"]: one for one in self.compiles}
        self.assertEqual({one["compile_id"]: one["status"] for one in self.history}, {key: one["status"] for key, one in by_id.items()}, self.where)
        for row in ask("recompiles", self.database)["recompiles"]:
            if row["compile_id"]:
                self.assertEqual(row["status"], by_id[row["compile_id"]]["status"], self.where)
        for row in self.status:
            if row["state"] == "failed":
                self.assertIn("failed", [one["status"] for one in self.compiles if (one["process_id"], self.name_of(one)) == (row["process_id"], row["compile"])],
                              (self.where, row))
            if row["compile"]:
                self.assertIn(row["compile"], {self.name_of(one) for one in self.compiles if one["process_id"] == row["process_id"]}, (self.where, row))
        for command in ("history", "ranks", "cache"):
            text = " ".join(run(command, self.database).split())
            self.assertNotIn("after a restart", text, (self.where, command))

    def check_table(self):
        """The column of the table is the value of the row."""
        heading, *lines = run("history", self.database, "--all").splitlines()
        if "compile" not in heading:
            return
        words = collections.Counter(word for line in lines for word in re.findall(r"(?<= )(?:%s)(?= |$)" % "|".join(STATUSES), line)[:1])
        self.assertEqual(sum(words.values()), len(self.history), self.where)

    def check_findings(self):
        of_launch = [one for one in self.compiles if one["launch"] in (None, self.findings["launch"])]
        labels = {self.name_of(one) for one in of_launch}
        for one in flat(self.findings["findings"]):
            if one["kind"] in ("missing_rank", "launch_differs", "restarted") or one["launch"] not in (None, self.findings["launch"]):
                continue
            of_logs = set(one["ranks"]) if one["kind"] not in ("crashed", "collective_not_reached") else set()
            self.assertLessEqual(of_logs, self.ranks, (self.where, one["title"]))
            named = set(one["compiles"])
            self.assertLessEqual(named, labels, (self.where, one["title"]))
            if one["kind"] == "compile_failed" and one["ranks"] and named:
                failed = {row["rank"] for row in of_launch if self.name_of(row) in one["compiles"] and row["status"] in ("failed", "skipped", "ok", "restarted")}
                self.assertLessEqual(set(one["ranks"]), failed, (self.where, one["title"]))
                for rank in one["ranks"]:
                    answer = ask("compile", self.database, one["compiles"][0], "--rank", str(rank))
                    said = " ".join(entry["message"] or "" for entry in answer["exceptions"])
                    known = one["cause"].split(": ")[-1].split("\n")[0].rstrip("…")[:40]
                    self.assertTrue(not answer["exceptions"] or known in " ".join(said.split()) or known in said, (self.where, one["cause"], said[:300]))

    def check_compile_answers(self):
        """What `compile` says of others is what is said of them."""
        first = {}
        for one in self.compiles:
            if one["rank"] is not None and one["generation"] == 0 and one["launch"] in (None, self.findings["launch"]):
                first.setdefault(one["label"], []).append(one)
        for label, rows in list(first.items())[:3]:
            ranks = {one["rank"] for one in rows}
            if len(rows) != len(ranks):
                continue  # a rank with two logs
            answer = ask("compile", self.database, label, "--rank", str(rows[-1]["rank"]))
            self.assertEqual(answer["status"], rows[-1]["status"], (self.where, label))
            for other in answer["statuses"]:
                numbers = [number for part in other["ranks"].split(" ")[1].split(",") for number in self.expand(part)]
                for rank in numbers:
                    mine = [one["status"] for one in self.compiles if one["rank"] == rank and one["launch"] in (None, self.findings["launch"])]
                    self.assertIn(other["text"], mine, (self.where, label, other))

    def name_of(self, row):
        return row["label"] + (f"#{row['generation'] + 1}" if row["generation"] else "")

    def expand(self, part):
        low, _, high = part.partition("-")
        return range(int(low), int(high or low) + 1)

    def check_numbers(self):
        process = self.one_process()
        if process:
            of_series = sum(one["recompiles"] + one["refused"] for one in ask("recompiles", self.database, *process)["series"])
            rows = [one for one in json.loads(run("history", self.database, "--json", *process))["compiles"] if one["failed_guards"]]
            self.assertEqual(of_series, len(rows), (self.where, process))
        breaks = self.sql("SELECT count(*) AS count FROM graph_break WHERE compile_id IS NOT NULL")[0]["count"]
        self.assertEqual(sum(one["graph_breaks"] for one in self.history), breaks, self.where)
        cache = ask("cache", self.database)
        for one in cache["economics"] if self.has_one_launch() and not cache["not_counted"] else ():
            states = dict((row["state"], row["count"]) for row in self.sql(f"SELECT state, count(*) AS count FROM cache_event WHERE layer = '{one['layer']}' GROUP BY 1"))
            self.assertEqual((one["hits"], one["misses"]), (states.get("hit", 0), states.get("miss", 0)), (self.where, one["layer"]))

    def check_recorders(self):
        """What a rank is through is done in SQL as well, in every file that has the call."""
        self.assertEqual(self.sql("SELECT c.id FROM recorder_entry e JOIN collective_run c ON c.entry_id = e.id WHERE (c.state = 'done') <> (e.state = 'done')"),
                         [], self.where)
        states = collections.defaultdict(set)
        for row in self.sql("SELECT r.group_name, r.sequence_number, r.rank, r.state FROM collective_run r WHERE NOT r.is_p2p"):
            states[row["group_name"], row["sequence_number"], row["rank"]].add(row["state"])
        for group in (ask("collectives", self.database, "--no-findings")["issued"] or {"groups": []})["groups"]:
            for line in group["collectives"]:
                for rank in expanded(line["done"]["ranks"]):
                    self.assertEqual(states[group["name"], line["sequence_number"], rank], {"done"}, (self.where, group["name"], line["sequence_number"], rank))
                for rank in expanded(line["waiting"]["ranks"]):
                    self.assertNotIn("done", states[group["name"], line["sequence_number"], rank], (self.where, group["name"], line["sequence_number"], rank))

    def has_one_launch(self):
        return self.sql("SELECT count(*) AS count FROM launch")[0]["count"] == 1

    def one_process(self):
        pid, = self.sql("SELECT pid FROM process ORDER BY id LIMIT 1")[0].values()
        if len(self.sql(f"SELECT id FROM process WHERE pid = {pid}")) == 1:
            return ["--process", str(pid)]
        return ["--rank", "0"] if 0 in self.ranks else []

    def check(self, folder):
        self.load(folder)
        if not self.compiles:
            return  # other inputs than logs
        self.check_recorders()
        self.check_states()
        self.check_table()
        self.check_findings()
        self.check_compile_answers()
        self.check_numbers()


# A test a job, so that parts of the suite share them; TRACEKIT_EXTRA_JOBS names more folders, separated by ':'.
for job in sorted(glob.glob(os.path.join(LOGS, "*")) + glob.glob(os.path.join(ROOT, "fixtures", "runs", "fr_*"))) + [folder for folder in os.environ.get("TRACEKIT_EXTRA_JOBS", "").split(":") if folder]:
    setattr(OneWord, f"test_{os.path.basename(job)}", lambda self, folder=job: self.check(folder))


if __name__ == "__main__":
    unittest.main()
