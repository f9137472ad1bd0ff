#!/usr/bin/env python3
"""tlparse cost against sums of its own reading of the profile: shares are of all kernel time, a window holds one population."""

import gzip
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import costs  # noqa: E402
import profiles  # noqa: E402
from profiles import harness  # noqa: E402

CASES = os.path.join(profiles.ROOT, "fixtures", "inputs")


def ns(us):
    return round(float(us) * 1000)


def union(spans, begin, end):
    total, reached = 0, begin
    for start, stop in sorted(spans):
        start, stop = max(start, reached), min(stop, end)
        if start < stop:
            total += stop - start
            reached = stop
    return total


def reckon(events):
    """What a profile's steps enqueued, and for each device its window, kernels and busy time: from the events alone."""
    events = [event for event in events if event.get("ph") == "X"]
    span = lambda event: (ns(event["ts"]), ns(event["ts"]) + ns(event.get("dur", 0)))  # noqa: E731
    of = lambda *names: [event for event in events if event.get("cat") in names]  # noqa: E731
    steps = [span(event) for event in of("user_annotation") if event["name"].startswith("ProfilerStep#")]
    everything = [span(event) for event in events]
    begin = min(start for start, _ in steps or everything)
    end = max(stop for _, stop in steps or everything) + (0 if steps else 1)
    launches = {event["args"]["correlation"]: ns(event["ts"]) for event in of("cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime")
                if "correlation" in event.get("args", {})}
    kernels = of("kernel")
    counted = [ns(kernel["dur"]) for kernel in kernels
               if not steps or begin <= launches.get(kernel["args"].get("correlation"), ns(kernel["ts"])) < end]
    devices = {}
    for device in sorted({event["args"]["device"] for event in kernels + of("gpu_memcpy", "gpu_memset")}):
        own = [span(event) for event in of("gpu_user_annotation") if event["name"].startswith("ProfilerStep#") and int(event["pid"]) == device]
        first, last = (min(s for s, _ in own), max(e for _, e in own)) if own else (begin, end)
        inside = lambda event: event["args"]["device"] == device and span(event)[0] < last and span(event)[1] > first  # noqa: B023, E731
        busy = union([span(event) for event in kernels + of("gpu_memcpy", "gpu_memset") if inside(event)], first, last)
        devices[device] = (sum(map(inside, kernels)), bool(own), (last - first) / 1e3, busy / 1e3)
    return sum(counted) / 1e3, max(counted, default=0) / 1e3, devices


class CostSums(costs.CostTest):
    def ingest(self, path):
        if os.path.exists(self.path("x.db")):
            os.unlink(self.path("x.db"))
        self.tlparse(path, "--db", "x.db", "--db-only")

    def check(self, path):
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
            events = json.load(file)["traceEvents"]
        enqueued, longest, devices = reckon(events)
        self.ingest(path)
        for by in ("line", "kernel", "op"):
            answer = self.ask("--by", by)
            self.assertAlmostEqual(enqueued, sum(row["share_us"] for row in answer["rows"]), delta=0.01, msg=by)
            self.assertAlmostEqual(1, sum(row["share"] for row in answer["rows"]), delta=1e-6, msg=by)
            if by == "kernel":
                self.assertAlmostEqual(longest, max((row["longest_us"] for row in answer["rows"]), default=0), delta=1e-3)
        profile, = answer["profiles"]
        self.assertAlmostEqual(enqueued, profile["kernel_us"], delta=0.01)
        parts = ("device_in_calls_us", "device_outside_us", "device_unknown_us", "device_replay_us")
        self.assertAlmostEqual(enqueued, sum(profile[part] for part in parts), delta=0.01)
        self.assertEqual(sorted(devices), [device["device"] for device in profile["devices"]])
        for device in profile["devices"]:
            kernels, own, window, busy = devices[device["device"]]
            self.assertEqual((kernels, own), (device["kernels"], device["has_own_steps"]))
            self.assertAlmostEqual(window, device["window_us"], delta=2 if profile["steps"] == 0 else 0.01)
            self.assertAlmostEqual(busy, device["busy_us"], delta=0.01)
            self.assertAlmostEqual(device["window_us"], device["busy_us"] + device["idle_us"], delta=0.01)
        return answer

    @unittest.skipUnless(os.path.isdir(profiles.GPU), "no public GPU profiles here")
    def test_public_profiles(self):
        for path in profiles.profiles_below(profiles.GPU):
            with self.subTest(os.path.basename(path)):
                self.check(path)

    def test_the_replay_of_a_graph_is_part_of_the_whole(self):
        answer = self.check(os.path.join(CASES, "op_share_graph", "trace.json"))
        self.assertEqual([(None, "in the replay of a CUDA graph", 10_000), ("aten::copy_", None, 10)],
                         [(row["name"], row["join_note"], row["share_us"]) for row in answer["rows"]])
        self.assertEqual((10, 10_000), tuple(answer["profiles"][0][part] for part in ("device_outside_us", "device_replay_us")))
        text = self.tlparse("cost", "x.db", "--by", "op").stdout
        self.assertIn("share: of 10.0 ms kernel time", text)
        self.assertRegex(text, r"99\.9 % +10\.0 ms .*\(in the replay of a CUDA graph\)")
        self.assertIn("in replays of CUDA graphs", text)
        self.assertRegex(text, r"10\.0 ms \(99\.9 %\) of it ran from CUDA graphs, in 1 replay\n")
        self.assertEqual({"in the replay of a CUDA graph", "it ran outside any graph call"}, {row["join_note"] for row in self.ask("--by", "line")["rows"]})
        # In the call of a compiled graph the same is part of what calls enqueued.
        with open(os.path.join(CASES, "op_share_graph", "trace.json"), encoding="utf-8") as file:
            trace = json.load(file)
        trace["traceEvents"] += [{"ph": "X", "cat": "user_annotation", "name": "## Call CompiledFxGraph fabc ##", "pid": 1, "tid": 1, "ts": 140, "dur": 50},
                                 {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 90, "dur": 50},
                                 {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "pid": 1, "tid": 1, "ts": 140, "dur": 20000}]
        self.write("p.json", json.dumps(trace).encode())
        profile, = self.check(self.path("p.json"))["profiles"]
        self.assertEqual([profile[part] for part in ("device_in_calls_us", "device_replay_us", "device_in_graphs_us", "replays", "steps")],
                         [10_000, 0, 10_000, 1, 2])
        self.assertIn("in 1 replay (0.5 a step)", self.tlparse("cost", "x.db").stdout)
        profile, = self.ask("--by", "kernel", "--steps", "1-1")["profiles"]
        self.assertEqual([profile["device_in_graphs_us"], profile["replays"]], [0, 0])

    def test_steps_of_a_device_that_runs_behind(self):
        path = os.path.join(CASES, "async_steps", "trace.json")
        answer = self.check(path)
        self.assertEqual([{"device": 0, "kernels": 3, "has_own_steps": True, "window_us": 30_000, "busy_us": 30_000, "idle_us": 0}],
                         answer["profiles"][0]["devices"])
        text = self.tlparse("cost", "x.db").stdout
        self.assertIn("kernels that these steps enqueued: 30.0 ms", text)
        self.assertRegex(text, r"device 0: 3 kernels in its own steps \(30.0 ms\), busy \(kernels, copies\) 30.0 ms, idle 0\S* .s \(0.0 %\)")
        self.assertIn("device 0: 1 kernel in its own steps", self.tlparse("cost", "x.db", "--steps", "2-2").stdout)
        # Without them: what ran while the steps did, beside what they enqueued.
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        trace["traceEvents"] = [event for event in trace["traceEvents"] if event["cat"] != "gpu_user_annotation"]
        self.write("p.json", json.dumps(trace).encode())
        self.check(self.path("p.json"))
        text = self.tlparse("cost", "x.db", "--steps", "2-2").stdout
        self.assertIn("device 0: 1 kernel while the steps ran on the CPU (1.0 ms), busy (kernels, copies) 1.0 ms", text)

    def test_other_accelerators_are_devices(self):
        with open(os.path.join(CASES, "async_steps", "trace.json"), encoding="utf-8") as file:
            trace = json.load(file)
        for category, args, code in (("mtia_ccp_events", {"device": 0, "stream": 1}, []), ("hpu_op", {"device": 0}, []),
                                     ("new_chip_op", {"device": 0, "stream": 3}, ["unknown_profile_event"])):
            events = [dict(event) for event in trace["traceEvents"] if event["cat"] == "user_annotation"]
            events.append({"ph": "X", "cat": category, "name": "matmul", "pid": 0, "tid": 7, "ts": 100, "dur": 400, "args": args})
            self.write("p.json", json.dumps(dict(trace, traceEvents=events)).encode())
            self.ingest(self.path("p.json"))
            answer = self.ask("--by", "kernel")
            self.assertEqual(([("matmul", 400)], [1]), ([(row["name"], row["share_us"]) for row in answer["rows"]],
                                                        [device["kernels"] for device in answer["profiles"][0]["devices"]]))
            self.assertEqual(code, [code for code, in harness.rows(self.path("x.db"), "SELECT code FROM import_log WHERE code LIKE 'unknown%'")])

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_a_wait_for_a_collective_is_no_kernel(self):
        path = profiles.recorded("p_ddp", "steps.rank0.pt.trace.json.zst")
        events = profiles.slices(profiles.trace(path)["traceEvents"], "cpu_op")
        waits = sum(float(event["dur"]) for event in events if event["name"].endswith("::wait_tensor"))
        self.ingest(os.path.dirname(path))
        answer = self.ask("--by", "kernel", "--rank", "0")
        self.assertEqual([], [row["name"] for row in answer["rows"] if "wait_tensor" in (row["name"] or "")])
        if waits:
            self.assertAlmostEqual(waits, answer["profiles"][0]["wait_us"], delta=1)

    def test_collectives_of_symmetric_memory(self):
        events = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5, "args": {"External id": i}}
                  for i, name in enumerate(("symm_mem::one_shot_all_reduce", "symm_mem::memset32_", "aten::mm"))]
        self.write("p.json", json.dumps({"schemaVersion": 1, "traceEvents": events}).encode())
        self.ingest(self.path("p.json"))
        self.assertEqual([["symm_mem::one_shot_all_reduce"]], harness.rows(self.path("x.db"), "SELECT op FROM collective_run"))


if __name__ == "__main__":
    unittest.main()
