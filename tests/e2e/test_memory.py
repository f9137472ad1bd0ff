#!/usr/bin/env python3
"""The limits of memory in docs/speed.md: 256 MB, 32 MB more for each thread beyond two, and four times
the largest record, for the whole call, report included. Measured is what the kernel cannot drop:
the database is mapped, and pages of a file are resident only as long as nobody needs the memory."""

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import unittest

import harness

sys.path.insert(0, os.path.join(harness.ROOT, "tests", "tools"))
import memory_snapshot  # noqa: E402

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

    def schedules(self, op, ranks=1, count=700_000):
        """Logs of ranks with a schedule of `count` collectives each; `op(rank, i)` names them."""
        os.makedirs(self.path("logs"), exist_ok=True)
        largest = 0
        for rank in range(ranks):
            ops = b",".join(b'"%s"' % op(rank, i) for i in range(count))
            schedule = {"artifact": {"name": "inductor_collective_schedule", "encoding": "json"},
                        **IDS, "rank": rank}
            with open(self.path("logs", f"dedicated_log_torch_trace_rank_{rank}_{rank:08d}.log"),
                      "wb") as file:
                write_record(file, {"dynamo_start": {"stack": []}, **IDS, "rank": rank})
                write_record(file, schedule, [b"[", ops, b"]"])
            largest = max(largest, len(ops))
        return largest

    def test_schedule_of_many_collectives(self):
        self.assert_promise("logs", self.schedules(lambda rank, i: b"all_reduce_"))
        peak = self.peak_bytes("findings", self.path("out", "trace.db"))
        self.assertLessEqual(peak / MB, 64)

    def test_schedules_of_which_no_two_collectives_are_equal(self):
        self.assert_promise("logs", self.schedules(lambda rank, i: b"%d_%d" % (rank, i), ranks=2))
        answer = json.loads(self.tlparse("collectives", self.path("out", "trace.db"), "--json",
                                         expect=None).stdout)
        odd = answer["classes"][1]
        self.assertEqual(len(odd["mismatches"]) + odd["left_out"], 1_400_000)

    def test_envelope_of_many_values(self):
        ones = b"1," * (15 * MB) + b"1"
        for place, kind, rows in (("beside", b'"artifact": {"name": "x"}', 0),
                                  ("within", b'"dynamo_start": {"stack": []', 1)):
            with self.subTest(place=place):
                path = self.path("envelope.log")
                with open(path, "wb") as file:
                    file.write(b"V1121 08:30:01.000000 7 a.py:1] {" + kind +
                               b', "v": [' + ones + (b"]}" if rows else b"]") +
                               b', "rank": 3, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}\n')
                self.assert_promise(path, 30 * MB)
                database = self.path("out", "trace.db")
                self.assertEqual(harness.rows(database, "SELECT kind, rank, length(envelope) > 31000000, "
                                              "length(metadata) > 31000000 FROM record"),
                                 [["dynamo_start" if rows else "artifact", 3, 1, rows]])
                told = harness.rows(database, "SELECT code FROM import_log WHERE code IN "
                                    "('payload_too_large', 'broken_header')")
                self.assertEqual(told, [["payload_too_large"]] * rows)

    def test_texts_of_many_rows(self):
        """Guards, code and interned strings are no JSON that is counted before it is parsed."""
        lines = 1_200_000
        guards = b"TREE_GUARD_MANAGER:\n\t+- RootGuardManager\n" + b"".join(
            b"\t| +- T: x%d\n" % i for i in range(lines))
        calls = b"def call(args):\n" + b"".join(b"\t    cpp_fused_%d(b)\n" % i for i in range(lines))
        for kind, text, table, rows in (("dynamo_cpp_guards_str", guards, "guard_row", (0, 0)),
                                        ("inductor_output_code", calls, "kernel_row", (10_000, 200_000))):
            with self.subTest(kind=kind):
                path = self.path("text.log")
                with open(path, "wb") as file:
                    digest = hashlib.md5(text.replace(b"\n\t", b"\n").rstrip(b"\n")).hexdigest()
                    write_record(file, {kind: {"filename": "a.py"}, **IDS, "has_payload": digest})
                    file.write(b"\t" + text)
                self.assert_promise(path, len(text))
                database = self.path("out", "trace.db")
                count, = harness.rows(database, f"SELECT count(*) FROM {table}")[0]
                self.assertTrue(rows[0] <= count <= rows[1], count)
                self.assertEqual(harness.rows(database, "SELECT count(*) FROM import_log WHERE code = "
                                              "'payload_too_large'"), [[1]])

    def test_many_interned_strings(self):
        path = self.path("strings.log")
        with open(path, "wb") as file:
            for i in range(1_500_000):
                file.write(b'V1121 08:30:01.000000 7 a.py:1] {"str": ["a%d", %d]}\n' % (i, i))
        peak = self.peak_bytes(path, "--db", "s.db", "--db-only", "--threads", "2")
        self.assertLessEqual(peak / MB, 256)
        self.assertEqual(harness.rows(self.path("s.db"), "SELECT count(*) FROM import_log WHERE code = "
                                      "'memory_limit'"), [[1]])

    def profile(self, ops, with_kernels):
        """A profile of so many ops, each of which queues a kernel."""
        path = self.path("profile.json")
        with open(path, "w", encoding="ascii") as file:
            file.write('{"schemaVersion": 1, "traceEvents": [\n')
            for i in range(ops):
                start = 1000 + 10 * i
                file.write('{"ph": "X", "cat": "cpu_op", "name": "aten::op%d", "pid": 1, "tid": 1, "ts": '
                           '%d, "dur": 9, "args": {"External id": %d}},\n' % (i % 50, start, i))
                if with_kernels:
                    file.write('{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, '
                               '"ts": %d, "dur": 2, "args": {"correlation": %d}},\n'
                               '{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": %d, "dur": 5, '
                               '"args": {"correlation": %d, "device": 0, "stream": 7}},\n' % (start + 1, i, start + 4, i))
            file.write('{"ph": "M", "name": "end", "pid": 1, "tid": 1, "args": {}}]}')
        return path

    def test_profile_of_many_ops(self):
        """What is kept of each op and launch is not in memory (20 MiB and 60 MiB more, if it were)."""
        for with_kernels in (False, True):
            peaks = []
            for ops in (150_000, 600_000):
                path = self.profile(ops, with_kernels)
                peaks.append(self.peak_bytes(path, "--db", f"{ops}.db", "--db-only"))
                joined = harness.rows(self.path(f"{ops}.db"), "SELECT count(*), count(device_ns), sum(self_ns) "
                                      "FROM op_run_link_row")
                self.assertEqual(joined, [[ops, ops if with_kernels else 0, 9000 * ops]])
                os.unlink(self.path(f"{ops}.db"))
            self.assertLess((peaks[1] - peaks[0]) / MB, 16)

    def test_copies_of_profiles_and_snapshots(self):
        """redact and bundle hold a piece of a file (11 MB more, if it were the whole file)."""
        peaks = {"redact": [], "bundle": []}
        for events in (10_000, 30_000):
            folder = f"job{events}"
            os.mkdir(self.path(folder))
            memory_snapshot.write(memory_snapshot.snapshot([memory_snapshot.training(events)]), self.path(folder, "m.json"), "json")
            peaks["redact"].append(self.peak_bytes("redact", folder, "-o", folder + "_copy"))
            peaks["bundle"].append(self.peak_bytes("bundle", folder, "-o", folder + ".zip"))
        for command, (small, large) in peaks.items():
            self.assertLess((large - small) / MB, 3, command)

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

    def test_a_timeline_takes_no_memory_for_what_it_sorts(self):
        peaks = []
        for count in (6_000, 60_000):
            with open(self.path("p.json"), "w", encoding="ascii") as file:
                file.write('{"schemaVersion": 1, "baseTimeNanoseconds": 1790857026000000000, "traceEvents": [')
                for at in range(count):
                    for category, name, start, args in (("cpu_op", "aten::mm", 0, f'"External id": {at}'), ("cuda_runtime", "cudaLaunchKernel", 1, f'"correlation": {at}'),
                                                        ("kernel", "gemm", 5, f'"correlation": {at}, "External id": {at}, "device": 0, "stream": 7')):
                        file.write(f'{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": 7, "tid": 7, "ts": {10 * at + start}, "dur": 4, "args": {{{args}}}}}, ')
                file.write('{"ph": "i", "name": "end", "pid": 7, "tid": 7, "ts": 1, "s": "t"}]}')
            self.tlparse("p.json", "--db", f"{count}.db", "--db-only")
            peaks.append(self.peak_bytes("timeline", f"{count}.db", "-o", f"{count}.json"))
        self.assertLess(peaks[1], peaks[0] + 4 * MB)


if __name__ == "__main__":
    unittest.main()
