#!/usr/bin/env python3
"""tlparse pull from real servers: the result is what was pushed, or nothing."""

import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
sys.path.insert(0, os.path.join(ROOT, "tests", "fleet"))
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))

import clickhouse  # noqa: E402
import memory_snapshot  # noqa: E402
from harness import TLPARSE, EndToEnd, bundled, dump, one_test_each, rows  # noqa: E402

ANSWERS = [["history"], ["findings"], ["ranks", "--all"], ["cache", "--all"], ["collectives", "--all"], ["execution", "--all"], ["recompiles"],
           ["provenance"], ["import-log"], ["status"], ["check", "--no-failures", "--max-recompiles", "3", "--no-divergence"]]
# Two logs of different ranks, caches of several kinds, failures, libtrace's own records.
SCENARIOS = ["train_order", "cache_some_ranks", "failures", "libtrace_collectives", "export", "recompiles_2_6", "crash_in_compile",
             "one_rank_cold", "restart_elastic", "hang_in_compile", "stalled_compile"]
# With profiles and recorder dumps beside the logs.
RUNS = ["fr_wrong_op", "p_mlp_train"]
RUN_ANSWERS = ANSWERS + [["cost"], ["cost", "--by", "kernel"], ["cost", "--by", "graph"]]


class Pull(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = clickhouse.scratch(cls)
        cls.servers = clickhouse.cluster(cls, cls.home)
        cls.server = cls.servers[0]
        cls.url = cls.server.url
        subprocess.run([TLPARSE, "fleet", "init", "--url", cls.url], check=True, stdout=subprocess.DEVNULL)

    def setUp(self):
        super().setUp()
        self.server.empty()

    def ingest(self, *logs, name="trace.db", run="job"):
        self.tlparse(*logs, "--db-only", "--db", self.path(name), "--run", run)
        return self.path(name)

    def pull(self, *arguments, name="pulled.db"):
        self.tlparse("pull", "--url", self.url, *arguments, "-o", self.path(name), "--overwrite")
        return self.path(name)

    def answers(self, database, only=ANSWERS):
        return {" ".join(answer): (done.returncode, done.stdout) for answer in only
                for done in [self.tlparse(answer[0], database, *answer[1:], "--json", expect=None)]}

    def every_answer_prints_what_it_printed(self, scenario):
        database = self.ingest(os.path.dirname(bundled(scenario)), name=scenario + ".db", run=scenario)
        self.tlparse("push", database, "--url", self.url, "--job", scenario)
        pulled = self.pull("--job", scenario, "--latest")
        self.assertEqual(self.answers(database), self.answers(pulled))
        # What answers say of inputs that differ: no log here has such a difference between ranks.
        for view in ("tensor_description", "tensor_source"):
            self.assertEqual(*(rows(path, f"SELECT * FROM {view} ORDER BY record_id") for path in (database, pulled)))

    def test_what_ran_comes_back(self):
        for run in RUNS:
            with self.subTest(run):
                database = self.ingest(os.path.join(ROOT, "fixtures", "runs", run), name=run + ".db", run=run)
                self.tlparse("push", database, "--url", self.url, "--job", run)
                pulled = self.pull("--job", run, "--latest")
                self.assertEqual(self.answers(database, RUN_ANSWERS), self.answers(pulled, RUN_ANSWERS))

    def test_what_held_memory_comes_back(self):
        snapshot = self.path("snapshot.pickle")
        memory_snapshot.write(memory_snapshot.snapshot([memory_snapshot.training(900, oom=True)]), snapshot)
        database = self.ingest(os.path.join(ROOT, "fixtures", "memory"), snapshot)
        self.tlparse("push", database, "--url", self.url, "--job", "memory")
        pulled = self.pull("--job", "memory", "--latest")
        asked = [["findings"], ["memory", "--at", "oom"], *(["memory", "--by", by] for by in ("line", "graph", "category", "stack"))]
        answers = self.answers(database, asked)
        self.assertEqual(answers, self.answers(pulled, asked))
        for name, (code, text) in answers.items():
            if name.startswith("memory"):
                self.assertEqual((code, name, any(one["rows"] for one in json.loads(text)["devices"])), (0, name, True))

    def test_with_records_every_row_comes_back(self):
        database = self.ingest(os.path.dirname(bundled("train_order")))
        self.tlparse("push", database, "--url", self.url, "--with-records", "--job", "all")
        pushed, pulled = dump(database), dump(self.pull("--job", "all", "--latest"))
        # How sets are laid out is storage; what they hold is in the answers.
        layout = {"component_list_row", "component_run_row"}
        self.assertEqual(set(pushed), set(pulled))
        for table in set(pushed) - layout:
            self.assertEqual(pushed[table], pulled[table], table)

    def test_hosts_that_push_their_own_ranks_make_one_run(self):
        logs = [bundled("train_order", i) for i in range(4)]
        for i in (3, 0, 2, 1):
            self.tlparse("push", logs[i], "--url", self.url, "--job", "many", "--job-key", "run 7", "--day", "2026-11-20")
        self.assertEqual(self.server.query("SELECT count(), uniqExact(run_id) FROM push"), "4\t1\n")
        pulled = self.pull("--job", "many", "--latest")
        gathered = self.ingest(*logs, name="gathered.db")
        only = [["ranks", "--all"], ["cache", "--all"], ["collectives", "--all"], ["execution", "--all"], ["recompiles"]]
        ours, theirs = self.answers(gathered, only), self.answers(pulled, only)
        for answer in ours:  # the run's name is that of the log that was pushed first
            name = '"run":"%s"'
            self.assertEqual(ours[answer][1].replace(name % "job", ""), theirs[answer][1].replace(name % logs[0], ""), answer)
        check = subprocess.run(["sqlite3", pulled, "PRAGMA integrity_check; PRAGMA foreign_key_check"], capture_output=True,
                               text=True, check=True) if shutil.which("sqlite3") else None
        if check:
            self.assertEqual([line for line in check.stdout.splitlines() if "record_row" not in line], ["ok"])

    def test_ranks(self):
        database = self.ingest(os.path.dirname(bundled("train_order")))
        self.tlparse("push", database, "--url", self.url, "--job", "some")
        pulled = self.pull("--job", "some", "--latest", "--ranks", "1-2")
        done = self.tlparse("sql", pulled, "SELECT group_concat(DISTINCT rank) FROM process")
        self.assertEqual(done.stdout.split()[-1], "1,2")
        self.tlparse("ranks", pulled)

    def test_a_run_that_is_not_there(self):
        done = self.tlparse("pull", "--url", self.url, "--job", "none", "--latest", "-o", self.path("x.db"), expect=2)
        self.assertIn("no run of job 'none'", done.stderr)
        hostile = "x' OR 1 = 1 --"
        done = self.tlparse("pull", "--url", self.url, "--job", hostile, "--latest", "-o", self.path("x.db"), expect=2)
        self.assertIn("no run of job", done.stderr)
        self.assertFalse(os.path.exists(self.path("x.db")))

    def test_names_of_any_bytes(self):
        database = self.ingest(bundled("simple"))
        job = "a'b\\c\t\"`{x:String}\n größe"
        self.tlparse("push", database, "--url", self.url, "--job", job, "--tag", "k'=v'\\")
        pulled = self.pull("--job", job, "--latest")
        self.assertEqual(self.answers(database, [["history"]]), self.answers(pulled, [["history"]]))

    def test_killed_pushes_show_nothing_and_are_swept(self):
        database = self.ingest(os.path.dirname(bundled("train_order")))
        command = [TLPARSE, "push", database, "--url", self.url, "--job", "killed"]
        began = time.time()
        subprocess.run(command + ["--dry-run"], check=True, capture_output=True)
        span = max(0.3, 4 * (time.time() - began))
        killed = 0
        for i in range(8):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(span * (i + 1) / 8)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed += self.server.count("push") == 0
            if self.server.count("push") > 0:
                break
        self.assertGreater(killed, 0)
        self.tlparse("push", database, "--url", self.url, "--job", "killed")
        self.assertEqual(self.server.count("push"), 1)
        pulled = self.pull("--job", "killed", "--latest")
        self.assertEqual(self.answers(database, [["ranks"], ["history"]]), self.answers(pulled, [["ranks"], ["history"]]))
        self.tlparse("fleet", "gc", "--url", self.url, "--min-age-hours", "-1")
        live = int(self.server.query("SELECT load_id FROM push"))
        for _ in range(100):  # the server deletes in the background
            if self.server.count("log_file", f"load_id != {live}") == 0:
                break
            time.sleep(0.1)
        self.assertEqual(self.server.count("log_file", f"load_id != {live}"), 0)
        self.assertGreater(self.server.count("log_file"), 0)

    def test_a_killed_server_keeps_the_old_state_or_has_the_new_one(self):
        database = self.ingest(os.path.dirname(bundled("train_order")))
        process = subprocess.Popen([TLPARSE, "push", database, "--url", self.url, "--job", "server"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        time.sleep(0.4)
        self.server.kill()
        self.server.start()
        self.assertEqual(process.wait(120), 0, process.stderr.read())
        process.stderr.close()
        pulled = self.pull("--job", "server", "--latest")
        self.assertEqual(self.answers(database, [["ranks"], ["cache"]]), self.answers(pulled, [["ranks"], ["cache"]]))

    def test_two_pushers_of_the_same_logs(self):
        database = self.ingest(os.path.dirname(bundled("train_order")))
        pushers = [subprocess.Popen([TLPARSE, "push", database, "--url", self.url, "--job", "race"], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL) for _ in range(3)]
        self.assertEqual([one.wait(120) for one in pushers], [0, 0, 0])
        live = self.server.query("SELECT sum(s = 1) FROM (SELECT load_id, argMax(state, version) AS s FROM push GROUP BY load_id) AS p")
        self.assertEqual(live, "1\n")

    def test_delete(self):
        database = self.ingest(bundled("simple"))
        self.tlparse("push", database, "--url", self.url, "--job", "gone")
        run = self.server.query("SELECT toString(run_id) FROM push").strip()
        self.tlparse("fleet", "delete", "--url", self.url, "--run-id", run)
        self.tlparse("pull", "--url", self.url, "--run-id", run, "-o", self.path("x.db"), expect=2)
        for _ in range(100):
            if self.server.count("compile") + self.server.count("push") == 0:
                break
            time.sleep(0.1)
        self.assertEqual((self.server.count("compile"), self.server.count("push")), (0, 0))
        self.tlparse("fleet", "delete", "--url", self.url, "--run-id", run, expect=2)
        self.tlparse("push", database, "--url", self.url, "--job", "gone")

    def test_rows_that_a_server_lost_are_noticed(self):
        database = self.ingest(bundled("simple"))
        self.tlparse("push", database, "--url", self.url, "--job", "lossy")
        self.server.query("ALTER TABLE graph DELETE WHERE 1")
        for _ in range(100):
            if self.server.count("graph") == 0:
                break
            time.sleep(0.1)
        done = self.tlparse("pull", "--url", self.url, "--job", "lossy", "--latest", "-o", self.path("x.db"), expect=1)
        self.assertIn("were pushed", done.stderr)
        self.assertFalse(os.path.exists(self.path("x.db")))

    def test_answers_of_a_hostile_server(self):
        bodies = [b"", b"\xff" * 1000, b"Code: 1\x1b[2J" * 1000, b"\x00" * 4096, b"\x01a" + b"\xff\xff\xff\xff\x0f" * 64]

        class Hostile(http.server.BaseHTTPRequestHandler):
            turn = 0

            def do_POST(self):
                body = bodies[Hostile.turn % len(bodies)]
                self.send_response(200 if Hostile.turn % 3 else 400)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        database = self.ingest(bundled("simple"))
        url = f"http://127.0.0.1:{server.server_port}"
        for turn in range(15):
            Hostile.turn = turn
            for command in (["push", database], ["pull", "--job", "x", "--latest", "-o", self.path("y.db")]):
                done = self.tlparse(*command, "--url", url, "--timeout", "1", expect=None)
                self.assertIn(done.returncode, (1, 2), done.stderr)
                self.assertNotIn("\x1b", done.stderr)
                self.assertLess(len(done.stderr), 1500)
        self.assertFalse(os.path.exists(self.path("y.db")))

    def test_headers_without_end(self):
        def answer(connection):
            try:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while True:
                    connection.sendall((b"X-Header: " + b"x" * 4000 + b"\r\n") * 16)
            except OSError:
                connection.close()

        def serve(listening):
            while True:
                try:
                    threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()
                except OSError:
                    return
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        done = subprocess.run([TLPARSE, "pull", "--url", f"http://127.0.0.1:{listening.getsockname()[1]}", "--job", "x", "--latest", "-o",
                               self.path("x.db"), "--timeout", "1"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("headers without end", done.stderr)


one_test_each(Pull, Pull.every_answer_prints_what_it_printed, SCENARIOS)

if __name__ == "__main__":
    unittest.main()
