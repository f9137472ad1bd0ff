#!/usr/bin/env python3
"""Traces that derive_traces.py makes: merged, older, damaged, hostile. Each must be read without
failing, hold what was put in, and answer the queries that were written down with it."""

import glob
import json
import os
import tempfile
import unittest

import harness
import derive_traces


class Derived(harness.EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.derived = tempfile.TemporaryDirectory(prefix="tracekit_derived_")
        derive_traces.derive(cls.derived.name, huge_bytes=20000000)

    @classmethod
    def tearDownClass(cls):
        cls.derived.cleanup()

    def logs(self):
        found = sorted(glob.glob(os.path.join(self.derived.name, "*.log")))
        self.assertGreater(len(found), 30)
        return found

    def expected(self, log):
        with open(log[:-len(".log")] + ".expected.json", encoding="utf-8") as file:
            return json.load(file)

    def test_each(self):
        for log in self.logs():
            name = os.path.basename(log)
            with self.subTest(name):
                self.tlparse(log, "-o", "out", "--overwrite")
                database = self.path("out", "trace.db")
                expected = self.expected(log)
                self.assertEqual(harness.rows(database, "SELECT count(*) FROM record"),
                                 [[expected["records"]]])
                self.check(database, log)
                for query in expected["queries"]:
                    with self.subTest(f"{name}: {query['sql']}"):
                        self.assertEqual(harness.rows(database, query["sql"]), query["rows"])

    def test_all_in_one_call(self):
        self.tlparse(self.derived.name, "-o", "out", "--db-only")
        self.check(self.path("out", "trace.db"), *self.logs())

    def test_strict_fails_on_damage_only(self):
        damaged = ("cut_header_0", "cut_payload_0", "flipped_byte", "payload_claims", "odd_json")
        for name in damaged + ("crlf", "ranks_interleaved", "null_compiled_autograd_id"):
            with self.subTest(name):
                log = os.path.join(self.derived.name, name + ".log")
                done = self.tlparse(log, "-o", "out", "--overwrite", "--strict",
                                    expect=1 if name in damaged else 0)
                # A failed check is an answer: the database is there all the same.
                self.check(self.path("out", "trace.db"), log)
                if name in damaged:
                    self.assertNotEqual(done.stderr, "")

    def test_strict_compile_id(self):
        self.tlparse(os.path.join(self.derived.name, "no_compile_ids.log"), "-o", "out",
                     "--strict-compile-id", expect=1)


if __name__ == "__main__":
    unittest.main()
