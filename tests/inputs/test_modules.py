#!/usr/bin/env python3
"""Modules of profiles: their paths, and the kernels that each enqueued, as another program counts them."""

import json
import os
import unittest

import profiles
from profiles import harness


def moments(events):
    """Where and when each device kernel was enqueued: by its launch, else by the op of its External id."""
    launches, ops = {}, {}
    for event in profiles.slices(events, "cuda_runtime", "cuda_driver"):
        name, correlation = event["name"], event["args"].get("correlation")
        if correlation is not None and any(word in name for word in ("Launch", "launch", "Memcpy", "Memset", "memcpy", "memset")):
            launches.setdefault(correlation, event)
    for event in profiles.slices(events, "cpu_op"):
        if "External id" in event.get("args", {}):
            ops.setdefault(event["args"]["External id"], event)
    for kernel in profiles.slices(events, "kernel"):
        yield kernel, launches.get(kernel["args"].get("correlation")) or ops.get(kernel["args"].get("External id"))


def modules_at(modules, launch):
    """The modules that are open, outermost first."""
    if launch is None:
        return []
    here = [m for m in modules if (m["pid"], m["tid"]) == (launch["pid"], launch["tid"]) and m["ts"] <= launch["ts"] < m["ts"] + m["dur"]]
    return sorted(here, key=lambda m: (m["ts"], -m["dur"]))


def path_of(chain):
    return "/".join(m["name"].removeprefix("nn.Module: ") for m in chain) or None


def count(events):
    """Kernels and their time by path, all that were enqueued in the steps (or in the whole profile)."""
    modules = [e for e in profiles.slices(events, "python_function") if e["name"].startswith("nn.Module: ")]
    steps = [e for e in profiles.slices(events, "user_annotation") if e["name"].startswith("ProfilerStep#")]
    first = min((e["ts"] for e in steps), default=float("-inf"))
    last = max((e["ts"] + e["dur"] for e in steps), default=float("inf"))
    us, inclusive = {}, {}
    for kernel, launch in moments(events):
        if not first <= (launch or kernel)["ts"] < last:
            continue
        chain = modules_at(modules, launch)
        us[path_of(chain)] = us.get(path_of(chain), 0) + kernel["dur"]
        for depth in range(1, len(chain) + 1):
            path = path_of(chain[:depth])
            inclusive[path] = inclusive.get(path, 0) + kernel["dur"]
    calls = {}
    for module in modules:
        if first <= module["ts"] < last:
            path = path_of(modules_at(modules, module))
            calls[path] = calls.get(path, 0) + 1
    return us, inclusive, calls


class Modules(harness.EndToEnd):
    def ask(self, *arguments):
        answer = json.loads(self.tlparse("cost", "x.db", "--by", "module", "--json", "--top", "100000", *arguments).stdout)
        try:
            import jsonschema
            with open(os.path.join(profiles.ROOT, "schemas", "json", "answers", "cost.schema.json"), encoding="utf-8") as file:
                jsonschema.validate(answer, json.load(file))
        except ImportError:
            pass
        return answer

    def rows(self, sql):
        return harness.rows(self.path("x.db"), sql)

    def check(self, events, answer):
        us, inclusive, calls = count(events)
        found = {row["name"]: row for row in answer["rows"]}
        self.assertEqual({path for path, row in found.items() if row["calls"] > 0}, set(calls))
        self.assertEqual({path: row["calls"] for path, row in found.items() if row["calls"] > 0}, calls)
        for path, row in found.items():
            self.assertAlmostEqual(row["share_us"], us.get(path, 0), delta=0.01, msg=path)
            if path is not None:
                self.assertAlmostEqual(row["inclusive_us"], inclusive.get(path, 0), delta=0.01, msg=path)
        self.assertAlmostEqual(sum(us.values()), sum(row["share_us"] for row in found.values()), delta=0.01)
        self.assertAlmostEqual(answer["profiles"][0]["kernel_us"], sum(us.values()), delta=0.01)
        self.assertAlmostEqual(sum(row["share"] for row in found.values()), 1, delta=1e-9)

    @unittest.skipUnless(os.path.isdir(profiles.GPU), "public profiles are not here")
    def test_public_profiles(self):
        checked = 0
        for path in profiles.profiles_below(profiles.GPU):
            events = profiles.trace(path)["traceEvents"]
            if not any(e["name"].startswith("nn.Module: ") for e in profiles.slices(events, "python_function")):
                continue
            with self.subTest(path):
                self.tlparse(path, "--db", "x.db", "--db-only")
                answer = self.ask()
                self.assertEqual(answer["time"], "kernels")
                self.check(events, answer)
                os.unlink(self.path("x.db"))
                checked += 1
        self.assertGreaterEqual(checked, 4)

    def trace(self, has_device=True):
        """Two steps of Net_0(Block_0(Linear_0), Linear_1): forward on thread 1, backward on thread 2. Built like recorded profiles."""
        events = []

        def add(category, name, ts, dur, tid=1, **args):
            events.append({"ph": "X", "cat": category, "name": name, "pid": 7, "tid": tid, "ts": ts, "dur": dur, "args": args})
        number = 0
        for step in (3, 4):
            at = step * 1000.5
            add("user_annotation", f"ProfilerStep#{step}", at, 1000)
            for name, begin, length in (("Net_0", 10, 400), ("Block_0", 20, 200), ("Linear_0", 40, 100), ("Linear_1", 300, 50)):
                add("python_function", "nn.Module: " + name, at + begin, length, **{"Python id": number, "Python module id": 0})
            add("python_function", "torch/nn/modules/module.py(1): _call_impl", at + 11, 300, **{"Python id": 1})
            for begin, tid in ((45, 1), (110, 1), (150, 1), (230, 1), (310, 1), (700, 2), (45, 2)):
                number += 1
                add("cpu_op", "aten::mm", at + begin, 4, tid, **{"External id": number})
                if has_device:
                    add("cuda_runtime", "cudaLaunchKernel", at + begin + 1, 2, tid, correlation=number, **{"External id": number})
                    events.append({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + begin + 500, "dur": 2.25 ** (number % 5),
                                   "args": {"device": 0, "stream": 7, "correlation": number, "External id": number}})
        return {"schemaVersion": 1, "with_stack": 1, "baseTimeNanoseconds": 0, "traceEvents": events}

    def ingest(self, trace):
        self.write("p.json", json.dumps(trace).encode())
        self.tlparse(self.path("p.json"), "--db", "x.db", "--db-only", "--run", "r")

    def test_where_and_when_a_kernel_was_enqueued(self):
        trace = self.trace()
        self.ingest(trace)
        answer = self.ask()
        self.check(trace["traceEvents"], answer)
        self.assertEqual({row["name"]: row["calls"] for row in answer["rows"]},
                         {"Net_0": 2, "Net_0/Block_0": 2, "Net_0/Block_0/Linear_0": 2, "Net_0/Linear_1": 2, None: 0})
        self.assertEqual({row["name"]: row["cpu_us"] for row in answer["rows"]},
                         {"Net_0": 300, "Net_0/Block_0": 200, "Net_0/Block_0/Linear_0": 200, "Net_0/Linear_1": 100, None: None})
        one = self.ask("--steps", "4")
        self.check([e for e in trace["traceEvents"] if e["name"] != "ProfilerStep#3"], one)
        text = self.tlparse("cost", "x.db", "--by", "module").stdout
        self.assertIn("(no module was open)", text)
        self.assertIn("Net_0/Block_0/Linear_0", text)
        # Only the frames of modules are kept.
        self.assertEqual(self.rows("SELECT count(*) FROM python_frame"), [[8]])
        self.assertEqual(self.rows("SELECT message FROM import_log WHERE code = 'profile_events_left_out'"), [["2 events: python_function, 600.000 us in all"]])
        self.assertEqual(self.rows("SELECT path, calls, cpu_us FROM module_cost WHERE path LIKE '%Linear%' ORDER BY 1"),
                         [["Net_0/Block_0/Linear_0", 2, 200], ["Net_0/Linear_1", 2, 100]])
        self.assertEqual(self.rows("SELECT abs(sum(kernel_us) - (SELECT sum(duration_us) FROM kernel_run)) < 1e-6, sum(kernels) FROM module_cost"), [[1, 14]])
        self.assertEqual(self.rows("SELECT count(*), count(parent_id) FROM module_run"), [[8, 6]])
        # The file replaced by another, and again: the rows of the old one are gone.
        self.ingest(dict(trace, traceEvents=trace["traceEvents"][: len(trace["traceEvents"]) // 2]))
        self.assertEqual(self.rows("SELECT count(*) FROM module_run"), [[4]])
        self.assertEqual(self.rows("PRAGMA foreign_key_check"), [])

    def test_without_a_device_modules_have_the_time_of_the_cpu(self):
        self.ingest(self.trace(has_device=False))
        answer = self.ask()
        self.assertEqual(answer["time"], "modules_on_cpu")
        self.assertEqual([(row["name"], row["share_us"], row["inclusive_us"], row["device_us"]) for row in answer["rows"]],
                         [("Net_0", 300, 800, None), ("Net_0/Block_0", 200, 400, None), ("Net_0/Block_0/Linear_0", 200, 200, None), ("Net_0/Linear_1", 100, 100, None)])
        self.assertRegex(self.tlparse("cost", "x.db", "--by", "module").stdout, r"share +CPU time +with modules inside +calls +module")

    def test_profiles_without_modules_are_told_how_to_get_them(self):
        trace = self.trace()
        trace["traceEvents"] = [e for e in trace["traceEvents"] if e["cat"] != "python_function"]
        self.ingest(trace)
        done = self.tlparse("cost", "x.db", "--by", "module", expect=2)
        self.assert_one_line_of_complaint(done)
        self.assertIn("torch.profiler.profile(with_stack=True)", done.stderr)
        self.assertEqual(self.rows("SELECT count(*) FROM module_cost"), [[0]])

    def test_hostile_modules(self):
        # Deeper than paths go, names with a separator, overlapping edges, no duration.
        def frame(name, ts, dur):
            return {"ph": "X", "cat": "python_function", "name": "nn.Module: " + name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {}}
        events = [frame(f"M_{depth}", depth, 100_000 - 2 * depth) for depth in range(3000)]
        events += [frame("a/b", 200_000, 10), frame("late", 200_005, 10), frame("", 200_006, 0), frame("\u00e4" * 300, 300_000, 5)]
        events.append({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 1, "args": {"device": 0, "stream": 7}})
        self.ingest({"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": events})
        answer = self.ask()
        self.assertIn("a_b/late", {row["name"] for row in answer["rows"]})
        self.assertLess(max(len(row["name"] or "") for row in answer["rows"]), 1000)
        self.assertEqual(sum(row["calls"] for row in answer["rows"]), len(events) - 1)
        self.assertTrue(all(row["cpu_us"] is None or row["cpu_us"] >= 0 for row in answer["rows"]))


if __name__ == "__main__":
    unittest.main()
