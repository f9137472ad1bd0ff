"""Answers about one rank or process alone, and the user's frames of what they show."""

import json
import os
import re
import unittest

from answers import ROOT, AnswerTest, ask, first_log, run, trace_lines

RUNS = os.path.join(ROOT, "fixtures", "runs")


class OneProcess(AnswerTest):
    def test_status_of_a_rank_and_of_a_process(self):
        database = self.job("train_order")
        all_rows = ask("status", database)["rows"]
        self.assertGreater(len(all_rows), 1)
        one, = ask("status", database, "--rank", "1")["rows"]
        self.assertEqual(one, next(row for row in all_rows if row["rank"] == 1))
        self.assertEqual(ask("status", database, "--process", str(one["pid"]))["rows"], [one])

    def test_children_stay_with_their_rank(self):
        database = self.ingest(os.path.join(RUNS, "loader_workers"), name="loader")
        rows = ask("status", database)["rows"]
        child = next(row for row in rows if row["child_kind"])
        parent = next(row for row in rows if row["process_id"] == child["parent_process_id"])
        shown = ask("status", database, "--rank", str(parent["rank"]))["rows"]
        self.assertEqual({row["process_id"] for row in shown},
                         {row["process_id"] for row in rows if row["process_id"] == parent["process_id"] or row["parent_process_id"] == parent["process_id"]})
        text = run("status", database, "--process", str(child["pid"]))
        self.assertIn(str(child["pid"]), text)
        self.assertNotIn(str(parent["pid"]), text)

    def test_findings_of_a_rank(self):
        database = self.job("train_order")
        findings = ask("findings", database)["findings"]
        ranks = {rank for one in findings for rank in one["ranks"]}
        self.assertTrue(ranks)

        def names(finding, rank):
            return rank in finding["ranks"] or any(names(one, rank) for one in finding["evidence"])
        for rank in ranks:
            expected = [one["id"] for one in findings if names(one, rank) or not (one["ranks"] or one["logs"])]
            self.assertEqual([one["id"] for one in ask("findings", database, "--rank", str(rank))["findings"]], expected)

    def test_problems_of_a_rank(self):
        for rank in range(2):
            with open(os.path.join(self.scratch, f"dedicated_log_torch_trace_rank_{rank}_a.log"), "w") as log:
                log.write(self.compiled(0, "f", "add", rank=rank))
                log.write("V1121 08:30:02.000000 4242 a.py:1] {broken\n" * rank)
        folder = self.scratch
        database = os.path.join(self.scratch, "two.db")
        run(folder, "--db-only", "--db", database)

        def problems(*arguments):
            return json.loads(run("import-log", database, "--json", *arguments))["rows"]
        rows = problems()
        self.assertEqual({row["severity"] for row in rows} & {"error"}, {"error"})
        self.assertEqual(problems("--rank", "1"), [row for row in rows if "_rank_1_" in row["path"]])
        self.assertEqual([row for row in problems("--rank", "0") if row["severity"] == "error"], [])

    def test_stacks(self):
        database = self.job("recompiles_2_6")
        for command in ("history", "recompiles"):
            text = " ".join(run(command, database, "--stack").split())
            self.assertRegex(text, r"stack of \d/\d \w+: [\w.]+\.py:\d+ in \w+", command)
            self.assertNotIn("torch/_dynamo", text)
            self.assertIsNone(re.search(r"\.py:\d+ in ", run(command, database)), command)
        labels = {row["label"] for row in ask("history", database)["compiles"]}
        compile_answer = ask("compile", database, sorted(labels)[0])
        caller = compile_answer["callers"][0]
        self.assertIn(f"{os.path.basename(caller['file'])}:{caller['line']} in {caller['function']}", " ".join(run("history", database, "--stack").split()))

    def test_a_recorder_entry_that_is_done(self):
        database = self.ingest(os.path.join(RUNS, "fr_healthy"), name="healthy")
        states = json.loads(run("sql", database, "--json", "SELECT DISTINCT r.state AS state, e.recorded_state AS recorded, e.state AS entry FROM collective_run r "
                                "JOIN recorder_entry e ON e.id = r.entry_id WHERE e.is_retired"))["rows"]
        self.assertEqual(states, [{"state": "done", "recorded": "scheduled", "entry": "done"}])  # gloo's dumps never say more
        self.assertIn(" done ", run("collectives", database))

    def test_lookups_that_are_not_counted(self):
        """The last one is in a record whose payload is cut off."""
        with trace_lines.open_log(first_log("cache_warm_2_6")) as log:
            text = log.read()
        payload = text.index(b"\n\t", text.rindex(b'"fx_graph_cache_hit"'))
        self.save("whole.log", text.decode())
        whole = self.ingest(os.path.join(self.scratch, "whole.log"), name="whole")
        self.save("cut.log", text[:payload + 40].decode())
        cut = self.ingest(os.path.join(self.scratch, "cut.log"), name="cut")
        self.assertIsNone(ask("cache", whole)["not_counted"])
        events = json.loads(run("sql", cut, "--json", "SELECT count(*) AS count FROM cache_event"))["rows"][0]["count"]
        counted = sum(one[state] for one in ask("cache", cut)["economics"] for state in ("hits", "misses", "guard_misses", "bypasses", "disabled", "remote_errors"))
        said = ask("cache", cut)["not_counted"]
        self.assertEqual(int(said.split()[0]) if said else 0, events - counted)
        self.assertTrue(said and "cut off or damaged" in said, (said, events, counted))


if __name__ == "__main__":
    unittest.main()
