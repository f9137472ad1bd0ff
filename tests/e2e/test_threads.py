#!/usr/bin/env python3
"""--threads: the same database and the same report for any number of threads."""

import glob
import gzip
import hashlib
import json
import os
import pathlib
import unittest

import harness

THREADS = (1, 2, 3, 8)


def in_order(database):
    """Every table's rows in the order of the file, but for the run's own name and time."""
    return harness.tables(database, "run")


class Threads(harness.EndToEnd):
    def record(self, payload, frame=0):
        envelope = {"artifact": {"name": "blob", "encoding": "string"}, "frame_id": frame,
                    "frame_compile_id": 0, "attempt": 0,
                    "has_payload": hashlib.md5(payload).hexdigest()}
        return (b"V1121 08:30:01.000000 7 a.py:1] " + json.dumps(envelope).encode() + b"\n\t"
                + payload.replace(b"\n", b"\n\t") + b"\n")

    def job(self):
        """Logs of several windows: ranks, several processes in one file, damage, compression, a
        record larger than a window, payloads that come again within and across files."""
        ranks = [harness.log_bytes(path) for path in
                 sorted(glob.glob(os.path.join(harness.ROOT, "fixtures", "logs", "diverge_order", "*")))]
        train = harness.log_bytes(harness.bundled("mlp_train"))
        for rank, log in enumerate(ranks):
            self.write(f"job/dedicated_log_torch_trace_rank_{rank}_a.log", log * 8)
        self.write("job/merged.log", b"".join(
            b"[rank%d]:" % rank + line for lines in zip(*(log.splitlines(True) for log in ranks))
            for rank, line in enumerate(lines)))
        damaged = bytearray(train * 3)
        damaged[len(train) // 2] ^= 0x40
        damaged[len(train) + 100:len(train) + 100] = b"a header in two\nV9999 25:61:00 "
        damaged[len(train):len(train)] = b"a foreign line\n"
        self.write("job/damaged.log", bytes(damaged[:-200]))
        self.write("job/train.log.gz", gzip.compress(train * 4, 1))
        lines = b"".join(b"line %d\n" % number for number in range(900_000))
        self.write("job/large.log", b"".join(
            [self.record(lines, 1), train, self.record(lines + b"!", 2), self.record(lines, 3)]))
        no_time = self.record(b"no time").replace(b"V1121 08", b"V1399 08")
        self.write("job/times.log", no_time + train + no_time)
        return "job"

    def assert_same(self, databases):
        first = in_order(databases[0])
        self.assertGreater(len(first["record_row"]), 1000)
        for database in databases[1:]:
            other = in_order(database)
            for table, rows in first.items():
                self.assertTrue(rows == other[table], f"{database}: {table}")

    def test_equal_databases(self):
        job = self.job()
        databases = []
        for threads in THREADS:
            self.tlparse(job, "-o", f"out{threads}", "--db-only", "--threads", str(threads))
            databases.append(self.path(f"out{threads}", "trace.db"))
        self.assert_same(databases)
        codes = {row[0] for row in harness.rows(databases[0], "SELECT code FROM import_log")}
        self.assertLessEqual({"foreign_line", "broken_header", "payload_mismatch", "impossible_time"}, codes)

    def test_equal_after_a_second_load(self):
        """The second load finds payloads of the first in its database."""
        job = self.job()
        logs = sorted(os.listdir(self.path(job)))
        databases = []
        for threads in THREADS:
            for part in (logs[::2], logs[1::2] + logs[:1]):
                self.tlparse(*(os.path.join(job, name) for name in part), "--run", "job", "--db",
                             f"{threads}.db", "--db-only", "--threads", str(threads))
            databases.append(self.path(f"{threads}.db"))
        self.assert_same(databases)

    def test_equal_reports(self):
        logs = os.path.join(harness.ROOT, "fixtures", "logs", "diverge_order")
        trees = []
        for threads in (1, 3):
            out = f"out{threads}"
            self.tlparse(logs, "-o", out, "--run", "job", "--threads", str(threads))
            files = {name: pathlib.Path(self.path(out, name)).read_bytes()
                     for name in harness.tree(self.path(out))
                     if name not in ("trace.db", "data/index.js")}  # they name this run
            trees.append(files)
        self.assertEqual(trees[0].keys(), trees[1].keys())
        different = [name for name, content in trees[0].items() if content != trees[1][name]]
        self.assertEqual(different, [])

    def test_wrong_numbers(self):
        for number in ("0", "-1", "many"):
            done = self.tlparse(harness.bundled("simple"), "--threads", number, expect=2)
            self.assert_one_line_of_complaint(done)


if __name__ == "__main__":
    unittest.main()
