#!/usr/bin/env python3
"""The limits of memory in the README: 256 MB, 32 MB more for each thread beyond two, and four times
the largest record, for the whole call, report included. Measured is what the kernel cannot drop:
the database is mapped, and pages of a file are resident only as long as nobody needs the memory."""

import gzip
import hashlib
import json
import os
import re
import subprocess
import time
import unittest

import harness

MB = 1 << 20
IDS = {"rank": 0, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}


def write_record(file, envelope, pieces=()):
    """`pieces`: the payload, as a list of texts without line ends. The measure of a child's memory
    begins with its parent's, so the payload is never in memory as a whole."""
    digest = hashlib.md5()
    for piece in pieces:
        digest.update(piece)
    envelope = {**envelope, "has_payload": digest.hexdigest()} if pieces else envelope
    file.write(b"V1121 08:30:01.000000 7 a.py:1] " + json.dumps(envelope).encode() + b"\n")
    for piece in (b"\t", *pieces, b"\n") if pieces else ():
        file.write(piece)


class Memory(harness.EndToEnd):
    def log(self, name, records):
        path = self.path(name)
        with gzip.open(path, "wb", compresslevel=1) as file:
            for envelope, *pieces in records:
                write_record(file, envelope, pieces)
        return path

    def peak_bytes(self, *arguments):
        peak = 0
        process = subprocess.Popen([harness.TLPARSE, *arguments], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
            while process.poll() is None:
                status.seek(0)
                found = re.search(r"RssAnon:\s*(\d+) kB", status.read())
                peak = max(peak, int(found[1]) if found else 0)
                time.sleep(0.002)
        complaint = process.stderr.read().decode()
        process.stderr.close()
        self.assertEqual(process.returncode, 0, complaint)
        self.assertGreater(peak, 0)
        return peak * 1024

    def assert_promise(self, log, largest_record_bytes):
        for threads in (2, 8):
            promised = 256 * MB + 32 * MB * (threads - 2) + 4 * largest_record_bytes
            peak = self.peak_bytes(log, "-o", "out", "--overwrite", "--threads", str(threads))
            self.assertLessEqual(peak / MB, promised / MB, f"MiB with {threads} threads")

    def test_large_records_that_compress_well(self):
        megabyte = b"a" * MB
        blobs = ([{"artifact": {"name": f"blob{i}", "encoding": "string"}, **IDS},
                  b"%d" % i, *[megabyte] * 60] for i in range(7))
        self.assert_promise(self.log("large.log.gz", blobs), 60 * MB)

    def test_many_medium_records(self):
        blobs = ([{"artifact": {"name": f"blob{i}", "encoding": ("json", "string")[i % 2]}, **IDS},
                  b'{"%d": "' % i, *[b"b" * MB] * 4, b'"}'] for i in range(120))
        self.assert_promise(self.log("medium.log.gz", blobs), 4 * MB)

    def test_more_values_than_are_typed(self):
        ones = b"1," * (MB // 2)
        for name in ("blob", "inductor_runtime_and_tensor_meta", "graph_execution",
                     "inductor_collective_schedule", "fx_graph_cache_miss",
                     "inductor_provenance_tracking_kernel_stack_traces"):
            with self.subTest(name=name):
                values = [{"artifact": {"name": name, "encoding": "json"}, **IDS},
                          b'{"ops": [', *[ones] * 30, b"1]}"]
                self.assert_promise(self.log("values.log.gz", [values]), 30 * MB)
                told = harness.rows(self.path("out", "trace.db"),
                                    "SELECT 1 FROM import_log WHERE code = 'payload_too_large'")
                self.assertEqual(len(told), 0 if name == "blob" else 1)
                kept = harness.rows(self.path("out", "trace.db"), "SELECT size_bytes FROM payload")
                self.assertEqual(kept, [[30 * MB + 12]])

    def test_as_many_values_as_are_typed(self):
        values = [{"artifact": {"name": "graph_execution", "encoding": "json"}, **IDS},
                  b"[", *[b'"",' * 300_000] * 3, b"null]"]
        self.assert_promise(self.log("typed.log.gz", [values]), 3 * MB)
        self.assertEqual(harness.rows(self.path("out", "trace.db"),
                                      "SELECT count(*) FROM graph_execution"), [[900_001]])

    def test_many_compiles_under_way_with_large_provenance(self):
        def records(is_shared):
            for compile_id in range(24):
                ids = {**IDS, "frame_id": compile_id}
                yield [{"dynamo_start": {"stack": []}, **ids}]
                for name in ("inductor_post_to_pre_grad_nodes",
                             "inductor_triton_kernel_to_post_grad_nodes"):
                    yield [{"artifact": {"name": name, "encoding": "json"}, **ids},
                           b'{"%d": "' % (0 if is_shared else compile_id), *[b"x" * MB] * 8, b'"}']
        for is_shared in (True, False):
            log = self.log(f"open_{is_shared}.log.gz", records(is_shared))
            self.assert_promise(log, 8 * MB)
            codes = {row[0] for row in harness.rows(
                self.path("out", "trace.db"), "SELECT code FROM import_log")}
            self.assertEqual("memory_limit" in codes, not is_shared)

    def test_many_logs_that_grow(self):
        """1,024 logs followed at once hold no buffer each."""
        log = harness.log_bytes(harness.bundled("simple_2_6"))
        os.mkdir(self.path("logs"))
        for rank in range(1024):
            with open(self.path("logs", f"dedicated_log_torch_trace_rank_{rank}_{rank:08d}.log"), "wb") as file:
                file.write(log)
        peak = self.peak_bytes("watch", "logs", "--once", "--db", "w.db")
        self.assertLessEqual(peak / MB, 256)


if __name__ == "__main__":
    unittest.main()
