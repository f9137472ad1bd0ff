#!/usr/bin/env python3
"""Bytes by graph node, and beside time: blocks that lines of generated code allocate, counted by reading the code."""

import collections
import json
import os
import re
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import costs  # noqa: E402
import profiles  # noqa: E402
sys.path.insert(0, os.path.join(profiles.ROOT, "tests", "tools"))
import memory_snapshot  # noqa: E402
from memory_snapshot import frame  # noqa: E402

WITH_NODES = os.path.join(profiles.ROOT, "fixtures", "logs", "cache_warm_provenance", "dedicated_log_torch_trace_s_i8qxjm.log")
FIXTURE = os.path.join(profiles.ROOT, "fixtures", "memory")
LOG = os.path.join(FIXTURE, "dedicated_log_torch_trace_v3r46rvy.log.zst")
PROFILE = os.path.join(FIXTURE, "profile.pt.trace.json.zst")


def codes(log):
    """Path and lines of each generated code."""
    for record in profiles.records(log):
        if "inductor_output_code" in record.envelope:
            code = record.envelope["inductor_output_code"]
            yield code.get("file_path") or code["filename"], profiles.payload_text(record).split("\n")


def calls(lines):
    """(number of the line, name, the line) of each call of a kernel."""
    for number, line in enumerate(lines, 1):
        called = re.match(r"\s+(?:\w+ = )?(cpp_fused_\w+|extern_kernels\.\w+|torch\.ops\.aten\.[\w.]+)\(", line)
        if called:
            yield number, called.group(1), line


def kernels_by_allocation(lines):
    """Of each line that allocates a buffer the line of the first kernel call that has it, also under the name that "# reuse" gives it."""
    found = {}
    for number, line in enumerate(lines, 1):
        allocated = re.match(r"\s+(buf\d+) = empty_strided_\w+\(", line)
        if not allocated:
            continue
        name = allocated.group(1)
        for other, following in enumerate(lines[number:], number + 1):
            if not re.search(rf"\b{name}\b", following) or "assert_size_stride" in following:
                continue
            reused = re.match(rf"\s+(buf\d+) = .*\b{name}\b.*# reuse$", following)
            if reused:
                name = reused.group(1)
                continue
            if any(other == at for at, _, _ in calls(lines)):
                found[number] = other
            break
    return found


@unittest.skipUnless(profiles.HAS_ZSTD, "zstd is not installed")
class Nodes(costs.CostTest, profiles.InputTest):
    def job(self, log, *more):
        """A job whose snapshot has a block from each line that allocates, and from the line of each call; the sizes by (path, line)."""
        folder = self.path("job")
        os.mkdir(folder)
        for path in (log, *more):
            shutil.copy(path, folder)
        allocator, sizes = memory_snapshot.Allocator(), {}
        for path, lines in codes(log):
            for line in sorted(set(kernels_by_allocation(lines)) | {at for at, _, _ in calls(lines)}):
                sizes[path, line] = 1000 + len(sizes)
                allocator.alloc(sizes[path, line], [frame("call", path, line), frame("step", "/job/train.py", 7)])
        allocator.alloc(500, [frame("step", "/job/train.py", 7)])
        memory_snapshot.write(memory_snapshot.snapshot([allocator]), os.path.join(folder, "memory.pickle"))
        return self.ingest(folder), sizes

    def device_rows(self, database, *arguments):
        answer = self.checked(json.loads(self.tlparse("memory", database, "--json", "--top", "1000", *arguments).stdout), "memory.schema.json")
        return [row for device in answer["devices"] if device["kind"] == "memory_snapshot" for row in device["rows"]], answer

    def test_nodes_are_those_of_the_kernel_that_the_buffer_is_for(self):
        database, sizes = self.job(WITH_NODES)
        nodes = {}
        for record in profiles.records(WITH_NODES):
            if record.envelope.get("artifact", {}).get("name") == "inductor_provenance_tracking_node_mappings":
                for kernel, own in json.loads(profiles.payload_text(record)).get("cppCodeToPost", {}).items():
                    nodes.setdefault(frozenset(own), kernel)
        expected = collections.Counter()
        for path, lines in codes(WITH_NODES):
            by_line = {at: name for at, name, _ in calls(lines)}
            allocations = kernels_by_allocation(lines)
            for (own, line), size in sizes.items():
                if own == path:
                    expected[by_line[allocations.get(line, line)]] += size
        rows, _ = self.device_rows(database, "--by", "node")
        mine = collections.Counter()
        for row in rows:
            if row["kernel"]:
                mine[row["kernel"].split(":")[0]] += row["size_bytes"]
                if row["nodes"]:
                    self.assertIn(frozenset(row["nodes"].split(", ")), nodes)
        self.assertGreater(len(expected), 10)
        self.assertEqual(expected, mine)
        self.assertTrue(any(row["nodes"] == "mm" for row in rows))
        outside, = [row for row in rows if row["label"] is None]
        self.assertEqual([outside["size_bytes"], outside["reason"]], [500, "allocated outside compiled graphs"])
        self.assertEqual(sum(row["size_bytes"] for row in rows), 500 + sum(sizes.values()))

    def test_a_time_is_the_moment_after_the_events_until_then(self):
        database, _ = self.job(WITH_NODES)
        events = self.rows(database, "SELECT action, size_bytes, time_ns FROM memory_event ORDER BY ordinal")
        for offset_us in (0, 4, 31, 100):
            alive = sum(size for action, size, at in events if action == "alloc" and at <= events[0][2] + offset_us * 1000 + 999)
            rows, _ = self.device_rows(database, "--at", f"+{offset_us}us")
            self.assertEqual(sum(row["size_bytes"] for row in rows), alive)
        rows, answer = self.device_rows(database, "--at", "+10s")
        self.assertEqual([rows, len(answer["notes"])], [[], 1])
        for wrong in ("+", "+5", "+x", "+5h", "+-1s", "1.5s"):
            self.assertIn("--at takes", self.tlparse("memory", database, "--at", wrong, expect=2).stderr)

    def test_bytes_beside_time(self):
        database, sizes = self.job(LOG, PROFILE)
        held = {}
        for path, lines in codes(LOG):
            allocations = kernels_by_allocation(lines)
            for at, name, _ in calls(lines):
                held[path, at] = sum(size for (own, line), size in sizes.items() if own == path and allocations.get(line, line) == at)
        code_lines = dict(self.rows(database, "SELECT id, code_line FROM kernel_row"))
        paths = dict(self.rows(database, "SELECT graph_id, path FROM output_code"))
        rows = [row for row in self.ask("--by", "kernel", database=database)["rows"] if row["kernel_id"] is not None]
        self.assertGreater(len(rows), 10)
        # Of the snapshot and of the profile's own memory events the larger one; those by kernel are checked in test_memory_joins.py.
        of_profile = collections.Counter(dict(self.rows(database, """SELECT i.kernel_id, sum(m.size_bytes) FROM memory_peak m JOIN memory_site i ON i.id = m.site_id
            JOIN memory_snapshot s ON s.id = m.snapshot_id WHERE s.kind = 'kineto' AND i.kernel_id IS NOT NULL GROUP BY 1""")))
        self.assertGreater(len(of_profile), 3)
        lines = {(paths[row["graph_id"]], code_lines[row["kernel_id"]]): of_profile[row["kernel_id"]] for row in rows}
        held = {place: max(own, lines.get(place, 0)) for place, own in held.items()}
        for row in rows:
            self.assertEqual(row["peak_bytes"], held[paths[row["graph_id"]], code_lines[row["kernel_id"]]], row["name"])
        answer = json.loads(self.tlparse("provenance", database, "--json").stdout)
        for row in self.checked(answer, "provenance.schema.json")["kernels"]:
            self.assertEqual(row["peak_bytes"], held[paths[row["graph_id"]], row["code_line"]], row["kernel"])
        of_profile = dict(self.rows(database, """SELECT g.graph_id, g.size_bytes FROM graph_memory g JOIN memory_snapshot s ON s.id = g.snapshot_id
            WHERE s.kind = 'kineto' AND g.graph_id IS NOT NULL"""))
        for row in self.ask("--by", "graph", database=database)["rows"]:
            of_snapshot = sum(size for (path, _), size in sizes.items() if path == paths[row["graph_id"]])
            self.assertEqual(row["peak_bytes"], max(of_snapshot, of_profile.get(row["graph_id"], 0)))
        self.assertIn("at peak", self.tlparse("cost", database, "--by", "kernel").stdout)

    def test_what_is_not_recorded_has_no_bytes(self):
        trace = self.gpu_trace()
        path = self.path("x.pt.trace.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(trace, file)
        database = self.ingest(path, name="x.db")
        for by in ("kernel", "graph", "line", "node"):
            answer = self.ask("--by", by, database=database)
            self.assertEqual({row["peak_bytes"] for row in answer["rows"]} - {None}, set())
            self.assertNotIn("at peak", self.tlparse("cost", database, "--by", by).stdout)


if __name__ == "__main__":
    unittest.main()
