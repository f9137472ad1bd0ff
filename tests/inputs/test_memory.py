#!/usr/bin/env python3
"""Snapshots of the allocator end to end: rows as Python's pickle reads them, the peak as another program counts it, and what a
damaged or hostile file does."""

import collections
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import profiles  # noqa: E402
sys.path.insert(0, os.path.join(profiles.ROOT, "tests", "tools"))
import memory  # noqa: E402
import memory_snapshot  # noqa: E402

PUBLIC = os.path.join(profiles.ROOT, "..", "shared", "runs", "memory")

AT_PEAK = """WITH RECURSIVE f(allocation, id, depth) AS (SELECT a.id, a.stack_id, 0 FROM memory_peak a WHERE a.device = ? AND a.stack_id IS NOT NULL
    UNION ALL SELECT f.allocation, s.parent_id, depth + 1 FROM f JOIN stack_frame s ON s.id = f.id WHERE s.parent_id IS NOT NULL)
    SELECT f.allocation, s.file, s.line, s.function FROM f JOIN stack_frame s ON s.id = f.id ORDER BY f.allocation, f.depth DESC"""


class Snapshots(profiles.InputTest):
    def make(self, value, name="snapshot.pickle", form="pickle", protocol=4):
        path = self.path(name)
        memory_snapshot.write(value, path, form, protocol)
        return path

    def problems(self, database):
        return self.rows(database, "SELECT code, message FROM import_log WHERE severity = 'error' ORDER BY id")

    def check(self, path, database):
        """The rows are what the independent program counts."""
        snapshot = memory.load(path)
        devices = self.rows(database, """SELECT device, base_bytes, peak_bytes, peak_ordinal, end_bytes, end_reserved_bytes FROM memory_snapshot
            ORDER BY device""")
        self.assertTrue(devices)
        for device, base, peak, ordinal, end, reserved in devices:
            counted = memory.Counted(snapshot, device)
            self.assertEqual((counted.base, counted.peak, counted.ordinal, counted.end, counted.reserved), (base, peak, ordinal, end, reserved or 0))
            stacks = collections.defaultdict(list)
            for allocation, file, line, name in self.rows(database, AT_PEAK, device):
                stacks[allocation].append((file, line, name))
            mine = collections.Counter((size, tuple(stacks[i])) for i, size in self.rows(
                database, "SELECT id, size_bytes FROM memory_peak WHERE device = ?", device))
            theirs = collections.Counter((size, tuple(memory.outermost_first(frames))) for size, frames, _ in counted.at_peak)
            self.assertEqual(theirs, mine)

    def test_public_snapshots(self):
        names = [n for n in ("snapshot_a.pickle", "snapshot_b.pickle") if os.path.exists(os.path.join(PUBLIC, n))]
        if not names:
            self.skipTest("no public snapshots here")
        for name in names:
            database = self.ingest(os.path.join(PUBLIC, name), name=name + ".db")
            self.check(os.path.join(PUBLIC, name), database)
            self.assertEqual([], self.problems(database))

    def test_rows_are_those_of_the_file(self):
        allocator = memory_snapshot.training(3000, oom=True)
        snapshot = memory_snapshot.snapshot([allocator], annotations=[{"stage": "START", "name": "step 1", "device": 0, "time_us": allocator.time_us}])
        path = self.make(snapshot)
        database = self.ingest(path)
        self.assertEqual([], self.problems(database))
        self.check(path, database)
        events = self.rows(database, """SELECT action, coalesce(address, device_free_bytes), size_bytes, stream, time_ns / 1000 FROM memory_event
            ORDER BY ordinal""")
        self.assertEqual([[e["action"], e.get("addr", e.get("device_free")), e["size"], e["stream"], e["time_us"]]
                          for e in snapshot["device_traces"][0]], events)
        contexts = self.rows(database, """SELECT coalesce(s.compile_context, '') FROM memory_event e LEFT JOIN memory_site s ON s.id = e.site_id
            ORDER BY e.ordinal""")
        self.assertEqual([[e["compile_context"]] for e in snapshot["device_traces"][0]], contexts)
        self.assertEqual([[s["address"], s["total_size"], s["allocated_size"], s["active_size"], s["requested_size"], s["segment_type"], "(0, 0)", 0]
                          for s in snapshot["segments"]], self.rows(database, """SELECT address, total_bytes, allocated_bytes, active_bytes,
                              requested_bytes, segment_type, pool, is_expandable FROM memory_segment ORDER BY id"""))
        self.assertEqual([[b["address"], b["size"], b["requested_size"], b["state"]] for s in snapshot["segments"] for b in s["blocks"]],
                         self.rows(database, "SELECT address, size_bytes, requested_bytes, state FROM memory_block ORDER BY id"))
        self.assertEqual([["START", "step 1", 0]], self.rows(database, "SELECT stage, name, device FROM memory_annotation_row"))
        self.assertEqual([["oom", 1]], self.rows(database, "SELECT reason, oom_ordinal IS NOT NULL FROM memory_snapshot"))

    def test_every_form_says_the_same(self):
        first = memory_snapshot.training(400, seed=2)
        third = memory_snapshot.training(300, seed=3, device=2)
        address = third.alloc(5000, [], stream=77)
        third.free(address, [], pending=True)
        snapshot = memory_snapshot.snapshot([first, third])
        expected = None
        for name, form, protocol in [(f"protocol_{p}", "pickle", p) for p in range(6)] + [("json", "json", 0), ("cpp", "cpp", 0)]:
            with self.subTest(name):
                path = self.make(snapshot, name + (".json" if form == "json" else ".pickle"), form, protocol)
                database = self.ingest(path, name=name + ".db")
                self.assertEqual([], self.problems(database))
                self.check(path, database)
                mine = [self.rows(database, f"SELECT * FROM {table}") for table in (
                    "memory_event_row", "memory_allocation_row", "memory_site_row", "memory_block_row", "stack_frame")]
                pools = self.rows(database, "SELECT device, total_bytes FROM memory_segment ORDER BY id")
                expected = expected or (mine, pools)
                self.assertEqual(expected, (mine, pools))
        self.assertEqual([[0], [2]], self.rows(database, "SELECT device FROM memory_snapshot ORDER BY device"))

    def test_a_ring_that_has_lost_its_first_events(self):
        for last in (1, 37, 500):
            allocator = memory_snapshot.training(2000, seed=last)
            path = self.make(memory_snapshot.snapshot([allocator], last=last))
            database = self.ingest(path, name=f"{last}.db")
            self.check(path, database)
            self.assertEqual([], self.problems(database))

    def test_segments_that_the_events_do_not_hold(self):
        """The allocator gave back a segment, and its events were not recorded: no damage, but what it held at the peak is unknown."""
        allocator = memory_snapshot.training(300)
        allocator.free(allocator.alloc(500 << 20, []), [])
        allocator.segments = [s for s in allocator.segments if s["size"] < 500 << 20]
        allocator.events = [e for e in allocator.events if not e["action"].startswith("segment_")]
        path = self.make(memory_snapshot.snapshot([allocator]))
        database = self.ingest(path)
        self.check(path, database)
        self.assertEqual([], self.problems(database))
        self.assertEqual([["unrecorded_segments"]], self.rows(database, "SELECT code FROM import_log"))
        self.assertEqual([[None, None]], self.rows(database, "SELECT reserved_at_peak_bytes, peak_reserved_bytes FROM memory_snapshot"))
        self.assertIn("what the allocator held then was not recorded", self.tlparse("memory", database).stdout)

    def test_a_snapshot_without_history_has_its_blocks(self):
        snapshot = memory_snapshot.snapshot([memory_snapshot.training(300)])
        snapshot["device_traces"] = [[]]
        path = self.make(snapshot)
        database = self.ingest(path)
        self.check(path, database)
        self.assertEqual([[-1, 0]], self.rows(database, "SELECT peak_ordinal, event_count FROM memory_snapshot"))

    def test_a_cut_file_keeps_what_came_before(self):
        snapshot = memory_snapshot.snapshot([memory_snapshot.training(500)])
        for form in ("pickle", "json", "cpp"):
            path = self.make(snapshot, "whole." + form, form)
            with open(path, "rb") as file:
                data = file.read()
            with open(path, "wb") as file:
                file.write(data[:len(data) * 3 // 4])
            database = self.ingest(path, name=form + ".db")
            self.assertEqual(["cut_profile"], [code for code, _ in self.problems(database)][-1:], form)
            (events,), = self.rows(database, "SELECT count(*) FROM memory_event")
            self.assertGreater(events, 100)
            self.assertEqual(events, int(self.problems(database)[-1][1].split("; ")[1].split()[0]))

    def test_what_is_no_plain_value_is_refused(self):
        snapshot = memory_snapshot.snapshot([memory_snapshot.training(300)])
        snapshot["device_traces"][0][100]["user_metadata"] = os.system
        path = self.make(snapshot)
        database = self.ingest(path)
        (code, message), = self.problems(database)[-1:]
        self.assertEqual("refused_pickle", code)
        self.assertIn("nothing was executed", message)
        self.assertEqual([[100]], self.rows(database, "SELECT count(*) FROM memory_event"))

    def test_pinned_memory_of_the_host(self):
        """Its events are one list; it belongs to no device. Metadata that is attached to a block changes none of its bytes."""
        pinned = memory_snapshot.PinnedAllocator()
        frames = [memory_snapshot.frame("pin", "/job/data.py", 40)]
        kept = [pinned.alloc(size << 20, frames) for size in (3, 5, 8)]
        pinned.free(kept[0], frames)
        allocator = memory_snapshot.training(300)
        allocator.event("annotate", allocator.events[0]["addr"], 64, [], user="loss")
        for form in ("pickle", "json", "cpp"):
            snapshot = memory_snapshot.snapshot([allocator], pinned=pinned)
            path = self.make(snapshot, "pinned." + form, form)
            database = self.ingest(path, name=f"pinned.{form}.db")
            self.assertEqual([], self.rows(database, "SELECT code, message FROM import_log"))
            self.assertEqual([["host_traces", 20 << 20, 16 << 20]], self.rows(
                database, "SELECT source, peak_bytes, end_bytes FROM memory_snapshot WHERE device IS NULL"))
            self.assertEqual([["annotate", '{"user":"loss"}']], self.rows(
                database, "SELECT action, extra FROM memory_event WHERE device = 0 ORDER BY ordinal DESC LIMIT 1"))
            counted = memory.Counted(snapshot, 0)
            self.assertEqual([[counted.peak, counted.end]], self.rows(database, "SELECT peak_bytes, end_bytes FROM memory_snapshot WHERE device = 0"))
            self.assertIn("pinned memory: 21.0 MB alive at the peak", self.tlparse("memory", database).stdout)
        snapshot["host_segments"] = [{"address": address, "size": 4096, "total_size": 4096, "state": "active_allocated", "frames": frames}
                                     for address in (1, 2)]
        database = self.ingest(self.make(snapshot, "segments.pickle"), name="segments.db")
        self.assertEqual([["unknown_profile_event", "2 segments of host_segments are not read: pinned memory that lives since before the "
                           "first event of host_traces is not counted"]], self.rows(database, "SELECT code, message FROM import_log"))
        self.assertEqual([[counted.reserved]], self.rows(database, "SELECT end_reserved_bytes FROM memory_snapshot WHERE device = 0"))

    def test_odd_values_are_said(self):
        snapshot = memory_snapshot.snapshot([memory_snapshot.training(300)])
        events = snapshot["device_traces"][0]
        events[50]["size"] = -1
        events[60]["size"] = "many"
        events[70]["size"] = 1 << 63
        events[80]["action"] = "teleport"
        events[81]["new_member"] = {"a": [1, "x\0y\u2028"]}
        database = self.ingest(self.make(snapshot))
        messages = " ".join(message for _, message in self.rows(database, "SELECT code, message FROM import_log"))
        self.assertIn("3 rows were left out: an event, block or segment without a possible size", messages)
        self.assertIn("1 event has an action of an unknown name", messages)
        self.assertEqual([['{"action":"teleport"}'], ['{"new_member":{"a":[1,"x\ufffdy\u2028"]}}']],
                         self.rows(database, "SELECT extra FROM memory_event WHERE extra IS NOT NULL ORDER BY ordinal"))

    def test_memory_does_not_grow_with_events(self):
        value = memory_snapshot.snapshot([memory_snapshot.training(60_000)])
        path = self.make(value)
        del value
        most = []
        for limit in (self.make(memory_snapshot.snapshot([memory_snapshot.training(6_000)]), "small.pickle"), path):
            process = subprocess.run([sys.executable, "-c", """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)""", profiles.harness.TLPARSE, limit, "-o", self.path(f"out{len(most)}")],
                                     stdout=subprocess.PIPE, check=True, text=True)
            most.append(int(process.stdout))
        self.assertLess(most[1], most[0] + (60 << 10))


if __name__ == "__main__":
    unittest.main()
