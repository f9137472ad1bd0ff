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


# What the program is known not to do yet: (trace, query), or (trace, None) for its record count.
# Remove an entry when it does; the test says so.
KNOWN_GAPS = {
    # Numbers beyond a double make the header count as damaged; the line is kept in import_log.
    ("huge_float", None),
    # A forked child's frames should be looked up in its parent's intern table as of the fork.
    ("fork_2_6", "SELECT count(*) FROM stack_frame WHERE file LIKE '<unknown:%'"),
    # Stretches of a 2.6 log without ids should become synthetic compiles.
    ("no_compile_ids", "SELECT count(*) > 0 FROM compile"),
}


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
                stem = name[:-len(".log")]
                records = harness.rows(database, "SELECT count(*) FROM record")
                if (stem, None) in KNOWN_GAPS:
                    self.assertNotEqual(records, [[expected["records"]]], "no gap any more")
                    continue
                self.assertEqual(records, [[expected["records"]]])
                self.check(database, log)
                for query in expected["queries"]:
                    with self.subTest(f"{name}: {query['sql']}"):
                        found = harness.rows(database, query["sql"])
                        if (stem, query["sql"]) in KNOWN_GAPS:
                            self.assertNotEqual(found, query["rows"], "no gap any more")
                        else:
                            self.assertEqual(found, query["rows"])

    def test_all_in_one_call(self):
        self.tlparse(self.derived.name, "-o", "out", "--db-only")
        gaps = {stem for stem, query in KNOWN_GAPS if query is None}
        self.check(self.path("out", "trace.db"), *(
            log for log in self.logs() if os.path.basename(log)[:-len(".log")] not in gaps))

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


if __name__ == "__main__":
    unittest.main()
