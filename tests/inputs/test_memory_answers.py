#!/usr/bin/env python3
"""tlparse memory: who holds the bytes, each sum as another program counts it."""

import collections
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import costs  # noqa: E402
import memory  # noqa: E402
import profiles  # noqa: E402
sys.path.insert(0, os.path.join(profiles.ROOT, "tests", "tools"))
import memory_snapshot  # noqa: E402


def line_of(frames):
    """The innermost Python line outside PyTorch."""
    for one in frames or []:
        if one["filename"].endswith(".py") and "/torch/" not in one["filename"]:
            return one["filename"], one["line"]
    return None, None


def category_of(frames, context):
    if (context or "").startswith("Torch-Compiled Region: "):
        return "compiled"
    for part, category in (("/torch/optim/", "optimizer"), ("/torch/autograd/", "backward")):
        if any(part in one["filename"] for one in frames or []):
            return category
    for one in frames or []:
        if "/torch/nn/modules/" in one["filename"]:
            return "parameter" if one["name"] == "__init__" else "forward"
    return "other" if frames else "unknown"


class Answers(costs.CostTest, profiles.InputTest):
    def load(self, *allocators, last=None):
        path = self.path("snapshot.pickle")
        self.snapshot = memory_snapshot.snapshot(allocators, last=last)
        memory_snapshot.write(self.snapshot, path)
        return self.ingest(path)

    def memory(self, database, *arguments):
        return self.checked(json.loads(self.tlparse("memory", database, "--json", "--top", "100000", *arguments).stdout), "memory.schema.json")

    def test_what_could_not_be_read_is_said(self):
        self.assertEqual([], self.memory(self.load(memory_snapshot.training(500)))["notes"])
        with open(self.path("snapshot.pickle"), "rb") as file:
            whole = file.read()
        database = self.ingest(self.write("cut.pickle", whole[:len(whole) * 9 // 10]), name="cut.db")
        said = "the pickle ends before its end mark; "
        self.assertTrue(any(one.startswith("not all of ") and said in one and one.endswith("counts as alive from the beginning")
                            for one in self.memory(database)["notes"]))
        self.assertIn(said, self.tlparse("memory", database).stdout)

    def test_rows_sum_to_what_is_alive(self):
        for last in (None, 200):
            database = self.load(memory_snapshot.training(3000, oom=True), memory_snapshot.training(900, seed=4, device=1), last=last)
            for at, counted in (("peak", lambda c: c.at_peak), ("end", lambda c: c.at_end)):
                for number in (0, 1):
                    alive = counted(memory.Counted(self.snapshot, number))
                    lines, categories, graphs = (collections.Counter() for _ in range(3))
                    for size, frames, context in alive:
                        lines[line_of(frames)] += size
                        categories[category_of(frames, context)] += size
                        graphs[(context or "").removeprefix("Torch-Compiled Region: ") or None] += size
                    for by, key, expected in (("line", lambda r: (r["file"], r["line"]), lines), ("category", lambda r: r["category"], categories),
                                              ("graph", lambda r: r["label"], graphs), ("stack", lambda r: (r["file"], r["line"]), lines)):
                        with self.subTest(last=last, at=at, device=number, by=by):
                            device = self.memory(database, "--by", by, "--at", at)["devices"][number]
                            mine = collections.Counter()
                            for row in device["rows"]:
                                mine[key(row)] += row["size_bytes"]
                            self.assertEqual(expected, mine)
                            self.assertEqual(device["alive_bytes"], sum(size for size, _, _ in alive))
                            self.assertEqual(device["row_count"], len(device["rows"]))
                            self.assertAlmostEqual(1, sum(row["share"] for row in device["rows"]))
                    self.assertEqual(sum(size for size, frames, _ in alive if line_of(frames)[0]), device["line_bytes"])

    def test_what_the_allocator_held(self):
        allocator = memory_snapshot.training(2000)
        spare = allocator.alloc(100 << 20, [])
        allocator.free(spare, [])
        device, = self.memory(self.load(allocator))["devices"]
        segments = self.snapshot["segments"]
        active = [b for s in segments for b in s["blocks"] if b["state"] != "inactive"]
        unused = [s for s in segments if all(b["state"] == "inactive" for b in s["blocks"])]
        self.assertTrue(unused)
        self.assertEqual({"reserved_bytes": sum(s["total_size"] for s in segments), "requested_bytes": sum(b["requested_size"] for b in active),
                          "rounding_bytes": sum(b["size"] - b["requested_size"] for b in active),
                          "free_bytes": sum(s["total_size"] for s in unused),
                          "fragmented_bytes": sum(b["size"] for s in segments if s not in unused for b in s["blocks"] if b["state"] == "inactive"),
                          "largest_free_bytes": 100 << 20}, device["segments"])

    def test_the_allocation_that_failed(self):
        database = self.load(memory_snapshot.training(1000, oom=True))
        device, = self.memory(database, "--at", "oom")["devices"]
        self.assertEqual((1 << 30, 300 << 20, "/job/model.py", 31), tuple(device["failed"][k] for k in ("size_bytes", "device_free_bytes", "file", "line")))
        self.assertEqual(device["alive_bytes"], memory.Counted(self.snapshot, 0).end)
        text = self.tlparse("memory", database, "--at", "oom").stdout
        self.assertIn("an allocation of 1.1 GB failed at /job/model.py:31: the device had 314.6 MB free", text)

    def test_what_was_freed_after_the_peak(self):
        """Freed before the next allocation: the independent count frees the same blocks before the peak's allocation, and looks for the peak."""
        for seed in range(1, 5):
            database = self.load(memory_snapshot.training(1500, seed=seed))
            device, = self.memory(database)["devices"]
            events = self.snapshot["device_traces"][0]
            peak = memory.Counted(self.snapshot, 0).ordinal
            following = next((i for i in range(peak + 1, len(events)) if events[i]["action"] == "alloc"), len(events))
            before = {e["addr"] for e in events[:peak] if e["action"] == "alloc"} - {events[peak]["addr"]}
            freed = [e for e in events[peak + 1:following] if e["action"] == "free_completed" and e["addr"] in before]
            self.assertEqual(sum(e["size"] for e in freed), device["freed"]["size_bytes"])
            self.assertEqual(device["freed"]["size_bytes"], sum(row["size_bytes"] for row in device["freed"]["rows"]))
            moved = [e for i, e in enumerate(events) if not (peak < i < following and e in freed)]
            moved[peak:peak] = freed
            reordered = dict(self.snapshot, device_traces=[moved])
            self.assertEqual(memory.Counted(reordered, 0).peak, device["freed"]["lower_peak_bytes"])
            self.assertIsNone(self.memory(database, "--at", "end")["devices"][0]["freed"])

    def test_a_reorder_that_would_lower_the_peak(self):
        allocator = memory_snapshot.Allocator()
        kept = allocator.alloc(50 << 20, [memory_snapshot.frame("f", "/job/a.py", 3)])
        allocator.alloc(10 << 20, [])
        allocator.alloc(20 << 20, [])
        allocator.free(kept, [])
        allocator.alloc(1 << 20, [])
        text = self.tlparse("memory", self.load(allocator)).stdout
        self.assertIn("freed before the next allocation: 52.4 MB (62.5 %): 52.4 MB of /job/a.py:3; freed before the allocation that made the peak (if "
                      "that does not read it), the peak would be 62.9 MB", text)

    def test_steps(self):
        for last in (None, 300):
            database = self.load(memory_snapshot.training(0, leak=5000, steps=9), last=last)
            device, = self.memory(database, "--at", "end")["devices"]
            first_us = self.snapshot["device_traces"][0][0]["time_us"]
            ends = {int(one["name"].split("#")[1]): one["time_us"] for one in self.snapshot["external_annotations"]
                    if one["stage"] == "END" and one["time_us"] >= first_us}
            ends.pop(8)  # after the last event: the recording does not hold it
            counted = {number: memory.Counted(self.snapshot, 0, until_us) for number, until_us in ends.items()}
            self.assertEqual([(number, ends[number], one.end) for number, one in counted.items()],
                             [(one["step"], one["end_us"], one["alive_bytes"]) for one in device["steps"]])
            for number, one in counted.items():
                lines = collections.Counter()
                for size, frames, _ in one.at_end:
                    lines[line_of(frames)] += size
                after, = self.memory(database, "--at", str(number))["devices"]
                self.assertEqual(lines, collections.Counter({(row["file"], row["line"]): row["size_bytes"] for row in after["rows"]}))
            if last is None:
                self.assertEqual(5, device["growing_steps"])
                growth, = device["growth"]
                self.assertEqual(("/job/metrics.py", 7, [5000 * n for n in range(3, 9)]), (growth["file"], growth["line"], growth["alive_bytes"]))
                self.assertIn("grew in each of the last 5 steps, by 5.0 kB a step: /job/metrics.py:7, now 40.0 kB",
                              self.tlparse("memory", database).stdout)
        self.assertIn("do not hold the end of step 77", self.tlparse("memory", database, "--at", "77").stdout)
        self.assertIn("--at takes peak, oom, end, the number of a step or a time", self.tlparse("memory", database, "--at", "3x", expect=2).stderr)

    def compare(self, a, b, *arguments):
        """The paths of two snapshots, or of folders."""
        answer = self.checked(json.loads(self.tlparse("diff", a, b, "--json", *arguments).stdout), "diff.schema.json")
        return answer["memory"]

    def test_diff_names_what_holds_more(self):
        held = []
        for name, made in (("a.pickle", memory_snapshot.training(3000, leak=100000)), ("b.pickle", memory_snapshot.training(3000, leak=300000))):
            snapshot = memory_snapshot.snapshot([made])
            lines = collections.Counter()
            for size, frames, _ in memory.Counted(snapshot, 0).at_peak:
                lines[line_of(frames)] += size
            if name == "b.pickle":  # the line has moved
                frames = {id(frame): frame for event in snapshot["device_traces"][0] for frame in event.get("frames", [])}
                for frame in frames.values():
                    frame["line"] += 100 if frame["filename"].endswith("metrics.py") else 0
            memory_snapshot.write(snapshot, self.path(name))
            held.append(lines)
        answer = self.compare(self.path("a.pickle"), self.path("b.pickle"))
        self.assertEqual([answer["a_peak_bytes"], answer["b_peak_bytes"]], [sum(lines.values()) for lines in held])
        rows = {(row["file"], row["line"]): row for row in answer["changes"]}
        leak = next(key for key in held[1] if key[0].endswith("metrics.py"))
        moved = rows.pop((leak[0], leak[1] + 100))
        self.assertEqual([moved["a_line"], moved["a_bytes"], moved["b_bytes"]], [leak[1], held[0].pop(leak), held[1].pop(leak)])
        self.assertEqual({key: (row["a_bytes"], row["b_bytes"], row["a_line"]) for key, row in rows.items()},
                         {key: (held[0][key], held[1][key], None) for key in {*held[0], *held[1]}})
        growth = [row["b_bytes"] - row["a_bytes"] for row in answer["changes"]]
        self.assertEqual(growth, sorted(growth, reverse=True))
        self.assertEqual(answer["changes"][0], moved)
        text = self.tlparse("diff", self.path("a.pickle"), self.path("b.pickle")).stdout
        self.assertRegex(text, r"metrics\.py:%d \(line %d in a\) append\n" % (leak[1] + 100, leak[1]))
        same = self.tlparse("diff", self.path("a.pickle"), self.path("a.pickle")).stdout
        self.assertIn("the same lines hold the same bytes", same)

    def test_diff_of_memory_compares_ranks_of_one_number(self):
        for side, sizes in (("a", {0: 900, 1: 900}), ("b", {0: 900, 1: 3000})):
            os.mkdir(self.path(side))
            for rank, count in sizes.items():
                memory_snapshot.write(memory_snapshot.snapshot([memory_snapshot.training(count, leak=300000)]), self.path(side, "memory_rank_%d.pickle" % rank))
        answer = self.compare(self.path("a"), self.path("b"))
        self.assertEqual([answer["a_rank"], answer["b_rank"], answer["device_count"]], [1, 1, 2])
        self.assertEqual(self.compare(self.path("a"), self.path("b"), "--rank", "0")["device_count"], 1)
        answer = self.compare(self.path("b"), self.path("b"), "--rank", "0", "--rank", "1")
        self.assertEqual([answer["a_rank"], answer["b_rank"], answer["a_peak_bytes"] < answer["b_peak_bytes"]], [0, 1, True])

    def test_without_a_failed_allocation(self):
        database = self.load(memory_snapshot.training(300))
        self.assertEqual([], self.memory(database, "--at", "oom")["devices"])
        self.assertIn("no allocation failed", self.tlparse("memory", database, "--at", "oom").stdout)

    def test_a_run_without_memory(self):
        log = profiles.harness.bundled_logs()[0]
        self.assertIn("no snapshot of the allocator and no profile with memory events", self.tlparse("memory", self.ingest(log), expect=2).stderr)

    def test_hostile_names_are_printed_harmlessly(self):
        allocator = memory_snapshot.Allocator()
        allocator.alloc(5, [memory_snapshot.frame("f\x1b[31m", "/job/\x1b]0;x\x07.py", 1)], "Torch-Compiled Region: \x1b[2J")
        database = self.load(allocator)
        for by in ("line", "graph", "category", "stack"):
            self.assertNotIn("\x1b", self.tlparse("memory", database, "--by", by).stdout)


if __name__ == "__main__":
    unittest.main()
