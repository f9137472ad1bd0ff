#!/usr/bin/env python3
"""tlparse push to real servers: all or nothing is visible, and a repeated push changes nothing."""

import os
import signal
import subprocess
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
sys.path.insert(0, os.path.join(ROOT, "tests", "fleet"))

import clickhouse  # noqa: E402
from harness import TLPARSE, EndToEnd, bundled  # noqa: E402


class Push(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = clickhouse.scratch(cls)
        cls.servers = clickhouse.cluster(cls, cls.home)
        cls.url = cls.servers[0].url

    def setUp(self):
        super().setUp()
        self.server = self.servers[0]
        self.tlparse("fleet", "init", "--url", self.url)
        self.server.empty()

    def ingest(self, *logs, name="trace.db"):
        self.tlparse(*logs, "--db-only", "--db", self.path(name), "--run", "job")
        return self.path(name)

    def test_rows_are_there_and_strings_stand_in_them(self):
        database = self.ingest(os.path.dirname(bundled("train_order")))
        done = self.tlparse("push", database, "--url", self.url, "--job", "nightly", "--tag", "branch=main")
        self.assertIn("job nightly", done.stdout)
        self.assertEqual(self.server.count("push"), 1)
        ours = int(self.tlparse("sql", database, "SELECT count(*) FROM cache_event_row").stdout.split()[-1])
        self.assertGreater(ours, 0)
        self.assertEqual(self.server.count("cache_event", "layer != ''"), ours)
        self.assertEqual(self.server.query("SELECT tag_keys, tag_values FROM push"), "['branch']\t['main']\n")

    def test_twice_is_once(self):
        database = self.ingest(bundled("simple"))
        self.tlparse("push", database, "--url", self.url)
        before = self.server.count("compile")
        done = self.tlparse("push", database, "--url", self.url, "--job", "another", "--day", "2020-01-01")
        self.assertIn("already there", done.stdout)
        self.assertNotIn("another", done.stdout)  # it is there as what it was pushed as
        self.assertNotIn("2020-01-01", done.stdout)
        self.assertEqual((self.server.count("push"), self.server.count("compile")), (1, before))

    def test_a_database_that_grew_replaces_its_earlier_push(self):
        logs = [bundled("train_order", i) for i in range(2)]
        database = self.ingest(logs[0])
        self.tlparse("push", database, "--url", self.url)
        self.ingest(logs[1])
        done = self.tlparse("push", database, "--url", self.url)
        self.assertIn("replaces 1 earlier push", done.stdout)
        self.assertEqual(self.server.query("SELECT length(replaces) FROM push ORDER BY version"), "0\n1\n")

    def test_dry_run_sends_nothing(self):
        database = self.ingest(bundled("simple"))
        done = self.tlparse("push", database, "--url", self.url, "--dry-run")
        self.assertIn("would be sent", done.stdout)
        self.assertEqual((self.server.count("push"), self.server.count("compile")), (0, 0))

    def test_without_tables_the_message_says_what_to_do(self):
        database = self.ingest(bundled("simple"))
        done = self.tlparse("push", database, "--url", self.servers[1].url, expect=1)
        self.assertIn("Code: 81", done.stderr)
        self.servers[1].query("CREATE DATABASE tlparse", "default")
        done = self.tlparse("push", database, "--url", self.servers[1].url, expect=1)
        self.assertIn("tlparse fleet init", done.stderr)
        self.server.query("DROP TABLE graph_break")
        done = self.tlparse("push", database, "--url", self.url, expect=1)
        self.assertIn("lacks the table graph_break", done.stderr)
        done = self.tlparse("fleet", "breaks", "--url", self.url, expect=1)
        self.assertIn("'tlparse fleet init' makes what", done.stderr)
        self.tlparse("fleet", "init", "--url", self.url)
        self.tlparse("push", database, "--url", self.url)

    def test_a_server_that_is_away(self):
        database = self.ingest(bundled("simple"))
        port = clickhouse.free_ports(1)[0]
        done = self.tlparse("push", database, "--url", f"http://127.0.0.1:{port}", "--timeout", "1", expect=2)
        self.assertIn("does not answer", done.stderr)

    def test_without_text_no_code_leaves(self):
        database = self.ingest(bundled("train_order"))
        self.tlparse("push", database, "--url", self.url, "--without-text")
        for table, column in (("payload", "content"), ("component", "value"), ("guard", "expression"),
                              ("stack_frame", "code"), ("kernel_source", "code"), ("graph_node", "code")):
            shown = self.server.query(f"SELECT count() FROM {table} WHERE match(ifNull({column}, ''), '[^0-9a-f]')")
            self.assertEqual((table, shown), (table, "0\n"))
        self.assertEqual(self.server.count("record", "envelope != '{}'"), 0)
        self.assertEqual(self.server.count("text"), 0)
        self.assertGreater(self.server.count("payload"), 0)

    def test_an_interrupted_push_leaves_no_files(self):
        """Logs are ingested into a temporary database first."""
        folder = self.path("tmp")
        os.makedirs(folder)
        logs = os.path.dirname(bundled("train_order"))
        interrupted = 0
        for wait_s in (*(0.004 + 0.002 * step for step in range(20)), 0.05, 0.1, 0.2):
            process = subprocess.Popen([TLPARSE, "push", logs, "--url", self.url, "--job", "stopped"], env={**os.environ, "TMPDIR": folder},
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(wait_s)
            process.send_signal(signal.SIGINT)
            interrupted += process.wait(60) == -signal.SIGINT
            self.assertEqual(os.listdir(folder), [])
        self.assertGreater(interrupted, 0)

    def test_old_runs_are_removed_by_days_only(self):
        database = self.ingest(bundled("simple"))
        self.tlparse("push", database, "--url", self.url, "--day", "2026-01-01")
        for days in ("5m", "5w", "1y", "0", "-3d", "d", "4 d", "99999999999d"):
            done = self.tlparse("fleet", "gc", "--url", self.url, "--older-than", days, expect=2)
            self.assertIn("--older-than", done.stderr)
            self.tlparse("fleet", "init", "--url", self.url, "--retention", days, expect=2)
        self.assertEqual(self.server.count("push"), 1)
        done = self.tlparse("fleet", "init", "--url", self.url, "--retention", "400d")
        self.assertIn("tlparse fleet gc --older-than 400d", done.stdout)  # this server has no TTL
        self.tlparse("fleet", "gc", "--url", self.url, "--older-than", "5d")
        self.assertEqual(self.server.count("push"), 0)

    def test_ranks_of_a_run(self):
        database = self.ingest(os.path.dirname(bundled("train_order")))
        self.tlparse("push", database, "--url", self.url, "--ranks", "1")
        self.assertEqual(self.server.query("SELECT DISTINCT process_rank FROM compile"), "1\n")
        self.assertEqual(self.server.query("SELECT ranks, is_partial FROM push"), "1\t1\n")


if __name__ == "__main__":
    unittest.main()
