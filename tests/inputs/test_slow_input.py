#!/usr/bin/env python3
"""Profiles without a log: steps that wait for their loader, and memory that grows with each step of the optimizer."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import profiles  # noqa: E402


def event(category, name, ts, dur, **more):
    return dict({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {}}, **more)


class Profile(profiles.InputTest):
    def findings(self, events, name="p"):
        path = self.write(f"{name}.json", json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": events}).encode())
        return self.answer("findings", self.ingest(path, name=f"{name}.db"))["findings"]


class Loader(Profile):
    def steps(self, wait, work, kind="SingleProcess", count=5, busy=False):
        """Each step waits for its batch, then works; the first batch takes ten times as long."""
        events, at = [], 1000
        for step in range(count):
            own = wait * (10 if step == 0 else 1)
            events.append(event("user_annotation", f"enumerate(DataLoader)#_{kind}DataLoaderIter.__next__", at, own))
            events.append(event("cpu_op", "aten::mm", at + own, work))
            if busy:
                events.append(event("cuda_runtime", "cudaLaunchKernel", at + own, 2, args={"correlation": step}))
                events.append(event("kernel", "gemm", at + own + 1, work + wait - 2, pid=0, tid=7, args={"device": 0, "stream": 7, "correlation": step}))
            at += own + work
        return events

    def test_most_of_a_step_waits_for_its_batch(self):
        finding, = self.findings(self.steps(90_000, 10_000))
        self.assertEqual(("slow_input", "warning", "The program waits for its DataLoader: 90.0 ms of each 100.0 ms (90 %)"),
                         (finding["kind"], finding["severity"], finding["title"]))
        self.assertIn("Medians of the 4 periods from one call of enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", finding["detail"])
        self.assertIn("num_workers=0", finding["detail"])
        finding, = self.findings(self.steps(3_000, 7_000, "MultiProcessing"), "workers")
        self.assertEqual(("note", "The program waits for its DataLoader: 3.0 ms of each 10.0 ms (30 %)"), (finding["severity"], finding["title"]))
        self.assertIn("Its workers make batches more slowly", finding["detail"])

    def test_the_function_that_takes_the_time(self):
        events = [event("python_function", "/u/train.py(30): <module>", 0, 600_000)]
        for one in self.steps(10_000, 1_000):
            events.append(one)
            if one["cat"] == "user_annotation":
                inside = [("/u/data.py(9): __getitem__", 1, 0.9), ("/u/data.py(4): decode", 2, 0.8), ("/usr/lib/python3/dist-packages/torch/utils/data/fetch.py(50): fetch", 0, 1)]
                events += [event("python_function", name, one["ts"] + 10 * depth, one["dur"] * share, args={"CallFrom": "/u/data.py:12"})
                           for name, depth, share in inside]
        finding, = self.findings(events, "stacks")
        self.assertEqual(("/u/data.py", 4), (finding["place"]["file"], finding["place"]["line"]))
        self.assertIn(" 80 % of the time of these calls is in decode, which begins at data.py:4.", finding["detail"])

    def test_a_batch_that_is_ready_takes_some_milliseconds(self):
        """Of a model whose step is as short, that is most: no loader is slow."""
        self.assertEqual(["note"], [one["severity"] for one in self.findings(self.steps(900, 300))])

    def test_a_device_that_works_meanwhile_loses_nothing(self):
        self.assertEqual([], self.findings(self.steps(90_000, 10_000, busy=True)))

    def test_short_waits_and_single_batches_are_no_finding(self):
        self.assertEqual([], self.findings(self.steps(1_000, 9_000), "short"))
        self.assertEqual([], self.findings(self.steps(90_000, 10_000, count=2), "few"))


class Growth(Profile):
    def allocations(self, leaks):
        """Ten steps, which only the optimizer marks; each leaves a block of train.py:12 alive, if it leaks."""
        events = [event("python_function", "train.py(30): <module>", 0, 20_000, args={"CallFrom": "<string>:1"})]
        total = 0

        def memory(ts, address, size):
            nonlocal total
            total += size
            events.append({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": 1, "tid": 1, "ts": ts,
                           "args": {"Total Allocated": total, "Bytes": size, "Device Id": -1, "Device Type": 0, "Addr": address}})

        for step in range(10):
            at = 100 + step * 1000
            events.append(event("python_function", "train.py(10): forward", at, 500, args={"CallFrom": "train.py:31"}))
            events.append(event("python_function", "<built-in method mm>", at + 100, 50, args={"CallFrom": "train.py:12"}))
            events.append(event("cpu_op", "aten::mm", at + 110, 30))
            memory(at + 120, 1 + step, 4096)
            events.append(event("user_annotation", "Optimizer.step#SGD.step", at + 600, 100))
            if not leaks:
                memory(at + 800, 1 + step, -4096)
        return events

    def test_steps_of_the_optimizer_where_none_are_marked(self):
        finding, = self.findings(self.allocations(True), "leak")
        self.assertEqual(("memory_growth", "warning", "Memory of the CPU grows by 4.1 kB a step at train.py:12"),
                         (finding["kind"], finding["severity"], finding["title"]))
        self.assertEqual([], self.findings(self.allocations(False), "healthy"))


if __name__ == "__main__":
    unittest.main()
