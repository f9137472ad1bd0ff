"""Launches and `tlparse status`: where each rank's log ends."""

import os
import pickle
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import AnswerTest, ask, run  # noqa: E402


class Status(AnswerTest):
    def states(self, scenario, *arguments):
        rows = ask("status", self.job(scenario), *arguments)["rows"]
        return [(row["rank"], row["state"], row["compile"], row["function"], row["phase"], row["compiles_done"]) for row in rows]

    def test_a_failed_compile(self):
        self.assertEqual(self.states("crash_in_compile"), [
            (0, "between_compiles", "1/0", "grad_sync", None, 2), (1, "failed", "1/0", "grad_sync", None, 1),
            (2, "between_compiles", "1/0", "grad_sync", None, 2), (3, "between_compiles", "1/0", "grad_sync", None, 2)])

    def test_a_log_that_ends_inside_a_compile(self):
        states = self.states("hang_in_compile")
        self.assertEqual(states[2], (2, "compiling", "1/0", "grad_sync", "pass.post_grad_passes.post_grad_custom_post_pass", 1))
        self.assertEqual([state[1] for state in states], ["between_compiles", "between_compiles", "compiling", "between_compiles"])
        self.assertEqual([state[4] for state in self.states("crash_segv_in_inductor")],
                         ["code_gen", "Scheduler.__init__", "build_guards", "build_guards"])

    def test_what_ends_well_is_between_compiles(self):
        for scenario in ("one_rank_cold", "straggler_late", "train_order", "fsdp2", "failures", "graph_breaks_2_6", "aoti_2_6"):
            with self.subTest(scenario):
                self.assertNotIn("compiling", {state[1] for state in self.states(scenario)})

    def test_compiles_of_a_log_without_frames_are_counted(self):
        database = self.job("aoti_2_6")
        connection = sqlite3.connect(database)
        self.addCleanup(connection.close)
        graphs = connection.execute("SELECT count(DISTINCT compile_id) FROM graph").fetchone()[0]
        self.assertGreater(graphs, 0)
        self.assertEqual([state[5] for state in self.states("aoti_2_6")], [graphs])

    def test_compiles_that_the_limit_refused_are_not_done(self):
        statuses = [one["status"] for one in ask("history", self.job("recompiles_2_6"))["compiles"]]
        self.assertEqual((statuses.count("ok"), statuses.count("skipped"), len(statuses)), (29, 8, 37))
        self.assertEqual(self.states("recompiles_2_6")[0][5], 29)

    def test_a_further_log_of_a_rank_is_shown_as_that(self):
        for name, pid in (("a", 4242), ("b", 4243)):
            self.save(f"two/dedicated_log_torch_trace_rank_0_{name * 8}.log", self.compiled(0, "f", "add").replace(" 4242 ", f" {pid} "))
        lines = run("status", self.ingest(os.path.join(self.scratch, "two"))).splitlines()
        self.assertEqual([line.split()[:2] for line in lines if line.startswith("0")], [["0", "4242"], ["0#2", "4243"]])

    def test_times_are_those_of_the_first_and_last_record(self):
        database = self.job("restart_elastic")
        connection = sqlite3.connect(database)
        self.addCleanup(connection.close)
        wrong = connection.execute("""SELECT count(*) FROM process p WHERE
            p.first_record_us IS NOT (SELECT min(time_us) FROM record r WHERE r.process_id = p.id) OR
            p.last_record_us IS NOT (SELECT max(time_us) FROM record r WHERE r.process_id = p.id)""").fetchone()
        self.assertEqual(wrong, (0,))

    def test_launches(self):
        database = self.job("restart_elastic")
        connection = sqlite3.connect(database)
        self.addCleanup(connection.close)
        rows = connection.execute("SELECT n.ordinal, p.rank, p.pid FROM process p JOIN launch n ON n.id = p.launch_id ORDER BY 1, 2").fetchall()
        self.assertEqual(rows, [(1, 0, 9575), (1, 1, 9578), (1, 2, 9579), (1, 3, 9581), (2, 0, 10140), (2, 1, 10141), (2, 2, 10142),
                                (2, 3, 10143), (3, 0, 10904), (3, 1, 10905), (3, 2, 10906), (3, 3, 10907)])
        self.assertEqual(connection.execute("SELECT ordinal, process_count FROM launch").fetchall(), [(1, 4), (2, 4), (3, 4)])
        self.assertEqual({row["launch"] for row in ask("status", database)["rows"]}, {3})
        self.assertEqual([row["pid"] for row in ask("status", database, "--launch", "1")["rows"]], [9575, 9578, 9579, 9581])
        self.assertEqual(ask("ranks", database)["participants"], 4)
        self.assertEqual(ask("ranks", database, "--launch", "1")["classes"][1]["ranks"]["ranks"], "2")
        run("ranks", database, "--launch", "4", code=2)
        # Logs that come later to the same run.
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures", "logs", "restart_elastic")
        part = os.path.join(self.scratch, "part.db")
        for log in reversed(sorted(name for name in os.listdir(folder) if "_rank_" in name)):
            run(os.path.join(folder, log), "--db-only", "--db", part, "--run", "job")
        other = sqlite3.connect(part)
        self.addCleanup(other.close)
        self.assertEqual(other.execute("SELECT n.ordinal, p.rank, p.pid FROM process p JOIN launch n ON n.id = p.launch_id ORDER BY 1, 2").fetchall(), rows)
        self.assertEqual(other.execute("SELECT ordinal, process_count FROM launch").fetchall(), [(1, 4), (2, 4), (3, 4)])

    def test_a_run_without_logs_says_that_they_are_missing(self):
        path = self.save("trace.json", '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}')
        heading, *rest = run("status", self.ingest(path, name="profile_alone")).splitlines()
        self.assertTrue(heading.endswith(": no log, 1 profile"), heading)
        self.assertEqual(rest, ["not looked for: no structured trace is among the input (TORCH_TRACE=<directory> writes one)"])

    def test_ranks_of_files_beside_logs_are_named(self):
        for rank in (0, 1, 3):
            with open(self.save(f"alone/nccl_trace_rank_{rank}", ""), "wb") as file:
                pickle.dump({"version": "2.10", "entries": []}, file, protocol=2)
        self.save("alone/worker.pt.trace.json", '{"distributedInfo": {"rank": 2, "world_size": 4}, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}')
        database = self.ingest(os.path.join(self.scratch, "alone"))
        self.assertIn(": no log, 3 recorder dumps of ranks 0,1,3, 1 profile of rank 2 not looked for", " ".join(run("status", database).split()))
        answer = ask("status", database)
        self.assertEqual(([], [{"kind": "flight_recorder", "count": 3, "ranks": [0, 1, 3]}, {"kind": "kineto", "count": 1, "ranks": [2]}]), (answer["rows"], answer["other_files"]))

    def test_random_endings_of_file_names_are_never_shown(self):
        database = self.job("restart_elastic")
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures", "logs", "restart_elastic")
        endings = [name.split(".")[0][-8:] for name in os.listdir(folder) if "_rank_" in name]
        for launch in "123":
            for command in ("ranks", "cache", "collectives", "execution", "status"):
                text = run(command, database, "--launch", launch)
                self.assertFalse([ending for ending in endings if ending in text], text)

    def test_two_launches_are_compared(self):
        database = self.job("restart_manual_other_config")
        answer = ask("diff", database, "--launch", "1", "2")
        self.assertIn("max_fusion_size]: 64 → 13", str(answer))
        self.assertTrue(ask("diff", database, "--launch", "1", "--launch", "1")["is_equal"])
        run("diff", database, "--launch", "1", code=2)
        run("diff", database, "--launch", "1", "x", code=2)


if __name__ == "__main__":
    unittest.main()
