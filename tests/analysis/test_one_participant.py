"""--rank and --process of every answer about a run: the same words, the same errors, and nothing of others without its being said."""

import json
import os
import re
import subprocess
import unittest

from answers import ROOT, TLPARSE, AnswerTest, ask, expanded, run

RUNS = os.path.join(ROOT, "fixtures", "runs")
ARGUMENTS = {"compile": ["0/0"], "search": ["mul"], "source": ["fr_job.py"]}
ANSWERS = ["autotune", "cache", "collectives", "compile", "cost", "execution", "findings", "history", "import-log", "memory", "provenance", "ranks", "recompiles",
           "search", "source", "status"]


def failed(*arguments):
    done = subprocess.run([TLPARSE, *arguments], capture_output=True, text=True)
    return done.returncode, done.stderr


def has(ranks, rank):
    return rank in expanded(ranks["ranks"])


class OneParticipant(AnswerTest):
    def wrong_op(self):
        """Rank 2 issues another collective than ranks 0, 1 and 3; groups of tensor parallelism are 0,1 and 2,3."""
        return self.ingest(os.path.join(RUNS, "fr_wrong_op"), name="wrong_op")

    def test_every_answer_takes_both(self):
        for name in ANSWERS:
            text = " ".join(run(name, "--help").split())
            self.assertRegex(text, r"--rank INT (only|on) this rank|--rank INT only those that name this rank", name)
            self.assertRegex(text, r"--process INT (only|in) the process of this pid|--process INT only those that name the process", name)

    def test_tools_of_mcp_take_what_the_commands_take(self):
        asked = "\n".join(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}) for method in ("tools/list",)) + "\n"
        done = subprocess.run([TLPARSE, "mcp"], input=asked, capture_output=True, text=True)
        self.assertLess(len(done.stdout), 64_000)
        tools = {tool["name"]: tool["inputSchema"]["properties"] for tool in json.loads(done.stdout)["result"]["tools"]}
        for name in ANSWERS:
            self.assertLessEqual({"rank", "process"}, set(tools[name.replace("-", "_")]), name)

    def test_what_is_not_there_is_said_alike(self):
        database = self.wrong_op()
        pids = ", ".join(str(row["pid"]) for row in sorted(ask("status", database)["rows"], key=lambda row: row["pid"]))
        for name in ANSWERS:
            arguments = [name, database, *ARGUMENTS.get(name, [])]
            for asked, there in ((["--rank", "77"], "there are ranks 0-3"), (["--process", "1"], f"there are ranks 0-3, processes {pids}")):
                code, message = failed(*arguments, *asked)
                self.assertEqual(code, 2, (name, message))
                self.assertRegex(message, rf"^tlparse: no input is of {asked[0][2:]} {asked[1]}( in launch 1)?; {there}\n$", name)
                self.assertEqual(failed(*arguments, *asked, "--json"), (2, message), name)

    def test_every_answer_says_what_it_is_of(self):
        """In JSON and in the text; compile is of one rank always, cost and memory say it among their notes."""
        ddp = self.ingest(os.path.join(RUNS, "p_ddp"), name="ddp")
        left_out = {"history": "compile", "recompiles": "recompile", "source": "outcome", "status": "process"}
        for name in ANSWERS:
            if name in ("compile", "cost", "memory"):
                continue
            asked = [name, ddp, *(["p_ddp.py"] if name == "source" else ARGUMENTS.get(name, [])), "--rank", "1"]
            only = json.loads(run(*asked, "--json")).get("only", "")
            self.assertRegex(only, r"^only what involves rank 1", name)
            if name not in ("collectives", "execution", "ranks"):
                self.assertIn(only, " ".join(run(*asked).split()), name)
            if name in left_out:
                whole = json.loads(run(*asked[:-2], "--json"))
                rows = {"history": "compiles", "recompiles": "recompiles", "source": "outcomes", "status": "rows"}[name]
                own = [row for row in whole[rows] if row.get("rank") == 1 or 1 in row.get("ranks", [])]
                others = len({row["compile_id"] for row in whole[rows] if row not in own}) if name == "recompiles" else len(whole[rows]) - len(own)
                counted = re.search(r"left out: (\d+) ", only)
                self.assertEqual(int(counted[1]) if counted else 0, others, (name, only))
                self.assertNotIn("only", whole)

    def test_ranks(self):
        database = self.wrong_op()
        whole = ask("ranks", database)
        self.assertEqual([one["ranks"]["ranks"] for one in whole["classes"]], ["0,1,3", "2"])
        self.assertNotIn("only", whole)
        odd = ask("ranks", database, "--rank", "2")
        self.assertEqual(odd["classes"], whole["classes"])
        self.assertEqual(odd["only"], "only what involves rank 2, compared with ranks 0,1,3")
        self.assertEqual(odd["slowest"], None)
        usual = ask("ranks", database, "--rank", "1")
        self.assertEqual(usual["classes"], whole["classes"][:1])
        self.assertEqual(usual["only"], "only what involves rank 1, which is like ranks 0,3; left out: 1 participant that differs from it (rank 2)")
        self.assertIn(usual["only"], " ".join(run("ranks", database, "--rank", "1").split()))
        for rank in range(4):
            slowest = ask("ranks", database, "--rank", str(rank))["slowest"]
            self.assertEqual(slowest, whole["slowest"] if whole["slowest"]["rank"] == str(rank) else None)

    def test_collectives(self):
        database = self.wrong_op()
        whole = ask("collectives", database)
        for rank in range(4):
            one = ask("collectives", database, "--rank", str(rank))
            self.assertEqual([group for group in whole["issued"]["groups"] if has(group["ranks"], rank)], one["issued"]["groups"])
            self.assertEqual([wait for wait in whole["issued"]["waits"] if wait["rank"] == str(rank)], one["issued"]["waits"])
            self.assertEqual(one["issued"]["findings"], whole["issued"]["findings"], "all are members of the group")
            self.assertRegex(one["only"], r"left out: .*1 group that it is not in$")
            self.assertEqual([row["ranks"]["ranks"] for row in one["classes"]], ["0,1,3", "2"] if rank == 2 else ["0,1,3"])
        mismatches = ask("collectives", database, "--rank", "2")["classes"][1]["mismatches"]
        self.assertEqual(mismatches, whole["classes"][1]["mismatches"])
        self.assertTrue(mismatches)

    def test_execution(self):
        database = self.job("train_order")
        whole = ask("execution", database)
        self.assertGreater(len(whole["classes"]), 1)
        participants = range(whole["participants"])
        for rank in participants:
            one = ask("execution", database, "--rank", str(rank))
            kept = [row for place, row in enumerate(whole["classes"]) if place == 0 or has(row["ranks"], rank)]
            self.assertEqual(one["classes"], kept)
            self.assertEqual(one["runtimes"], [row for row in whole["runtimes"] if has(row["lowest_ranks"], rank) or has(row["highest_ranks"], rank)])
            self.assertEqual("compared with" in one["only"], not has(whole["classes"][0]["ranks"], rank))

    def test_caches(self):
        database = self.job("cache_some_ranks")
        whole = ask("cache", database)
        sums = {}
        for rank in range(4):
            one = ask("cache", database, "--rank", str(rank))
            for layer in one["economics"]:
                for state in ("hits", "misses"):
                    sums[layer["layer"], state] = sums.get((layer["layer"], state), 0) + layer[state]
            self.assertTrue(all(has(row["ranks"], rank) or has(row["against"], rank) for row in one["findings"]))
            self.assertTrue(all(any(has(group["ranks"], rank) for group in row["classes"]) for row in one["lookups"]))
        self.assertEqual(sums, {(layer["layer"], state): layer[state] for layer in whole["economics"] for state in ("hits", "misses")})

    def test_findings_left_out_are_counted(self):
        database = self.wrong_op()
        self.assertEqual(ask("findings", database, "--rank", "0")["only"], "only what involves rank 0; left out: 1 finding whose cause lies in others (1 error)")
        self.assertEqual(ask("findings", database, "--rank", "2")["findings"], ask("findings", database)["findings"])
        pid = next(row["pid"] for row in ask("status", database)["rows"] if row["rank"] == 2)
        self.assertEqual(ask("findings", database, "--process", str(pid))["findings"], ask("findings", database)["findings"])

    def test_a_process_is_its_rank(self):
        database = self.wrong_op()
        rows = ask("status", database)["rows"]
        for name in ("ranks", "collectives", "cache", "history", "recompiles", "provenance"):
            for row in rows[1:3]:
                by_rank = ask(name, database, "--rank", str(row["rank"]))
                by_process = ask(name, database, "--process", str(row["pid"]))
                only = by_process.pop("only", None)
                self.assertEqual(only and re.sub(r"process \d+", f"rank {row['rank']}", only), by_rank.pop("only", None))
                self.assertEqual(by_process, by_rank, name)

    def test_profiles_memory_and_places(self):
        ddp = self.ingest(os.path.join(RUNS, "p_ddp"), name="ddp")
        rows = ask("status", ddp)["rows"]
        whole = ask("cost", ddp)
        for row in rows:
            one = ask("cost", ddp, "--process", str(row["pid"]))
            self.assertEqual([profile["path"] for profile in one["profiles"]], [profile["path"] for profile in whole["profiles"] if f"rank{row['rank']}." in profile["path"]])
            self.assertIn(f"only what involves process {row['pid']}; left out: 1 profile of others", one["notes"])
            self.assertEqual(one["rows"], ask("cost", ddp, "--rank", str(row["rank"]))["rows"])
            found = ask("source", ddp, "p_ddp.py", "--process", str(row["pid"]))["outcomes"]
            self.assertTrue(found)
            self.assertEqual({rank for outcome in found for rank in outcome["ranks"]}, {row["rank"]})
            texts = json.loads(run("search", ddp, "addmm", "--json", "--process", str(row["pid"])))["texts"]
            self.assertEqual({rank for text in texts for rank in text["ranks"]}, {row["rank"]})
        code, message = failed("memory", ddp, "--process", str(rows[0]["pid"]))
        self.assertEqual(code, 2)
        self.assertIn(f"no profile with memory events of process {rows[0]['pid']}", message)


if __name__ == "__main__":
    unittest.main()
