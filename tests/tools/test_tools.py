#!/usr/bin/env python3
"""Tests of the test tools: counting agrees with construction, derived bytes are reproducible."""

import glob
import hashlib
import json
import os
import sys
import tempfile
import unittest

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytorch")]
import count_records
import derive_traces
import derived_trace
import make_bench_input
import new_names
import trace_lines


class TraceLines(unittest.TestCase):
    def read(self, data):
        return list(trace_lines.read(data.splitlines(keepends=True)))

    HEADER = b'V1121 08:30:01.124000 4242 a b.py:12] '

    def test_payload_is_what_was_hashed(self):
        # Hashes of the reference's table of payloads.
        for lines, digest in ((b"\t\n", "d41d8cd98f00b204e9800998ecf8427e"),
                              (b"\ta\n\t\n", "60b725f10c9c85c70d97880dfe8191b3"),
                              (b"\t[\n\t\n\t]\n", "18b50eaa01e860d2c78d96b8478bfd75")):
            header = self.HEADER + b'{"x": {}, "has_payload": "%s"}\n' % digest.encode()
            record, = self.read(header + lines)
            self.assertEqual(record.verify(), ("ok", digest))
            self.assertEqual((record.kind, record.source_file, record.source_line),
                             ("x", "a b.py", 12))

    def test_header_with_windows_path_and_rank(self):
        record, = self.read(b'[rank3]:V1121 08:30:01.124000 4242 C:\\x.py:12] {"str": ["a", 0]}')
        self.assertEqual((record.kind, record.source_file), ("str", "C:\\x.py"))

    def test_only_line_feeds_split(self):
        stream = (self.HEADER + b'{"x": {}}\n\ta\rb\x0b\x0c\xc2\x85\n').split(b"\n")
        record, = trace_lines.read([line + b"\n" for line in stream[:-1]])
        self.assertEqual(record.payload, b"a\rb\x0b\x0c\xc2\x85")

    def test_payload_ends_at_the_first_other_line(self):
        items = self.read(self.HEADER + b'{"x": {}}\n\ta\n\n\tb\n')
        self.assertEqual([getattr(item, "what", "record") for item in items],
                         ["record", "blank", "orphan_payload"])

    def test_payload_goes_on_below_foreign_lines_until_its_hash_is_reached(self):
        digest = hashlib.md5(b"a\nb").hexdigest().encode()
        record, *others = self.read(self.HEADER + b'{"x": {}, "has_payload": "%s"}\n' % digest
                                    + b"from elsewhere\n\ta\n\n\tb\nmore\n\tc\n")
        self.assertEqual(record.verify(), ("ok", digest.decode()))
        self.assertEqual([other.what for other in others],
                         ["foreign", "blank", "foreign", "orphan_payload"])


class Derived(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        derive_traces.derive(cls.directory.name, huge_bytes=100000)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def test_counting_agrees_with_construction(self):
        logs = sorted(glob.glob(os.path.join(self.directory.name, "*.log")))
        self.assertGreater(len(logs), 30)
        for log in logs:
            with self.subTest(os.path.basename(log)):
                with open(log[:-len(".log")] + ".expected.json", encoding="utf-8") as file:
                    expected = json.load(file)
                counts = count_records.plain(count_records.count(trace_lines.read_log(log)))
                for key in ("records", "kinds", "artifacts", "payload_states", "lines",
                            "distinct_verified_payloads"):
                    self.assertEqual(counts[key], expected[key], key)

    def test_same_seed_same_bytes(self):
        with tempfile.TemporaryDirectory() as again:
            derive_traces.derive(again, huge_bytes=100000)
            for name in sorted(os.listdir(again)):
                digests = []
                for directory in (again, self.directory.name):
                    with open(os.path.join(directory, name), "rb") as file:
                        digests.append(hashlib.md5(file.read()).hexdigest())
                self.assertEqual(*digests, name)


class BenchInput(unittest.TestCase):
    def records(self, **options):
        with tempfile.TemporaryDirectory() as directory:
            paths = make_bench_input.make(directory, 5000000, **options)
            self.assertGreater(sum(map(os.path.getsize, paths)), 4900000)
            return [[*trace_lines.read_log(path)] for path in paths]

    def test_distinct_payloads_are_distinct_and_keep_their_shape(self):
        records, = self.records(files=1, distinct=True)
        counts = count_records.count(records)
        self.assertFalse(counts["lines"])
        self.assertEqual(set(counts["payload_states"]), {"ok", "absent"})
        # Code stands once per cache key, as often as its source logs it.
        others = count_records.count([record for record in records if record.kind != "inductor_output_code"])
        self.assertEqual(len(others["hashes"]), others["payload_states"]["ok"])
        for record in records:
            if record.kind == "chromium_event" or (record.name or "").startswith("fx_graph_cache_"):
                self.assertIsInstance(json.loads(record.payload), dict)

    def test_repeated_payloads_are_one_job_of_many_ranks(self):
        logs = self.records(files=12, distinct=False)
        self.assertEqual(len(logs), 12)
        for rank, records in enumerate(logs):
            self.assertEqual({record.envelope["rank"] for record in records
                              if "rank" in record.envelope} - {rank}, set())
        # Copy 9 is made of the same source as copy 0: the jobs have 4 + 4 + 1 logs.
        first, again = (count_records.count(logs[index])["hashes"] for index in (0, 9))
        self.assertEqual(first, again)


class Fixtures(unittest.TestCase):
    def test_bundled_logs_are_whole(self):
        logs = [log for log in glob.glob(os.path.join(derived_trace.fixture(), "*", "*"))]
        self.assertTrue(logs)
        for log in logs:
            with self.subTest(log):
                counts = count_records.count(trace_lines.read_log(log))
                self.assertGreater(counts["records"], 10)
                self.assertFalse(counts["lines"])
                self.assertEqual(set(counts["payload_states"]) - {"ok", "absent"}, set())
                origin = os.path.join(os.path.dirname(log), ".origin")
                with open(origin, encoding="utf-8") as file:
                    self.assertRegex(file.read(), r"(PyTorch|libtorch|libtrace) ?[\d.]*")

    def test_names_that_sources_of_pytorch_write_are_declared(self):
        known = new_names.declared()
        written = sorted(glob.glob(os.path.join(os.path.dirname(derived_trace.fixture()), "versions", "*", "names.json")))
        self.assertGreater(len(written), 9)
        for path in written:
            with open(path, encoding="utf-8") as file:
                for kind, names in json.load(file).items():
                    self.assertEqual([name for name in names if not new_names.is_known(name, known[kind])], [], (path, kind))


if __name__ == "__main__":
    unittest.main()
