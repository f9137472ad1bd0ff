#!/usr/bin/env python3
"""The example of a server (libtrace/docs/server.md): what is in its log, and what a limit leaves out.

usage: test_server.py SERVER TLPARSE [unittest arguments]
"""
import contextlib
import os
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import unittest

SERVER, TLPARSE = sys.argv[1:3]
REQUESTS = 2000


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server(unittest.TestCase):
    def run_server(self, folder, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("LIBTRACE_", "TORCH_", "OTEL_", "RANK"))}
        done = subprocess.run([SERVER, os.path.join(folder, "cache"), str(free_port()), str(REQUESTS)], env=environment | variables,
                              capture_output=True, text=True, check=True, timeout=240)
        self.assertRegex(done.stdout, f"^{REQUESTS} requests: p50 ")
        return {kind: int(count) for kind, count in re.findall(r'lost_records_total\{kind="(\w+)"\} (\d+)', done.stdout)}

    def test_all_requests_are_answered_and_the_log_is_limited(self):
        with tempfile.TemporaryDirectory() as folder:
            trace, database = os.path.join(folder, "trace"), os.path.join(folder, "trace.db")
            self.assertEqual(sum(self.run_server(folder).values()), 0)  # tracing is off
            lost = self.run_server(folder, TORCH_TRACE=trace, LIBTRACE_LIMITS="libtrace_graph_execution=1/10")
            self.assertEqual({kind: count for kind, count in lost.items() if count}, {"limited": REQUESTS * 9 // 10})
            subprocess.run([TLPARSE, trace, "--db", database, "--db-only", "--strict"], capture_output=True, check=True, timeout=240)
            with contextlib.closing(sqlite3.connect(database)) as db:
                # The first server compiled all 16 sizes; the second finds them.
                self.assertEqual(db.execute("SELECT state, count(*) FROM cache_event GROUP BY state").fetchall(), [("hit", 16)])
                self.assertEqual(db.execute("SELECT count(*) FROM compile WHERE is_synthetic = 0 AND status = 'empty'").fetchone(), (16,))
                self.assertEqual(db.execute("SELECT count(*) FROM record WHERE name = 'libtrace_graph_execution'").fetchone(), (REQUESTS // 10,))
                requests = db.execute("SELECT count(DISTINCT envelope ->> 'traceparent') FROM record WHERE name = 'libtrace_graph_execution'").fetchone()
                self.assertEqual(requests, (REQUESTS // 10,))
                self.assertEqual(db.execute("SELECT code FROM import_log").fetchall(), [("records_limited",)])


unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
