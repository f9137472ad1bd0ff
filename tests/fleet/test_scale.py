#!/usr/bin/env python3
"""Histories, hosts and kills in numbers, on a real server. Short forms by default.

TRACEKIT_LONG=1: the counts that a release must pass: 20 million lookups of 1,080 runs, 1,000 hosts at once, 100 kills of client and
server. The times of the answers are printed, not asserted.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
for folder in ("e2e", "fleet", "bench"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))

import chdb_server  # noqa: E402
import clickhouse  # noqa: E402
import many_ranks  # noqa: E402
from harness import TLPARSE, EndToEnd, bundled, rows  # noqa: E402

LONG = os.environ.get("TRACEKIT_LONG") == "1"
RANKS, JOBS, DAYS = (1024, 12, 90) if LONG else (8, 2, 20)
HOSTS, AT_ONCE = (1000, 64) if LONG else (12, 6)
KILLS = 100 if LONG else 4
FUNCTION = "layer_3"
JUMP = DAYS * 2 // 3  # the day of the planted regression
# Facts that the questions read.
COPIED = ["process", "compile", "cache_event", "graph_break", "recompile", "failure", "graph", "output_code", "run_component"]


class OnServer(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = clickhouse.scratch(cls)
        cls.server = cls.start()
        cls.url = cls.server.url

    @classmethod
    def start(cls):
        return clickhouse.cluster(cls, cls.home, 1)[0]

    def setUp(self):
        super().setUp()
        self.tlparse("fleet", "init", "--url", self.url)
        self.server.empty()

    def logs(self, count):
        folder = self.path("logs")
        os.makedirs(folder)
        ranks = many_ranks.Ranks(bundled("train_order"), count)
        ranks.kind_of_rank = {}  # all alike
        return [ranks.write(rank, folder) for rank in range(count)]


class History(OnServer):
    def copy(self, table, job, replaced):
        """Adds DAYS runs of `job`, those of job 'model' under another day, run and load."""
        names = [row[0] for row in self.server.rows(f"SELECT name FROM system.columns WHERE database = 'tlparse' AND table = '{table}'")]
        values = ", ".join(f"{replaced[name]} AS {name}_" if name in replaced else f"`{name}`" for name in names)
        columns = ", ".join(f"`{name}`" for name in names)
        self.server.query(f"INSERT INTO {table} ({columns}) SELECT {values} FROM (SELECT * FROM {table} WHERE job = 'model') AS t CROSS "
                          f"JOIN (SELECT number AS n FROM numbers({DAYS})) AS d")

    def plant(self):
        for number in range(JOBS):
            job = f"job{number}"
            key = {"job": f"'{job}'", "day": "toDate('2026-06-01') + n", "load_id": f"load_id + {number * DAYS} + n + 1",
                   "run_id": f"toUUID(concat('{number:08d}-0000-0000-0000-', substring(concat('000000000000', toString(n)), -12)))"}
            for table in COPIED:
                changed = dict(key)
                if table == "compile":
                    changed["duration_us"] = (f"toInt64(duration_us * if(function = '{FUNCTION}' AND n >= {JUMP}, 1.4, 1) * "
                                              "(1 + (n * 7919 + id) % 17 / 1000))")
                if table == "run_component":
                    changed["component"] = f"if(name = 'inductor_config[max_fusion_size]' AND n >= {JUMP}, MD5('new'), component)"
                self.copy(table, job, changed)
            # What makes a run visible comes last.
            self.copy("push", job, {**key, "run_name": "concat('run', toString(n))"})
        self.server.query("INSERT INTO component SELECT MD5('new'), MD5('new'), 'inductor_config[max_fusion_size]', 'hash', '13'")

    def timed(self, *question):
        began, cpu_s = time.monotonic(), self.server.cpu_s()
        answer = json.loads(self.tlparse("fleet", *question, "--url", self.url, "--since", "2026-01-01", "--json").stdout)
        print(f"  fleet {' '.join(question):60} {time.monotonic() - began:7.3f} s, server's CPU {self.server.cpu_s() - cpu_s:7.3f} s",
              file=sys.stderr)
        return answer

    def test_a_long_history(self):
        self.tlparse(*self.logs(RANKS), "--db-only", "--db", self.path("model.db"), "--run", "model")
        self.tlparse("push", self.path("model.db"), "--url", self.url, "--job", "model", "--day", "2026-01-02")
        lookups = self.server.count("cache_event")
        began = time.monotonic()
        self.plant()
        total = self.server.count("cache_event", "job != 'model'")
        print(f"\n{JOBS * DAYS} runs, {total} lookups, generated in {time.monotonic() - began:.1f} s", file=sys.stderr)
        self.assertEqual(total, lookups * JOBS * DAYS)
        self.assertGreater(lookups, RANKS)
        self.assertEqual(len(self.timed("jobs")["runs"]), JOBS * DAYS + 1)
        answer = self.timed("time", "--job", "job1", "--function", FUNCTION)
        day = self.server.query(f"SELECT toDate('2026-06-01') + {JUMP}").strip()
        self.assertEqual([(jump["day"], round(jump["ratio"], 1)) for jump in answer["jumps"]], [(day, 1.4)])
        self.assertEqual([(change["component"], change["after"]) for change in answer["changes"]],
                         [("inductor_config[max_fusion_size]", "13")])
        self.assertGreater(len(self.timed("time")["functions"]), 0)
        rates = self.timed("cache")["hit_rates"]
        self.assertEqual(sum(row["lookups"] for row in rates), lookups * (JOBS * DAYS + 1))
        self.timed("cache", "--job", "job1")
        self.assertEqual(self.timed("ranks", "--job", "job1")["lookups"], [])  # all ranks are alike
        for question in (["breaks"], ["recompiles"], ["code"]):
            self.timed(*question)
        kernel = rows(self.path("model.db"), "SELECT name FROM kernel LIMIT 1")[0][0]
        self.assertEqual(len(self.timed("kernel", kernel, "--job", "job1")["runs"]), DAYS)


@unittest.skipUnless(chdb_server.library(), "chDB is not installed: the modern dialect is not tested")
class HistoryOfToday(History):
    @classmethod
    def start(cls):
        server = chdb_server.ChdbServer(cls.home)
        cls.addClassCleanup(server.stop)
        return server


class Scale(OnServer):
    def test_hosts_that_push_at_once(self):
        logs = self.logs(HOSTS)
        waiting, running, results = list(enumerate(logs)), [], []
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                rank, log = waiting.pop()
                running.append(subprocess.Popen(
                    [TLPARSE, "push", log, "--url", self.url, "--job", "hosts", "--job-key", "one run", "--day", "2026-11-20",
                     "--timeout", "1200"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
            done = running.pop(0)
            message = done.communicate()[1]
            results.append((done.returncode, message))
        self.assertEqual([result for result in results if result[0] != 0], [])
        self.assertEqual(self.server.rows("SELECT count(), uniqExact(run_id) FROM push WHERE state = 1"), [[str(HOSTS), "1"]])
        # A pull asks for the rows of many hosts at once.
        before, began = self.queries(), time.monotonic()
        self.tlparse("pull", "--url", self.url, "--job", "hosts", "--latest", "-o", self.path("pulled.db"), limit_s=3600)
        used = self.queries() - before
        print(f"\n{HOSTS} hosts, pulled in {time.monotonic() - began:.1f} s with {used} queries", file=sys.stderr)
        self.assertLess(used, 150 + 2 * HOSTS)
        self.assertEqual(rows(self.path("pulled.db"), "SELECT count(DISTINCT rank), count(*) FROM process"), [[HOSTS, HOSTS]])

    def queries(self):
        return int(self.server.query("SELECT value FROM system.events WHERE event = 'Query'"))

    def visible(self):
        """Lookups and compiles of the live loads of job 'kills'; nothing if none is live."""
        live = ("SELECT load_id FROM (SELECT load_id, argMax(state, version) AS s FROM push WHERE job = 'kills' GROUP BY load_id) AS p "
                "WHERE s = 1")
        if self.server.query(f"SELECT count() FROM ({live}) AS l") == "0\n":
            return None
        return tuple(self.server.count(table, f"load_id IN ({live})") for table in ("cache_event", "compile", "log_file", "output_code"))

    def in_the_middle(self, command, delay_s):
        """A push that has gone on for so long; for less, if it took less."""
        while True:
            self.server.empty()
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay_s)
            if process.poll() is None:
                return process
            delay_s /= 2

    def test_clients_and_servers_that_are_killed(self):
        self.tlparse(*self.logs(16), "--db-only", "--db", self.path("kills.db"), "--run", "kills")
        command = [TLPARSE, "push", self.path("kills.db"), "--url", self.url, "--job", "kills", "--timeout", "300"]
        before = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        span = time.monotonic() - before
        whole = self.visible()
        chance = random.Random(20261123)
        for number in range(KILLS):
            process = self.in_the_middle(command, chance.uniform(0, span))
            victim = "server" if number % 4 == 3 else "client"
            if victim == "server":
                self.server.kill()
                self.server.start()
                process.wait(400)
            else:
                process.send_signal(signal.SIGKILL)
                process.wait()
            self.assertIn(self.visible(), (None, whole), f"kill {number} of the {victim}")
            again = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(again.returncode, 0, again.stderr)
            self.assertEqual(self.visible(), whole, f"after kill {number} of the {victim}")
        print(f"\n{KILLS} pushes were killed in the middle", file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
