#!/usr/bin/env python3
"""Accounts, TLS, full disks and dead shards: refusals are reported, and a part of a run is never visible."""

import json
import os
import shutil
import subprocess
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
sys.path.insert(0, os.path.join(ROOT, "tests", "fleet"))

import clickhouse  # noqa: E402
from harness import TLPARSE, EndToEnd, bundled  # noqa: E402


def certificate(folder, name):
    """A certificate of 127.0.0.1 that signs itself, and its key."""
    paths = f"{folder}/{name}.crt", f"{folder}/{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True)
    return paths


class Servers(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        clickhouse.skip_without_server()
        cls.home = clickhouse.scratch(cls)
        cls.https = None
        if shutil.which("openssl"):
            cls.authority, key = certificate(cls.home, "server")
            cls.https = (clickhouse.free_ports(1)[0], cls.authority, key)
        cls.servers = clickhouse.cluster(cls, cls.home, 2, cls.https)
        cls.urls = [server.url for server in cls.servers]
        cls.database = f"{cls.home}/trace.db"
        subprocess.run([TLPARSE, os.path.dirname(bundled("train_order")), "--db-only", "--db", cls.database, "--run", "job"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run([TLPARSE, "fleet", "init", "--url", cls.urls[0], "--url", cls.urls[1], "--cluster", "fleet"], check=True,
                       stdout=subprocess.DEVNULL)

    def setUp(self):
        super().setUp()
        for server in self.servers:
            server.empty()

    def credentials(self, user, password="secret", mode=0o600):
        path = self.path(f"{user}-{password}-{mode:o}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"user={user}\npassword={password}\n")
        os.chmod(path, mode)
        return ["--credentials", path]

    def push(self, *options, url=None, expect=0):
        return self.tlparse("push", self.database, "--url", url or self.urls[0], "--job", "j", *options, expect=expect)

    def pushes(self):
        return [server.count("push") for server in self.servers]

    def test_accounts(self):
        done = self.push(*self.credentials("writer", "wrong"), expect=1)
        self.assertIn("refuse", done.stderr)
        self.assertNotIn("wrong", done.stderr)
        done = self.push(*self.credentials("reader"), expect=1)
        self.assertEqual(self.pushes(), [0, 0])
        done = self.push(*self.credentials("writer", mode=0o644), expect=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("chmod 600", done.stderr)
        self.push(*self.credentials("writer"))
        reader = self.credentials("reader")
        self.tlparse("pull", "--url", self.urls[0], "--job", "j", "--latest", "-o", self.path("pulled.db"), *reader)
        done = self.tlparse("fleet", "jobs", "--url", self.urls[0], "--since", "2020-01-01", "--json", *reader)
        self.assertEqual([run["job"] for run in json.loads(done.stdout)["runs"]], ["j"])
        done = self.push(url=self.urls[0].replace("//", "//writer:secret@"), expect=2)
        self.assertNotIn("secret", done.stderr)
        self.assertEqual(self.tlparse("fleet", "jobs", "--url", "http://192.0.2.1:8123", expect=2).stdout, "")

    def test_what_the_documented_accounts_may_not(self):
        self.push(*self.credentials("writer"))
        run = self.servers[0].query("SELECT toString(run_id) FROM push").strip()
        changes = ("DROP TABLE push", "TRUNCATE TABLE push", "ALTER TABLE push DELETE WHERE 1", "CREATE TABLE x (a Int8) ENGINE = Memory",
                   "DROP DATABASE tlparse")
        for user, statements in (("writer", changes), ("reader", (*changes, "INSERT INTO push (job) VALUES ('x')"))):
            for sql in statements:
                with self.assertRaisesRegex(RuntimeError, "Code: (392|164)", msg=sql):
                    self.servers[0].query(sql, user=user, password="secret")
        self.assertEqual(self.pushes(), [1, 0])
        delete = ["fleet", "delete", "--url", self.urls[0], "--run-id", run]
        self.tlparse(*delete, *self.credentials("reader"), expect=1)
        self.assertEqual(self.pushes(), [1, 0])
        # An account that may INSERT can withdraw a run; its rows wait for an administrator.
        done = self.tlparse(*delete, *self.credentials("writer"), expect=1)
        self.assertIn("no longer visible, but its rows are still there", done.stderr)
        self.assertGreater(self.servers[0].count("compile"), 0)
        self.tlparse("fleet", "gc", "--url", self.urls[0], "--min-age-hours", "-1")
        for _ in range(100):  # the server deletes in the background
            if self.servers[0].count("compile") == 0:
                break
            time.sleep(0.1)
        self.assertEqual(self.servers[0].count("compile"), 0)

    def test_certificates_are_verified(self):
        if self.https is None:
            self.skipTest("openssl is not installed")
        url = self.servers[0].https_url
        other, _ = certificate(self.home, "other")
        for options in ([], ["--ca", other]):
            done = self.push("--timeout", "2", *options, url=url, expect=None)
            self.assertIn(done.returncode, (1, 2), done.stderr)
            self.assertIn("certificate", done.stderr.lower())
        self.assertEqual(self.pushes(), [0, 0])
        self.push("--ca", self.authority, url=url)
        self.assertEqual(self.pushes(), [1, 0])

    def mount(self, path, size):
        os.makedirs(path, exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.skipTest("a small file system cannot be mounted here: " + done.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", path], check=False)

    def test_a_full_disk_here(self):
        self.push()
        small = self.path("small")
        self.mount(small, "1m")
        done = self.tlparse("pull", "--url", self.urls[0], "--job", "j", "--latest", "-o", f"{small}/pulled.db", expect=None)
        self.assertIn(done.returncode, (1, 2), done.stderr)
        self.assertEqual(os.listdir(small), [])

    def test_a_full_disk_of_the_server(self):
        folder = f"{self.home}/full"
        self.mount(folder, "64m")
        ports = clickhouse.free_ports(3)
        server = clickhouse.Server(folder, ports, [ports[1]])
        try:
            server.start()
        except RuntimeError as error:
            self.skipTest("the server needs more room to start: " + str(error)[-200:])
        self.addCleanup(server.stop)
        try:
            self.tlparse("fleet", "init", "--url", server.url)
            free = shutil.disk_usage(folder).free
            with open(f"{folder}/ballast", "wb") as file:  # leaves a little
                file.write(bytes(max(0, free - (300 << 10))))
            done = self.push("--with-records", "--timeout", "3", url=server.url, expect=None)
            self.assertIn(done.returncode, (1, 2), done.stdout + done.stderr)
            self.assertEqual(server.count("push"), 0)
        finally:
            server.stop()

    def test_a_dead_shard(self):
        both = [item for url in self.urls for item in ("--url", url)]
        for number in range(4):  # runs on both shards
            self.tlparse("push", self.database, *both, "--job", f"job{number}", "--job-key", f"key{number}")
        self.assertEqual(sorted(self.pushes())[0] > 0, True, self.pushes())
        self.servers[1].kill()
        try:
            done = self.tlparse("fleet", "jobs", "--url", self.urls[0], "--since", "2020-01-01", "--timeout", "2", expect=None)
            self.assertNotEqual(done.returncode, 0, "an answer without the rows of a shard:\n" + done.stdout)
            results = [self.tlparse("push", self.database, *both, "--job", f"new{number}", "--job-key", f"new{number}", "--timeout", "2",
                                    expect=None).returncode for number in range(4)]
            self.assertEqual(set(results) - {0, 2}, set())
            self.assertIn(2, results)
        finally:
            self.servers[1].start()
        for number in range(4):
            self.tlparse("push", self.database, *both, "--job", f"new{number}", "--job-key", f"new{number}")
        done = self.tlparse("fleet", "jobs", "--url", self.urls[0], "--since", "2020-01-01", "--json")
        self.assertEqual(len(json.loads(done.stdout)["runs"]), 8)


if __name__ == "__main__":
    unittest.main()
