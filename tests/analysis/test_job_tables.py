"""The tables `role` and `process_end`, and what `status`, `ranks` and `findings` say of the same recorded jobs."""

import glob
import json
import os
import re
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, ROOT, SHARED, AnswerTest, ask, run  # noqa: E402

RUNS = os.path.join(ROOT, "fixtures", "runs")


def recorded():
    jobs = sorted(glob.glob(os.path.join(SHARED, "jobs", "*", "")) + glob.glob(os.path.join(SHARED, "jobs3", "*", "")))
    return [job for job in jobs if os.path.basename(os.path.dirname(job)) not in ("growing", "scripts")]


def ranges(text):
    ranks = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        ranks.update(range(int(first), int(last or first) + 1))
    return ranks


class JobTables(AnswerTest):
    def read(self, database, query):
        connection = sqlite3.connect(database)
        self.addCleanup(connection.close)
        connection.row_factory = sqlite3.Row
        return connection.execute(query).fetchall()

    def check(self, database):
        status = ask("status", database)
        roles = {row["id"]: row for row in self.read(database, "SELECT r.* FROM role r JOIN launch n ON n.id = r.launch_id "
                                                     f"WHERE n.ordinal = {status['launch']} ORDER BY r.ordinal")}
        processes = {row["id"]: row for row in self.read(database, "SELECT p.*, n.ordinal FROM process p JOIN launch n ON n.id = p.launch_id")}
        ends = {row["process_id"]: row for row in self.read(database, "SELECT * FROM process_end")}
        self.assertEqual([one["name"] for one in status["roles"]], [row["name"] for row in roles.values()])
        self.assertEqual(ask("ranks", database)["roles"], status["roles"])
        for row in status["rows"]:
            process, end = processes[row["process_id"]], ends[row["process_id"]]
            self.assertEqual(row["parent_process_id"], process["parent_process_id"])
            self.assertEqual(row["role"], roles[process["role_id"]]["name"] if process["role_id"] else None)
            self.assertTrue(row["child_kind"] is None or row["role"] is None, "a child has no role")
            self.assertEqual({name: bool(end[name]) if name == "is_bystander" else end[name] for name in row["end"]}, row["end"])
            self.assertIn(end["kind"], ("finished", "failed", "killed", "silent", "running"))
            self.assertEqual(end["last_record_id"], process["last_record_id"])
        of_rank = {row["rank"]: row for row in status["rows"] if row["rank"] is not None and row["child_kind"] is None}
        for finding in ask("findings", database)["findings"]:
            self.assertLessEqual(set(finding["roles"]), {one["name"] for one in status["roles"]})
            for one in [finding] + finding["evidence"]:
                if one["launch"] != status["launch"] or one["kind"] not in ("stopped_first", "compile_failed"):
                    continue
                are_bystanders = {of_rank[rank]["end"]["is_bystander"] for rank in one["ranks"] if rank in of_rank}
                if one is finding:
                    self.assertLessEqual(are_bystanders, {False}, finding["title"])
                    by = {end["ended_by_process_id"] for end in ends.values()} - {None}
                    firsts = {of_rank[rank]["process_id"] for rank in one["ranks"] if rank in of_rank}
                    self.assertTrue(not by or by & firsts or finding["severity"] != "error", finding["title"])
                elif one["kind"] == "stopped_first" and finding["kind"] == "compile_failed":
                    self.assertEqual(are_bystanders, {True}, one["title"])
        return status

    def test_fixtures(self):
        for job in ("loader_workers", "pipeline", "hook_raises", "coordinator", "segv_after_forward"):
            with self.subTest(job):
                self.check(self.ingest(os.path.join(RUNS, job), name=job))
        for job in ("crash_in_compile", "killed", "restart_elastic"):
            with self.subTest(job):
                self.check(self.ingest(os.path.join(LOGS, job), name=job))

    @unittest.skipUnless(recorded(), "the recorded jobs are not beside the checkout")
    def test_recorded_jobs(self):
        for job in recorded():
            with self.subTest(job):
                self.check(self.ingest(job, name=os.path.basename(os.path.dirname(job))))

    def test_children_stand_under_their_rank(self):
        database = self.ingest(os.path.join(RUNS, "loader_workers"))
        lines = run("status", database).splitlines()
        self.assertTrue(any(line.startswith("role: replicas") for line in lines))
        workers = [at for at, line in enumerate(lines) if line.startswith("  ") and "loader w" in line]
        self.assertTrue(workers and all(lines[at - 1][0].isdigit() or at - 1 in workers for at in workers), lines)
        self.assertEqual(self.read(database, "SELECT count(*) AS n FROM process WHERE child_kind = 'loader_worker' AND role_id IS NOT NULL")[0]["n"], 0)

    def test_a_program_that_a_rank_started_is_its_child(self):
        """Its log names no rank; run.json has its parents, here a shell between the two."""
        for rank in range(2):
            self.save(f"job/dedicated_log_torch_trace_rank_{rank}_abcd{rank}.log", self.compiled(0, "forward", "add", rank=rank).replace(" 4242 ", f" {4242 + rank} "))
        self.save("job/dedicated_log_torch_trace_abcd2.log", self.compiled(0, "distance", "mul", rank=None).replace('"rank": null, ', "").replace(" 4242 ", " 4250 "))
        first_us = self.read(self.ingest(os.path.join(self.scratch, "job"), name="logs"), "SELECT min(first_record_us) AS us FROM process")[0]["us"]
        life = {"started_us": first_us - 500_000, "ended_us": first_us + 60_000_000, "exit_code": 0}
        processes = [{"pid": 4200, "parent_pid": 1}, *({"pid": 4242 + rank, "parent_pid": 4200, "rank": rank} for rank in range(2)),
                     {"pid": 4249, "parent_pid": 4243}, {"pid": 4250, "parent_pid": 4249}]
        self.save("job/run.json", json.dumps({"command": ["torchrun"], "directory": "/", "started_us": first_us, "exit_code": 0, "processes": [{**life, **one} for one in processes]}))
        database = self.ingest(os.path.join(self.scratch, "job"), name="whole")
        rows = {row["pid"]: row for row in ask("status", database)["rows"]}
        self.assertEqual([(rows[pid]["rank"], rows[pid]["child_kind"]) for pid in (4242, 4243, 4250)], [(0, None), (1, None), (None, "program")])
        lines = run("status", database).splitlines()
        at, = [number for number, line in enumerate(lines) if "program" in line]
        self.assertRegex(lines[at - 1], r"^1 +4243 ")
        self.assertRegex(lines[at], r"^  program +4250 ")
        self.check(database)

    def test_compiles_of_children_are_not_those_of_the_rank(self):
        database = self.ingest(os.path.join(RUNS, "loader_workers"))
        self.assertRegex(run("history", database), r"(?m)^0,1 loader wor… +0/0 .* rescale .*\n0,1 +0/0 .* forward ")
        kinds = {(one["function"], one["child_kind"]) for one in ask("history", database)["compiles"]}
        self.assertEqual(kinds, {("rescale", "loader_worker"), ("forward", None), ("sync_grads", None)})

    def test_a_log_that_goes_on_did_not_end_with_another(self):
        folder = os.path.join(RUNS, "mesh_full_disk")
        self.assertRegex(run("status", self.ingest(folder)), r"(?m)^end of ranks 2,3: silent, ended with rank 0: ")
        later = os.path.join(self.scratch, "later")
        os.mkdir(later)
        for path in sorted(glob.glob(os.path.join(folder, "**", "*_rank_*"), recursive=True)):
            with open(path, "rb") as file:
                data = file.read()
            if path.endswith(".zst"):
                data = subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=True).stdout
            if re.search("_rank_[23]_", path):
                at = [match.start() for match in re.finditer(rb"(?m)^[VIWE]\d{4} ", data)][-1] + 6
                hour = int(data[at:at + 2])
                data = data[:at] + b"%02d" % (hour + 1) + data[at + 2:]
            with open(os.path.join(later, os.path.basename(path).removesuffix(".zst")), "wb") as file:
                file.write(data)
        self.assertRegex(run("status", self.ingest(later, name="later")), r"(?m)^end of ranks 2,3: silent, ended after rank 0: ")

    def test_a_rank_that_an_earlier_launch_alone_had_is_not_missing(self):
        """run.json has the processes of both launches: the second one is smaller, or one of its ranks wrote no log."""
        rows = self.read(self.ingest(os.path.join(RUNS, "cold_then_warm")), "SELECT p.pid, p.rank, p.first_record_us, p.last_record_us, n.ordinal, f.path "
                         "FROM process p JOIN launch n ON n.id = p.launch_id JOIN log_file f ON f.id = p.log_file_id")
        lives = [{"pid": row["pid"], "parent_pid": 4200, "rank": row["rank"], "started_us": row["first_record_us"] - 100_000,
                  "ended_us": row["last_record_us"] + 100_000, "exit_code": 0} for row in rows]
        last = [(row["ordinal"], row["rank"]) for row in rows].index((2, 1))
        for name, processes in (("smaller", [*lives[:last], *lives[last + 1:]]), ("without_log", lives)):
            folder = os.path.join(self.scratch, name)
            os.mkdir(folder)
            for row in rows:
                if row is not rows[last]:
                    os.symlink(os.path.realpath(row["path"]), os.path.join(folder, os.path.basename(row["path"])))
            self.save(f"{name}/run.json", json.dumps({"command": ["sh", "-c", "twice"], "directory": "/", "started_us": lives[0]["started_us"], "exit_code": 0, "processes": [
                {"pid": 4200, "parent_pid": 1, "started_us": lives[0]["started_us"] - 1, "ended_us": lives[-1]["ended_us"] + 1, "exit_code": 0}, *processes]}))
            found = {one["kind"]: one for one in ask("findings", self.ingest(folder, name=name))["findings"]}
            self.assertEqual([1] if name == "without_log" else None, found["missing_rank"]["ranks"] if "missing_rank" in found else None, found)
            self.assertEqual("All its processes ended with exit code 0 (run.json).", found["restarted"]["detail"])

    def test_the_run_json_of_another_launch_says_nothing_of_a_rank(self):
        """Two commands, each with its run.json; in the second rank 1 raises before it compiles anything."""
        rows = self.read(self.ingest(os.path.join(RUNS, "cold_then_warm")), "SELECT p.pid, p.rank, p.first_record_us, p.last_record_us, n.ordinal, f.path "
                         "FROM process p JOIN launch n ON n.id = p.launch_id JOIN log_file f ON f.id = p.log_file_id")
        trace = 'Traceback (most recent call last):\n  File "/u/train.py", line 36, in restore\n    torch.load(part)\nValueError: bad part\n'
        for ordinal in (1, 2):
            lives = [{"pid": row["pid"], "parent_pid": 4200, "rank": row["rank"], "started_us": row["first_record_us"] - 100_000,
                      "ended_us": row["last_record_us"] + 100_000, "exit_code": 0} for row in rows if row["ordinal"] == ordinal]
            os.makedirs(os.path.join(self.scratch, f"both/{ordinal}"))
            for row in rows:
                if row["ordinal"] == ordinal and (ordinal, row["rank"]) != (2, 1):
                    os.symlink(os.path.realpath(row["path"]), os.path.join(self.scratch, f"both/{ordinal}", os.path.basename(row["path"])))
            for one in lives:
                if (ordinal, one["rank"]) == (2, 1):
                    one.update(exit_code=1, raised_us=one["started_us"] + 50_000, traceback=trace)
            self.save(f"both/{ordinal}/run.json", json.dumps({"command": ["torchrun"], "directory": "/", "started_us": lives[0]["started_us"], "exit_code": ordinal - 1, "processes": [
                {"pid": 4200, "parent_pid": 1, "started_us": lives[0]["started_us"] - 1, "ended_us": lives[-1]["ended_us"] + 1, "exit_code": ordinal - 1}, *lives]}))
        findings = ask("findings", self.ingest(os.path.join(self.scratch, "both"), name="both"))["findings"]
        self.assertEqual((findings[0]["title"], findings[0]["ranks"]), ("Rank 1 raised ValueError: bad part", [1]))
        missing, = (one for one in findings[0]["evidence"] if one["kind"] == "missing_rank")
        self.assertTrue(missing["detail"].startswith("By run.json rank 1 ran. "), missing["detail"])

    def test_an_answer_without_its_findings_is_the_same_otherwise(self):
        database = self.job("diverge_order")
        for name in ("ranks", "cache", "collectives", "execution"):
            whole, rest = (ask(name, *arguments) for arguments in ((database,), (database, "--no-findings")))
            member = "engine_findings" if "engine_findings" in whole else "findings"
            self.assertEqual(rest.pop(member), [])
            self.assertEqual({**rest, member: whole[member]}, whole)

    def test_roles_of_a_pipeline_without_dumps_are_not_known(self):
        roles = ask("ranks", self.ingest(os.path.join(RUNS, "pipeline")))["roles"]
        self.assertEqual([one["name"] for one in roles if one["is_sure"]], [])
        self.assertEqual(sum(one["count"] for one in roles), len(set().union(*(ranges(one["ranks"]) for one in roles))))

    def test_a_second_load_changes_nothing(self):
        tables = ("SELECT run_id, launch_id, ordinal, name, evidence, process_count FROM role", "SELECT * FROM process_end", "SELECT id, role_id IS NULL FROM process")
        database = self.job("crash_in_compile")
        before = [[tuple(row) for row in self.read(database, query)] for query in tables]
        self.assertTrue(all(before))
        run(os.path.join(LOGS, "crash_in_compile"), "--db-only", "--db", database)
        self.assertEqual([[tuple(row) for row in self.read(database, query)] for query in tables], before)

    def test_equal_ranks_have_one_line(self):
        for rank in range(64):
            self.save(f"many/dedicated_log_torch_trace_rank_{rank}_aaaaaaaa.log",
                      self.compiled(0, "f", "add", rank=rank).replace(" 4242 ", f" {4242 + rank} "))
        text = run("status", self.ingest(os.path.join(self.scratch, "many")))
        self.assertLess(len(text), 4000)
        self.assertIn("0-63", text)


if __name__ == "__main__":
    unittest.main()
