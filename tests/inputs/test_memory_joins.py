#!/usr/bin/env python3
"""What allocations belong to: of profiles by what was open on their thread, of snapshots by their stacks and regions, each counted
by another program."""

import collections
import json
import os
import re
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import profiles  # noqa: E402
sys.path.insert(0, os.path.join(profiles.ROOT, "tests", "tools"))
import memory_snapshot  # noqa: E402
from memory_snapshot import frame  # noqa: E402

FIXTURE = os.path.join(profiles.ROOT, "fixtures", "memory")
PROFILE = os.path.join(FIXTURE, "profile.pt.trace.json.zst")
LOG = os.path.join(FIXTURE, "dedicated_log_torch_trace_v3r46rvy.log.zst")
# Of code in which a function is called twice.
REGIONS = os.path.join(profiles.ROOT, "fixtures", "memory_regions")
REGIONS_PROFILE = os.path.join(REGIONS, "profile.pt.trace.json.zst")
REGIONS_LOG = os.path.join(REGIONS, "dedicated_log_torch_trace_67qxirkk.log.zst")


def memory_events(trace):
    return sorted((e for e in trace["traceEvents"] if e.get("name") == "[memory]"), key=lambda e: e["ts"])


def alive_at_peak(events):
    """The allocating events of the blocks that live where the total is greatest, and that total."""
    live, best = {}, (0, [])
    for event in events:
        arguments = event["args"]
        if arguments["Bytes"] > 0:
            live[arguments["Addr"]] = event
        else:
            live.pop(arguments["Addr"], None)
        if arguments["Total Allocated"] > best[0]:
            best = (arguments["Total Allocated"], list(live.values()))
    return best


@unittest.skipUnless(profiles.HAS_ZSTD, "zstd is not installed")
class Profile(profiles.InputTest):
    def test_events_are_those_of_the_file(self):
        database = self.ingest(PROFILE)
        events = memory_events(profiles.trace(PROFILE))
        base = profiles.trace(PROFILE)["baseTimeNanoseconds"]
        mine = self.rows(database, """SELECT action, address, size_bytes, allocated_bytes, time_ns, thread FROM memory_event ORDER BY ordinal""")
        self.assertEqual([["alloc" if e["args"]["Bytes"] > 0 else "free", e["args"]["Addr"], abs(e["args"]["Bytes"]), e["args"]["Total Allocated"],
                           base + round(e["ts"] * 1000), str(e["tid"])] for e in events], [[*row[:4], row[4], row[5]] for row in mine])
        self.assertEqual([], self.rows(database, "SELECT * FROM import_log WHERE message LIKE '%cpu_instant_event%'"))

    def test_the_peak_and_the_graphs_that_hold_it(self):
        database = self.ingest(PROFILE, LOG)
        trace = profiles.trace(PROFILE)
        peak, alive = alive_at_peak(memory_events(trace))
        self.assertEqual([["CPU", None, peak]], self.rows(database, "SELECT source, device, peak_bytes FROM memory_snapshot"))
        self.assertEqual(peak, sum(e["args"]["Bytes"] for e in alive))
        calls = [e for e in profiles.slices(trace["traceEvents"], "user_annotation", "cpu_op") if e["name"].startswith("## Call CompiledFxGraph ")]
        expected = collections.Counter()
        for event in alive:
            around = [c["name"].split()[3] for c in calls if c["tid"] == event["tid"] and c["ts"] <= event["ts"] <= c["ts"] + c["dur"]]
            expected[around[0] if around else None] += event["args"]["Bytes"]
        mine = self.rows(database, """SELECT g.cache_key, sum(m.size_bytes) FROM graph_memory m LEFT JOIN graph g ON g.id = m.graph_id
            GROUP BY 1""")
        self.assertEqual(dict(expected), dict(mine))
        self.assertGreater(expected.total() - expected[None], 0.95 * peak)
        self.assertEqual([[0]], self.rows(database, "SELECT count(*) FROM memory_peak WHERE compile_id IS NULL AND reason IS NULL"))

    def calls_with_lines(self, trace):
        """(size, line of the generated code) of each allocation of each call, where the code has as many lines that allocate."""
        lines = {}
        for record in profiles.records(LOG):
            if "inductor_output_code" in record.envelope:
                code = profiles.payload_text(record).split("\n")
                own = [number for number, line in enumerate(code, 1) if re.match(r"\s+\w+ = empty_strided_\w+\(\(", line)]
                lines[len(own)] = own
        events = [e for e in memory_events(trace) if e["args"]["Bytes"] > 0]
        for call in profiles.slices(trace["traceEvents"], "user_annotation", "cpu_op"):
            if call["name"].startswith("## Call CompiledFxGraph "):
                sizes = [e["args"]["Bytes"] for e in events if call["tid"] == e["tid"] and call["ts"] <= e["ts"] <= call["ts"] + call["dur"]]
                yield list(zip(sizes, lines[len(sizes)]))

    def lines(self, database):
        return collections.Counter(tuple(row) for row in self.rows(database, """SELECT a.size_bytes, s.code_line FROM memory_allocation a
            JOIN memory_site s ON s.id = a.site_id WHERE s.join_key = 'M4'"""))

    def test_allocations_of_a_call_are_those_of_the_lines(self):
        database = self.ingest(PROFILE, LOG)
        calls = list(self.calls_with_lines(profiles.trace(PROFILE)))
        self.assertEqual([9, 9, 15, 15], sorted(map(len, calls)))
        self.assertEqual(collections.Counter(one for call in calls for one in call), self.lines(database))
        self.assertEqual([["cpp_fused_gelu_0", 3], ["extern_kernels.addmm", 6]], self.rows(database, """SELECT k.name, count(DISTINCT s.id) FROM memory_site s
            JOIN kernel_row k ON k.id = s.kernel_id JOIN graph g ON g.id = s.graph_id WHERE g.direction = 'forward' GROUP BY 1 ORDER BY 1"""))

    def test_of_a_call_with_another_size_no_line_is_claimed(self):
        trace = profiles.trace(PROFILE)
        calls = list(self.calls_with_lines(trace))
        other = next(e for e in memory_events(trace) if e["args"]["Bytes"] == calls[0][0][0])
        other["args"]["Bytes"] += 4
        with open(self.path("other.pt.trace.json"), "w") as file:
            json.dump(trace, file)
        database = self.ingest(self.path("other.pt.trace.json"), LOG)
        self.assertEqual(collections.Counter(one for call in calls[1:] for one in call), self.lines(database))
        self.assertEqual([["M3", len(calls[0])]], self.rows(database, """SELECT s.join_key, count(*) FROM memory_allocation a
            JOIN memory_site s ON s.id = a.site_id WHERE s.join_key = 'M3'"""))

    def test_functions_of_generated_code(self):
        """Each call of a function of the code allocates by the function's lines."""
        code, = {profiles.payload_text(record) for record in profiles.records(REGIONS_LOG) if "inductor_output_code" in record.envelope}
        function, of = None, collections.defaultdict(list)
        for number, line in enumerate(code.split("\n"), 1):
            if re.match(r"\s*def \w+\(", line):
                function = line.split("(")[0].split()[-1]
            elif re.match(r"\s+\w+ = empty_strided_cpu\(\(", line):
                of[function].append(number)
        calls = len(re.findall(r"= repeated_subgraph0\(", code))
        self.assertEqual([2, {"repeated_subgraph0": 2, "call": 2}], [calls, {name: len(lines) for name, lines in of.items()}])
        run = [line for _ in range(calls) for line in of["repeated_subgraph0"]] + of["call"]
        trace = profiles.trace(REGIONS_PROFILE)
        expected = collections.Counter()
        for call in profiles.slices(trace["traceEvents"], "user_annotation", "cpu_op"):
            if call["name"].startswith("## Call CompiledFxGraph "):
                sizes = [e["args"]["Bytes"] for e in memory_events(trace) if e["args"]["Bytes"] > 0 and call["ts"] <= e["ts"] <= call["ts"] + call["dur"]]
                self.assertEqual(len(run), len(sizes))
                expected.update(zip(sizes, run))
        self.assertEqual(3 * len(run), expected.total())
        self.assertEqual(expected, self.lines(self.ingest(REGIONS_PROFILE, REGIONS_LOG)))

    def test_of_code_with_branches_no_line_is_claimed(self):
        with open(self.path("log.log"), "wb") as file:
            file.write(profiles.data(REGIONS_LOG).replace(b" buf0 = repeated_subgraph0(", b" if arg2_1 is not None: buf0 = repeated_subgraph0("))
        database = self.ingest(REGIONS_PROFILE, self.path("log.log"))
        self.assertEqual([["M3"]], self.rows(database, "SELECT DISTINCT join_key FROM memory_site WHERE graph_id IS NOT NULL"))

    def test_bytes_at_a_moment(self):
        database = self.ingest(PROFILE)
        events = memory_events(profiles.trace(PROFILE))
        mine = self.rows(database, "SELECT ordinal, size_bytes FROM memory_at WHERE ordinal >= 0 ORDER BY ordinal")
        self.assertEqual([[at, e["args"]["Total Allocated"]] for at, e in enumerate(events)], mine)
        for at, _, own, total in self.rows(database, """SELECT from_us, ordinal, (SELECT sum(a.size_bytes) FROM memory_allocation a
                WHERE a.snapshot_id = m.snapshot_id AND (a.alloc_ordinal IS NULL OR a.alloc_ordinal <= m.ordinal)
                AND (a.free_ordinal IS NULL OR a.free_ordinal > m.ordinal)), size_bytes FROM memory_at m WHERE ordinal % 50 = 0 OR until_us IS NULL"""):
            self.assertEqual(own or 0, total)
            self.assertIn([total], self.rows(database, f"SELECT size_bytes FROM memory_at WHERE from_us <= {at} AND (until_us >= {at} OR until_us IS NULL)"))

    def test_a_log_that_comes_later_joins(self):
        database = self.ingest(PROFILE)
        self.assertEqual([[0]], self.rows(database, "SELECT count(graph_id) FROM memory_peak"))
        self.tlparse(LOG, "--db", database, "--run", "r", "--db-only")
        first = self.rows(database, "SELECT size_bytes, category, graph_id FROM memory_peak ORDER BY id")
        self.assertTrue(any(graph for _, _, graph in first))
        other = self.ingest(PROFILE, LOG, name="other.db")
        self.assertEqual(first, self.rows(other, "SELECT size_bytes, category, graph_id FROM memory_peak ORDER BY id"))

    def test_of_more_frames_than_are_held_none_names_a_line(self):
        """The outer frame of an allocation was kept, and the inner one would not have been."""
        def event(name, ts, dur, place):
            return {"ph": "X", "cat": "python_function", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {"CallFrom": place}}

        inner = event("<built-in method randn>", 10, 5, "train.py:12")
        memory = {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": 1, "tid": 1, "ts": 12,
                  "args": {"Total Allocated": 100, "Bytes": 100, "Device Id": -1, "Device Type": 0, "Addr": 1}}
        for others, lines in ((3, 12), (200_000, None)):
            with self.subTest(others):
                events = [event("torch/a.py(1): run", 0, 100, "train.py:31"), *[event("<built-in method f>", 5, 1, "train.py:11")] * others, inner, memory]
                path = self.write("p.json", json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": events}).encode())
                database = self.ingest(path, name=f"{others}.db")
                self.assertEqual([[lines]], self.rows(database, "SELECT s.line FROM memory_event e JOIN memory_site s ON s.id = e.site_id"))

    def test_lines_by_the_frames_that_were_open(self):
        """A frame names the line that called it: of what a function does by itself, by an operator, the line is not known."""
        def event(category, name, ts, dur, **arguments):
            return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": arguments}

        def allocation(ts, address, size, total):
            return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": 1, "tid": 1, "ts": ts,
                    "args": {"Total Allocated": total, "Bytes": size, "Device Id": -1, "Device Type": 0, "Addr": address}}

        frames = [event("python_function", "train.py(30): <module>", 0, 100, CallFrom="<string>:1"),
                  event("python_function", "train.py(10): step", 10, 80, CallFrom="train.py:31"),
                  event("python_function", "<built-in method randn of type object at 0x7f>", 20, 10, CallFrom="train.py:12"),
                  event("python_function", "torch/nn/functional.py(5): relu", 40, 20, CallFrom="train.py:13"),
                  event("python_function", "<built-in method relu>", 45, 10, CallFrom="torch/nn/functional.py:9"),
                  event("python_function", "torch/_tensor.py(3): wait", 75, 3, CallFrom="torch/_tensor.py:2")]
        ops = [event("cpu_op", "aten::randn", 22, 5), event("cpu_op", "aten::relu", 46, 5), event("cpu_op", "aten::add", 70, 3)]
        memory = [allocation(23, 1, 100, 100), allocation(47, 2, 200, 300), allocation(71, 3, 400, 700)]
        for events, kept in ((frames + ops + memory, 4), (memory + ops + frames, 4), (frames + ops, 0)):
            with self.subTest(first=events[0]["name"], kept=kept):
                path = self.write("p.json", json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": events}).encode())
                database = self.ingest(path, name=f"{events[0]['cat']}{kept}.db")
                left = self.rows(database, "SELECT message FROM import_log WHERE message LIKE '%python_function%'")
                self.assertEqual(kept, self.rows(database, "SELECT count(*) FROM python_frame")[0][0])
                self.assertTrue(left[0][0].startswith(f"{len(frames) - kept} event"), left)
                if kept == 0:
                    continue
                self.assertEqual([[100, "train.py", 12, "step", "allocated outside compiled graphs"],
                                  [200, "train.py", 13, "step", "allocated outside compiled graphs"],
                                  [400, None, None, "step (train.py:10)", "on a line of step (train.py:10) that no frame names"]],
                                 self.rows(database, """SELECT e.size_bytes, s.file, s.line, s.function, s.join_note FROM memory_event e
                                     JOIN memory_site s ON s.id = e.site_id ORDER BY e.ordinal"""))


@unittest.skipUnless(profiles.HAS_ZSTD, "zstd is not installed")
class Snapshot(profiles.InputTest):
    def code_path(self):
        (record,) = [r for r in profiles.records(LOG) if "inductor_output_code" in r.envelope][:1]
        code = record.envelope["inductor_output_code"]
        return code.get("file_path") or code["filename"]

    def test_lines_of_generated_code_and_regions(self):
        path = self.code_path()
        torch = "/usr/lib/python3/dist-packages/torch"
        user = [frame("step", "/job/train.py", 7), frame("<module>", "/job/train.py", 40)]
        stacks = {"code": [frame("call", path, 55), frame("__call__", f"{torch}/_inductor/output_code.py", 500)] + user,
                  "other": [frame("call", path.replace(os.path.basename(path), "c" + "a" * 51 + ".py"), 55)] + user,
                  "eager": user, "torch": [frame("f", f"{torch}/functional.py", 3)], "none": [],
                  "c": [frame("at::empty", "RegisterCUDA.cpp", 0), frame("_PyEval_EvalFrame", "/usr/local/src/Python/ceval.c", 3)] + user}
        allocator = memory_snapshot.Allocator()
        for i, (stack, region) in enumerate([("code", None), ("other", None), ("eager", "Torch-Compiled Region: 0/0"), ("eager", None),
                                             ("eager", "Torch-Compiled Region: 9/9"), ("torch", None), ("none", None), ("c", None)]):
            allocator.alloc(1000 + i, stacks[stack], region)
        folder = self.path("job")
        os.mkdir(folder)
        shutil.copy(LOG, folder)
        memory_snapshot.write(memory_snapshot.snapshot([allocator]), os.path.join(folder, "memory.pickle"))
        database = self.ingest(folder)
        rows = self.rows(database, """SELECT p.size_bytes - 1000, p.category, c.label, p.graph_id IS NOT NULL, s.code_line, p.file, p.line, p.join_key, p.reason
            FROM memory_peak p LEFT JOIN compile c ON c.id = p.compile_id LEFT JOIN memory_site s ON s.id = p.site_id ORDER BY 1""")
        missing = f"the log of the process holds no code of the file {stacks['other'][0]['filename']}"
        self.assertEqual([
            [0, "compiled", "0/0", 1, 55, "/job/train.py", 7, "M2", None],
            [1, "compiled", None, 0, None, "/job/train.py", 7, None, missing],
            [2, "compiled", "0/0", 0, None, "/job/train.py", 7, "M1", None],
            [3, "other", None, 0, None, "/job/train.py", 7, None, "allocated outside compiled graphs"],
            [4, "compiled", None, 0, None, "/job/train.py", 7, None, "the log of the process has no compile 9/9"],
            [5, "other", None, 0, None, None, None, None, "no frame of its stack is a Python line outside PyTorch"],
            [6, "unknown", None, 0, None, None, None, None, "no stack was recorded"],
            [7, "other", None, 0, None, "/job/train.py", 7, None, "allocated outside compiled graphs"]], rows)
        self.assertEqual([["found by the generated code in its stacks"]],
                         self.rows(database, "SELECT process_note FROM profile WHERE kind = 'memory_snapshot'"))

    def test_categories_are_those_of_the_frames(self):
        path = self.path("memory.pickle")
        memory_snapshot.write(memory_snapshot.snapshot([memory_snapshot.training(100)]), path)
        database = self.ingest(path)
        categories = dict(self.rows(database, """SELECT DISTINCT f.file || ':' || f.function, a.category FROM memory_allocation a
            JOIN stack_frame f ON f.id = a.stack_id"""))
        torch = "/usr/lib/python3/dist-packages/torch"
        self.assertEqual({f"{torch}/nn/modules/linear.py:__init__": "parameter", f"{torch}/optim/adam.py:_init_group": "optimizer",
                          f"{torch}/autograd/graph.py:_engine_run_backward": "backward"},
                         {k: v for k, v in categories.items() if not k.endswith(":forward")})
        self.assertEqual({"forward", "compiled"}, {row[0] for row in self.rows(database, """SELECT DISTINCT a.category FROM memory_allocation a
            JOIN stack_frame f ON f.id = a.stack_id WHERE f.function = 'forward'""")})


if __name__ == "__main__":
    unittest.main()
