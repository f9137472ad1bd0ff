#!/usr/bin/env python3
"""What the README promises of memory: 256 MB, 32 MB more for each thread beyond two, and four times
the largest record. Measured is the largest resident size of the process."""

import gzip
import hashlib
import json
import os
import subprocess
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
        process = subprocess.Popen([harness.TLPARSE, *arguments], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        _, status, usage = os.wait4(process.pid, 0)
        complaint = process.stderr.read().decode()
        process.stderr.close()
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0, complaint)
        return usage.ru_maxrss * 1024

    def assert_promise(self, log, largest_record_bytes):
        for threads in (2, 8):
            promised = 256 * MB + 32 * MB * (threads - 2) + 4 * largest_record_bytes
            peak = self.peak_bytes(log, "-o", "out", "--overwrite", "--db-only", "--threads",
                                   str(threads))
            self.assertLessEqual(peak / MB, promised / MB, f"MiB with {threads} threads")

    def test_large_records_that_compress_well(self):
        megabyte = b"a" * MB
        blobs = ([{"artifact": {"name": f"blob{i}", "encoding": "string"}, **IDS},
                  b"%d" % i, *[megabyte] * 60] for i in range(7))
        self.assert_promise(self.log("large.log.gz", blobs), 60 * MB)

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


if __name__ == "__main__":
    unittest.main()
