#!/usr/bin/env python3
"""tlparse timeline: a strict reader of the format finds no fault, and counts what the database has.

usage: test_timeline.py [unittest's arguments]
       test_timeline.py --all [--keep] DIRECTORY…   each folder below that holds inputs, with a table: the test "tools_timeline: long".
                                                  TRACE_PROCESSOR=package: also beside Perfetto's trace processor (trace_processor.mjs).
                                                  --keep: writes the sums into docs/compatibility.md
"""

import collections
import gzip
import json
import os
import re
import subprocess
import sys
import unittest
from fractions import Fraction

HERE = os.path.dirname(os.path.abspath(__file__))
TRACE_PROCESSOR = os.environ.get("TRACE_PROCESSOR")
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "inputs")]

import kept  # noqa: E402
import profiles  # noqa: E402
import trace_events  # noqa: E402
from profiles import harness  # noqa: E402

# Of the database: what a slice is called, where it is, when. Kernels that the join found among ops and frames are these.
OWN = "(SELECT id FROM profile WHERE overlaps_id IS NULL)"
TABLES = {
    "op_run_row": ("t.text", "x.thread_id", "NULL", "NULL", "1"),
    "annotation_row": ("t.text", "x.thread_id", "x.device", "x.stream", "1"),
    "python_frame_row": ("t.text", "x.thread_id", "NULL", "NULL", "1"),
    "device_launch_row": ("t.text", "x.thread_id", "NULL", "NULL", "1"),
    "kernel_run_row": ("t.text", "x.thread_id", "x.device", "x.stream", "op_run_id IS NULL AND frame_id IS NULL"),
    "device_copy_row": ("t.text", "NULL", "coalesce(x.device, -1)", "x.stream", "1"),
    "compiled_slice_row": ("CASE WHEN x.kind IN (0, 5) THEN '## Call CompiledFxGraph ' || coalesce(t.text, 'None') || ' ##' "
                           "WHEN x.kind = 1 THEN 'Torch-Compiled Region: ' || coalesce(t.text, '') WHEN x.kind = 2 THEN 'CompiledFunction' "
                           "WHEN x.kind = 3 THEN 'CompiledFunctionBackward' ELSE coalesce(t.text, 'graph call') END",
                           "x.thread_id", "x.device", "x.stream", "x.op_run_id IS NULL"),
}


def place_of(process):
    """Of a name in the file: (device, pid or None, the name without what was added to it)."""
    device, name = re.match(r"(?:device (-?\d+) of )?(.*?)(?:, times [+] .* days)?$", process, re.DOTALL).groups()
    pid = re.search(r"\(pid (\d+)\)$", name)
    return None if device is None else int(device), int(pid.group(1)) if pid else name


def counted(entries):
    """{key: [number, ns]} of (key, ns)."""
    sums = collections.defaultdict(lambda: [0, 0])
    for key, ns in entries:
        sums[key][0] += 1
        sums[key][1] += ns
    return dict(sums)


class Expected:
    """What the database says, without what the program's source says."""

    def __init__(self, database):
        self.connection = harness.connect(database)
        self.run, = self.connection.execute("SELECT max(id) FROM run").fetchone()

    def rows(self, sql):
        return self.connection.execute(sql.replace(":run", str(self.run)).replace(":own", OWN)).fetchall()

    def slices(self):
        return counted([*self.compile_events(), *self.profile_slices(), *self.collectives()])

    def compile_events(self):
        for pid, thread_pid, name, phase, start, duration, tid, last in self.rows(
                "SELECT p.pid, p.is_thread_id, e.name, e.phase, e.start_us, e.duration_us, e.tid, p.last_record_us FROM chromium_event e "
                "JOIN process p ON p.id = e.process_id JOIN log_file f ON f.id = p.log_file_id WHERE f.run_id = :run AND e.start_us IS NOT NULL"):
            if phase == "B" and last is not None:
                duration = last - Fraction(start)
            if duration is None or duration < 0 or abs(start) >= 9e15:
                continue
            yield (None, pid, f"compiler, thread {tid}" if tid else "compiler", name), int((Fraction(duration) * 1000 + Fraction(1, 2)) // 1)

    def profile_slices(self):
        for table, (name, thread, device, stream, which) in TABLES.items():
            for row in self.rows(
                    f"SELECT {name}, h.pid, h.tid, h.name, {device}, {stream}, p.pid, p.rank, p.path, q.pid, x.duration_ns FROM {table} x "
                    f"JOIN profile p ON p.id = x.profile_id LEFT JOIN text_row t ON t.id = x.name_id LEFT JOIN profile_thread h ON h.id = {thread} "
                    f"LEFT JOIN process q ON q.id = p.process_id WHERE p.run_id = :run AND p.overlaps_id IS NULL AND {which}"):
                name_, pid, tid, thread_name, device_, stream_, *owner, ns = row
                if device_ is not None:
                    thread_ = f"stream {stream_}" if stream_ is not None else "no stream"
                else:
                    thread_ = thread_name or f"thread {tid}" if tid is not None else None  # None: of no thread
                yield (device_, self.owner(*owner), thread_, name_), ns

    @staticmethod
    def owner(pid, rank, path, log_pid):
        return log_pid or pid or (f"rank {rank}" if rank is not None else os.path.basename(path))

    def collectives(self, has_end=True):
        for op, group, *owner, ns in self.rows(
                "SELECT o.text, g.text, p.pid, p.rank, p.path, q.pid, c.end_ns - c.start_ns FROM collective_run_row c JOIN profile p "
                "ON p.id = c.profile_id LEFT JOIN process q ON q.id = p.process_id LEFT JOIN text_row o ON o.id = c.op_id LEFT JOIN text_row g "
                "ON g.id = c.group_id WHERE p.run_id = :run AND p.overlaps_id IS NULL AND c.start_ns IS NOT NULL"):
            if (ns is not None and ns >= 0) == has_end:
                of_group = f" of group {group}" if group else ""
                yield (None, self.owner(*owner), f"collectives{of_group} ({os.path.basename(owner[2])})", op), ns

    def instants(self):
        """And what has no possible time."""
        events, = self.rows("SELECT count(*) FROM chromium_event e JOIN process p ON p.id = e.process_id JOIN log_file f ON f.id = p.log_file_id "
                            "WHERE f.run_id = :run AND e.start_us IS NOT NULL AND (e.duration_us IS NULL OR e.duration_us < 0) "
                            "AND (e.phase <> 'B' OR p.last_record_us IS NULL OR p.last_record_us < e.start_us)")
        failed, = self.rows("SELECT count(*) FROM memory_event e WHERE e.profile_id IN :own AND e.action = 'oom' AND e.time_ns IS NOT NULL")
        absurd, = self.rows("SELECT count(*) FROM chromium_event WHERE abs(start_us) >= 9e15 AND duration_us >= 0")
        return absurd[0] + events[0] + failed[0] + len([*self.collectives(has_end=False)])

    def flows(self):
        return sum(self.rows(f"SELECT count(*) FROM {table} k WHERE {which} AND k.profile_id IN :own AND EXISTS (SELECT 1 FROM device_launch_row d "
                             "WHERE d.profile_id = k.profile_id AND d.correlation = k.correlation)")[0][0]
                   for table, which in (("kernel_run_row", TABLES["kernel_run_row"][4]), ("device_copy_row", "1")))

    def memory(self):
        """(number of values, peak) of each device that has any, sorted."""
        return sorted(self.rows("SELECT count(*), max(s.peak_bytes) FROM memory_snapshot s JOIN memory_event e ON e.snapshot_id = s.id "
                                "WHERE s.profile_id IN :own AND e.time_ns IS NOT NULL GROUP BY s.id"))


def counted_in(trace):
    return counted(((*place_of(trace.process_names.get(one.pid, "")), thread_of(trace, one), one.name), one.end - one.start) for one in trace.slices)


def thread_of(trace, one):
    name = trace.thread_names.get((one.pid, one.tid), "").split(" (overlapping, ")[0]
    return None if name.endswith(" (of no thread)") else name


def peaks(trace):
    values = collections.defaultdict(list)
    for pid, name, _, args in trace.counters:
        values[pid, name].append(int(args["allocated"]))
    return sorted((len(one), max(one)) for one in values.values())


class Timeline(harness.EndToEnd):
    def timeline(self, database, *arguments, name="timeline.json"):
        if os.path.exists(self.path(name)):
            os.unlink(self.path(name))
        self.tlparse("timeline", database, "-o", name, *arguments)
        return trace_events.Trace(self.path(name))

    def compare(self, *inputs):
        if os.path.exists(self.path("t.db")):
            os.unlink(self.path("t.db"))
        self.tlparse(*inputs, "--db", "t.db", "--db-only", "--keep-python-frames", expect=None)
        if not os.path.exists(self.path("t.db")):
            return None
        trace = self.timeline("t.db")
        self.assertEqual([], trace.faults[:5])
        self.assertEqual([], trace.names_missing())
        expected = Expected(self.path("t.db"))
        self.assertEqual(expected.slices(), counted_in(trace))
        self.assertEqual((expected.instants(), expected.flows()), (len(trace.instants) + trace.left_out, trace.flows))
        for wanted, found in zip(expected.memory(), peaks(trace), strict=True):
            self.assertEqual(wanted[0], found[0])
            self.assertGreaterEqual(wanted[1], found[1])  # the peak may be before the first event
        return trace


class Fixtures(Timeline):
    def test_logs(self):
        folders = sorted({os.path.dirname(path) for path in harness.bundled_logs()})
        total = sum(len(self.compare(folder).slices) for folder in folders)
        self.assertGreater(total, 4000)

    def runs(self, part):
        for name in sorted(os.listdir(profiles.RUNS))[part::2]:
            with self.subTest(name):
                self.compare(profiles.recorded(name))

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_runs(self):
        self.runs(0)

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_other_runs(self):
        self.runs(1)

    def test_damaged_logs(self):
        for name in sorted(os.listdir(os.path.join(harness.ROOT, "fixtures", "corrupt"))):
            with self.subTest(name):
                self.compare(os.path.join(harness.ROOT, "fixtures", "corrupt", name))


def slices_of(pid, tid, *slices, **others):
    return [{"ph": "X", "cat": "cpu_op", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, **others} for name, ts, dur in slices]


def profile(*events, base=1_700_000_000_000_000_000):
    return json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": base, "traceEvents": [*events]}).encode()


class Made(Timeline):
    def test_what_overlaps_is_on_further_threads(self):
        self.write("p.json", profile(*slices_of(7, 8, ("a", 0, 10), ("b", 2, 3), ("c", 5, 10), ("d", 6, 2), ("e", 15, 1)),
                                     {"ph": "M", "name": "thread_name", "pid": 7, "tid": 8, "args": {"name": "worker"}}))
        trace = self.compare("p.json")
        tracks = collections.defaultdict(set)
        for one in trace.slices:
            tracks[trace.thread_names[one.pid, one.tid]].add(one.name)
        self.assertEqual({"worker": {"a", "b", "d", "e"}, "worker (overlapping, 2)": {"c"}}, dict(tracks))
        self.assertIn((7, 8), trace.thread_names)

    def test_ns_are_kept(self):
        self.write("p.json", profile(*slices_of(7, 7, *((f"op{i}", f"{i}.{i:03}", f"0.{i:03}") for i in range(1, 999)))).replace(b'"ts": "', b'"ts": ').replace(
            b'", "dur": "', b', "dur": ').replace(b'"}', b'}').replace(b'"cpu_op}', b'"cpu_op"}'))
        trace = self.compare("p.json")
        self.assertEqual({1001 * i for i in range(1, 999)}, {one.start + trace.base_ns - 1_700_000_000_000_000_000 for one in trace.slices})

    def test_flows_lead_from_a_launch_to_its_work(self):
        def device(category, name, start, **args):
            return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": start, "dur": 2, "args": {"device": 0, "stream": 7, **args}}
        launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 7, "tid": 7, "ts": 1, "dur": 3, "args": {"correlation": 5}}
        alone = {**launch, "ts": 5, "args": {"correlation": 6}}
        self.write("p.json", profile(*slices_of(7, 7, ("op", 0, 9)), launch, alone, device("kernel", "k", 10, correlation=5, grid=[1, 2, 3]),
                                     device("kernel", "k", 12, correlation=5), device("gpu_memset", "Memset", 14, correlation=5, bytes=64),
                                     device("kernel", "other", 16, correlation=9)))
        trace = self.compare("p.json")
        self.assertEqual(3, trace.flows)
        self.assertEqual({"gpu_memset"}, {one.category for one in trace.slices if one.name == "Memset"})
        self.assertEqual([["1", "2", "3"]], [one.args["grid"] for one in trace.slices if "grid" in one.args])
        self.assertEqual({"64"}, {one.args["bytes"] for one in trace.slices if one.name == "Memset"})

    def test_processes_of_one_pid_are_kept_apart(self):
        for rank in (0, 1):
            self.write(f"rank{rank}.json", json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 10 ** 18, "distributedInfo": {"rank": rank},
                                                       "traceEvents": slices_of(7, 0, ("op", rank, 9))}).encode())
        self.tlparse("rank0.json", "rank1.json", "--db", "two.db", "--db-only")
        trace = self.timeline("two.db")
        self.assertEqual(([], 2), (trace.faults, len({one.pid for one in trace.slices})))
        self.assertEqual({"rank 0 (pid 7)", "rank 1 (pid 7)"}, set(trace.process_names.values()))
        self.assertNotIn(0, {one.tid for one in trace.slices})  # read as "the thread of this pid"
        one = self.timeline("two.db", "--rank", "1")
        self.assertEqual(["rank 1 (pid 7)"], list(one.process_names.values()))
        self.assertIn("no rank 5", self.tlparse("timeline", "two.db", "-o", "x.json", "--rank", "5", expect=2).stderr)
        self.assertIn("exists", self.tlparse("timeline", "two.db", "-o", "timeline.json", expect=2).stderr)

    def test_what_began_long_before_is_shifted_and_says_so(self):
        self.write("a.json", profile(*slices_of(7, 7, ("old", 1, 2.5)), base=0))
        self.write("b.json", profile(*slices_of(8, 8, ("new", 0, 1))))
        self.tlparse("a.json", "b.json", "--db", "two.db", "--db-only")
        trace = self.timeline("two.db")
        self.assertEqual([], trace.faults)
        self.assertEqual({"b.json (pid 8)", "a.json (pid 7), times + 19675.93 days"}, set(trace.process_names.values()))

    def test_a_profile_without_a_pid_has_a_number_above_0(self):
        self.write("p.json", profile(*slices_of("main", 7, ("op", 0, 9))))
        self.tlparse("p.json", "-o", "tree", "--with-profile")
        with open(self.path("tree/chromium_events.json"), encoding="utf-8") as file:
            self.assertTrue(all(event["pid"] > 0 for event in json.load(file)))
        self.assertEqual(["p.json"], [*self.timeline("tree").process_names.values()])

    def test_a_timeline_is_no_profile(self):
        self.write("job/p.json", profile(*slices_of(7, 7, ("op", 0, 9))))
        self.tlparse("job", "--db", "one.db", "--db-only")
        self.timeline("one.db", name="job/timeline.json")
        self.tlparse("job", "--db", "again.db", "--db-only")
        self.assertEqual([["p.json"]], [[os.path.basename(path)] for path, in harness.rows(self.path("again.db"), "SELECT path FROM profile")])
        self.assertIn("a timeline that tlparse wrote", harness.rows(self.path("again.db"), "SELECT message FROM import_log WHERE code = 'skipped_file'")[0][0])

    def test_nothing_is_an_object_with_an_empty_list(self):
        self.write("log/dedicated_log_torch_trace_abcdefgh.log", b'V1121 08:30:01.124000 4242 a.py:12] {"x": {}}\n')
        self.tlparse("log", "--db", "none.db", "--db-only")
        self.assertEqual(([], []), (self.timeline("none.db").slices, self.timeline("none.db").faults))
        with open(self.path("timeline.json"), encoding="utf-8") as file:
            self.assertEqual([], json.load(file)["traceEvents"])

    def test_parts(self):
        self.tlparse(profiles.recorded("p_mlp_train"), "--db", "part.db", "--db-only")
        whole = self.timeline("part.db")
        zipped = self.timeline("part.db", name="timeline.json.gz")
        self.assertEqual(whole.slices, zipped.slices)
        with gzip.open(self.path("timeline.json.gz")) as packed, open(self.path("timeline.json"), "rb") as plain:
            self.assertEqual(packed.read(), plain.read())
        label, = harness.rows(self.path("part.db"), "SELECT label FROM compile ORDER BY id LIMIT 1")[0]
        of_compile = self.timeline("part.db", "--compile", label)
        self.assertEqual(([], {label}), (of_compile.faults, {one.args.get("compile") for one in of_compile.slices if one.category != "compile"}))
        self.assertIn("backend_compile", {one.name for one in of_compile.slices})
        self.assertIn("no compile 9/9", self.tlparse("timeline", "part.db", "-o", "x.json", "--compile", "9/9", expect=2).stderr)
        step, start, end = harness.rows(self.path("part.db"), "SELECT step, start_ns, start_ns + duration_ns FROM annotation WHERE step IS NOT NULL ORDER BY step")[0]
        of_step = self.timeline("part.db", "--steps", str(step))
        expected = [one for one in whole.slices if one.start + whole.base_ns < end and one.end + whole.base_ns >= start]
        self.assertEqual(([], sorted((one.name, one.start) for one in expected)), (of_step.faults, sorted((one.name, one.start) for one in of_step.slices)))
        self.assertIn("marks these steps", self.tlparse("timeline", "part.db", "-o", "x.json", "--steps", "99", expect=2).stderr)
        self.assertIn("like 3-5", self.tlparse("timeline", "part.db", "-o", "x.json", "--steps", "3-", expect=2).stderr)


class Reader(unittest.TestCase):
    """The reader finds each fault."""

    def read(self, *events, document=None):
        path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"trace_events_{os.getpid()}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document if document is not None else {"traceEvents": [*events]}, file)
        try:
            return trace_events.Trace(path)
        finally:
            os.unlink(path)

    def test_faults(self):
        x = {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
        flow = {"name": "f", "cat": "f", "id": 1, "pid": 1, "tid": 1, "ts": 1}
        for text, *events in (("overlaps", x, {**x, "ts": 2, "dur": 3}), ("an end without", {**x, "ph": "E"}), ("a begin without", {**x, "ph": "B"}),
                              ("it ends a", {**x, "ph": "B"}, {**x, "ph": "E", "name": "b"}), ("not exact", {**x, "ts": 1_700_000_000_000_000.123}),
                              ("finer", {**x, "ts": 0.0001}), ("no number of", {**x, "ts": "1"}), ("below 0", {**x, "dur": -1}),
                              ("pid or tid", {**x, "pid": -1}), ("pid or tid", {**x, "tid": "a"}), ("no name", {**x, "name": 3}),
                              ("one start and one end", x, {**flow, "ph": "s"}), ("no slice", {**flow, "ph": "s"}, {**flow, "ph": "f", "bp": "e"}),
                              ("no known kind", {**x, "ph": "M"}), ("it was named", *({"ph": "M", "name": "process_name", "pid": 1, "tid": 0,
                                                                                       "args": {"name": name}} for name in "ab")),
                              ("none of these", {**x, "ph": "?"}), ("has numbers", {**x, "ph": "C", "args": {"a": "b"}})):
            with self.subTest(text):
                self.assertIn(text, " ".join(self.read(*events).faults))
        self.assertIn("an empty list", self.read(document=[]).faults[0])

    def test_none(self):
        x = {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
        trace = self.read(x, {**x, "ts": 1.5, "dur": 0.001}, {**x, "ts": 3}, {**x, "ph": "B"}, {**x, "ph": "E", "ts": 3},
                          {"ph": "s", "name": "f", "id": 1, "pid": 1, "tid": 1, "ts": 1}, {"ph": "f", "bp": "e", "name": "f", "id": 1, "pid": 1, "tid": 1, "ts": 5})
        self.assertEqual(([], 4, 1), (trace.faults, len(trace.slices), trace.flows))
        self.assertEqual({("1", "1", "a"): [4, 6001]}, trace.sums())


def main():
    if sys.argv[1:2] != ["--all"]:
        unittest.main()
    keep = sys.argv[2:3] == ["--keep"]
    folders = sorted({folder for root in sys.argv[2 + keep:] for folder, _, files in os.walk(root)
                      if any(re.search(r"\.log(\.(gz|zst))?$|trace\.json|\.json\.gz$|fr_.*trace|\.pickle$", name) for name in files)})
    if not folders:
        print("skipped: none of these folders is here")
        sys.exit(77)
    test, totals = All("compare"), collections.Counter()
    for folder in folders:
        test.setUp()
        trace = test.compare(folder)
        test.doCleanups()
        if trace is None:
            continue
        row = {"inputs": 1, "slices": len(trace.slices), "threads": len(trace.threads()), "instants": len(trace.instants), "values": len(trace.counters),
               "flows": trace.flows, "faults": len(trace.faults)}
        totals.update(row)
        print(folder, *(f"{value} {what}" for what, value in row.items()), sep="\t", flush=True)
    print("all", *(f"{value} {what}" for what, value in totals.items()), sep="\t")
    if keep:
        kept.keep("timelines", {"all": totals})


class All(Timeline):
    """For main."""

    def compare(self, *inputs):
        trace = super().compare(*inputs)
        if trace is not None and TRACE_PROCESSOR:
            answer = subprocess.run(["node", os.path.join(HERE, "trace_processor.mjs"), TRACE_PROCESSOR, self.path("timeline.json")], capture_output=True, check=True)
            told = json.loads(answer.stdout)
            self.assertEqual([], told["errors"])
            mine = counted(((one.pid, one.tid, one.name), one.end - one.start) for one in trace.slices + trace.instants)  # there an instant is a slice
            theirs = {(pid, tid, name): (count, ns) for pid, tid, name, count, ns in told["slices"]}
            self.assertEqual({key: count for key, (count, _) in mine.items()}, {key: count for key, (count, _) in theirs.items()})
            # It reads a time as a double and cuts it to ns.
            self.assertEqual([], [key for key, (count, ns) in mine.items() if not 0 <= ns - theirs[key][1] <= count])
            self.assertEqual(trace.flows, told["flows"])
        return trace


if __name__ == "__main__":
    main()
