#!/usr/bin/env python3
"""tlparse cost of profiles with devices: windows, launches, what a profile says without a log."""

import json
import os
import unittest

import costs
import profiles
from profiles import harness


QUESTIONS = ("line", "kernel", "node", "graph", "op")


class CostDevices(costs.CostTest):
    def test_device_windows_and_steps(self):
        self.write("p.json", json.dumps(self.gpu_trace()).encode())
        self.tlparse(self.path("p.json"), "--db", "x.db", "--db-only")
        answer = self.ask("--by", "kernel")
        profile = answer["profiles"][0]
        self.assertEqual((profile["steps"], profile["window_us"], profile["compiled_us"], profile["outside_us"]), (2, 200, 40, 160))
        self.assertEqual((profile["device_in_calls_us"], profile["device_outside_us"], profile["device_unknown_us"]), (140, 0, 0))
        # Busy 350 … 420 and 450 … 500, where the window ends.
        self.assertEqual(profile["devices"], [{"device": 0, "kernels": 2, "has_own_steps": False, "window_us": 200, "busy_us": 120, "idle_us": 80}])
        self.assertEqual([(row["calls"], row["share_us"]) for row in answer["rows"]], [(2, 140)])
        one = self.ask("--by", "kernel", "--steps", "3")
        self.assertEqual([(row["calls"], row["share_us"]) for row in one["rows"]], [(1, 70)])
        self.assertEqual(one["profiles"][0]["window_us"], 100)
        self.assertEqual(harness.rows(self.path("x.db"), "SELECT device_us, graph_call_id IS NOT NULL FROM op_run WHERE name LIKE 'triton%'"),
                         [[70.0, 1], [70.0, 1]])
        self.assertEqual(harness.rows(self.path("x.db"), "SELECT device_us FROM graph_call"), [[70.0], [70.0]])
        self.assertEqual(harness.rows(self.path("x.db"), "SELECT enqueued_us, start_us FROM kernel_run"), [[313.0, 350.0], [413.0, 450.0]])

    def test_what_the_time_outside_of_graphs_was(self):
        """Parts are of the thread of the steps, disjoint, and add up."""
        trace = self.gpu_trace()
        def event(category, name, ts, dur, tid=1):
            trace["traceEvents"].append({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": {}})
        event("user_annotation", "load", 305, 15)  # 310 to 330 is the call of the graph
        event("user_annotation", "load", 335, 40)
        event("user_annotation", "read", 340, 10)
        event("cpu_op", "aten::to", 342, 4)
        event("cpu_op", "aten::add", 380, 10)
        event("cpu_op", "aten::empty", 382, 3)
        event("cpu_op", "aten::mul", 376, 20, tid=2)
        self.write("p.json", json.dumps(trace).encode())
        self.tlparse(self.path("p.json"), "--db", "x.db", "--db-only")
        profile = self.ask()["profiles"][0]
        self.assertEqual([(part["kind"], part["name"], part["us"]) for part in profile["outside"]],
                         [("neither", None, 105), ("annotation", "load", 35), ("annotation", "read", 10), ("op", "aten::add", 10)])
        self.assertEqual((profile["outside_rest_us"], profile["outside_us"]), (0, 160))
        self.assertIn("outside: 105 µs (52.5 %) in no op or annotation of its thread, 35 µs (17.5 %) in load, 10 µs (5.0 %) in read,",
                      " ".join(self.tlparse("cost", "x.db").stdout.split()))

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_parts_of_recorded_profiles_add_up(self):
        for folder in ("p_mlp_train", "p_dynamic", "p_ddp", "torch-2.6.0/p_mlp_train"):
            with self.subTest(folder):
                self.tlparse(profiles.recorded(folder), "--db", "x.db", "--db-only")
                for profile in self.ask()["profiles"]:
                    parts = sum(part["us"] for part in profile["outside"]) + profile["outside_rest_us"]
                    self.assertAlmostEqual(parts, profile["outside_us"] if profile["steps"] else 0, delta=0.01)
                os.unlink(self.path("x.db"))

    def test_collectives_are_counted_once_and_their_kernels_known_by_their_op(self):
        trace = self.gpu_trace()
        def event(category, name, ts, dur, **args):
            trace["traceEvents"].append({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args})
        event("cpu_op", "_c10d_functional::all_reduce_", 310, 10)
        event("cpu_op", "c10d::allreduce_", 312, 6)
        event("cpu_op", "_c10d_functional::all_reduce", 320, 5)  # traced with tensors that hold nothing
        event("cpu_op", "symm_mem::multimem_all_reduce_", 330, 8, **{"External id": 77})
        event("cuda_runtime", "cudaLaunchKernel", 332, 2, correlation=92, **{"External id": 77})
        event("kernel", "multimem_kernel", 350, 9, correlation=92, device=0, stream=7, **{"External id": 77})
        self.write("p.json", json.dumps(trace).encode())
        self.tlparse(self.path("p.json"), "--db", "x.db", "--db-only")
        self.assertEqual(harness.rows(self.path("x.db"), "SELECT op FROM collective_run ORDER BY start_us"), [["c10d::allreduce_"], ["symm_mem::multimem_all_reduce_"]])
        self.assertEqual(self.ask("--by", "kernel")["profiles"][0]["collective_us"], 9)

    def test_steps_that_a_profile_does_not_hold_are_named(self):
        trace = self.gpu_trace()
        self.write("p.json", json.dumps(trace).encode())
        self.tlparse(self.path("p.json"), "--db", "x.db", "--db-only")
        path = self.path("p.json")
        self.assertEqual(self.ask("--steps", "3-4")["notes"], [])
        self.assertEqual(self.ask("--steps", "4-9")["notes"], [f"{path} holds 4 only of the steps 4-9: its steps are 3-4"])
        self.assertIn("no profile holds step 5-9; their steps are 3-4", self.tlparse("cost", "x.db", "--steps", "5-9", expect=2).stderr)

    def test_long_names_are_whole_in_json_only(self):
        trace = self.gpu_trace()
        name = "void cutlass::Kernel<" + "cutlass_80_tensorop," * 100 + ">(Params)"
        for event in trace["traceEvents"]:
            if event["cat"] in ("kernel", "cpu_op"):
                event["name"] = name
        self.write("p.json", json.dumps(trace).encode())
        self.tlparse(self.path("p.json"), "--db", "x.db", "--db-only")
        for by in ("kernel", "op"):
            self.assertEqual(self.ask("--by", by)["rows"][0]["name"], name)
            lines = self.tlparse("cost", "x.db", "--by", by).stdout.splitlines()
            row, = [line for line in lines if "cutlass" in line]
            self.assertLess(len(row), 300)
            self.assertRegex(row, r"void cutlass::Kernel.*….*>\(Params\)")

    def test_what_a_profile_alone_says_of_its_kernels(self):
        trace = self.gpu_trace()
        events = trace["traceEvents"]
        key = "f" * 52
        events.append({"ph": "X", "cat": "cpu_op", "name": "Torch-Compiled Region: 2/1", "pid": 1, "tid": 1, "ts": 305, "dur": 40, "args": {}})
        for event in events:
            if event["name"] == "triton_poi_fused_0" and event["cat"] == "cpu_op":
                event["args"]["kernel_file"] = "/tmp/ab/cab.py"
            if event["cat"] == "kernel":
                event["args"]["grid"] = [56, 1, 1]
        # A second launch in the region, outside the graph call and any op; and one outside all.
        for at, correlation in ((335, 90), (370, 91)):
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at, "dur": 2, "args": {"correlation": correlation}})
            events.append({"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": 390, "dur": 5, "args": {"correlation": correlation}})
        self.write("p.json", json.dumps(trace, indent=2).encode())
        self.tlparse(self.path("p.json"), "--db", "x.db", "--db-only")
        no_log = "no log of the process that was measured"
        said = [[row[column] for column in ("name", "region", "label", "key", "file", "join_note", "calls", "grid")] for row in self.ask("--by", "kernel")["rows"]]
        self.assertEqual(sorted(said, key=str), sorted([
            ["triton_poi_fused_0", "2/1", "2/1", key, "/tmp/ab/cab.py", no_log, 1, "[56, 1, 1]"],
            ["triton_poi_fused_0", None, None, key, "/tmp/ab/cab.py", no_log, 1, "[56, 1, 1]"],
            ["sgemm", "2/1", "2/1", None, None, "it ran outside any graph call", 1, None],
            ["sgemm", None, None, None, None, "it ran outside any graph call", 1, None]], key=str))
        self.assertEqual(harness.rows(self.path("x.db"), "SELECT name, region, key, kernel_file FROM kernel_run ORDER BY id"),
                         [["triton_poi_fused_0", "2/1", key, "/tmp/ab/cab.py"], ["triton_poi_fused_0", None, key, "/tmp/ab/cab.py"],
                          ["sgemm", "2/1", None, None], ["sgemm", None, None, None]])
        self.assertEqual(harness.rows(self.path("x.db"), "SELECT name, region, key, kernel_file, calls FROM kernel_cost ORDER BY 1, 2"),
                         [["sgemm", None, None, None, 1], ["sgemm", "2/1", None, None, 1],
                          ["triton_poi_fused_0", None, key, "/tmp/ab/cab.py", 1], ["triton_poi_fused_0", "2/1", key, "/tmp/ab/cab.py", 1]])
        self.assertEqual([[row["label"], row["region"], row["key"], row["calls"]] for row in self.ask("--by", "graph")["rows"]],
                         [[None, None, key, 1], ["2/1", "2/1", key, 1]])

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_the_region_of_a_kernel_is_its_compile(self):
        for folder in ("p_mlp_train", "p_two_functions", "p_estimates", "p_graph_breaks"):
            with self.subTest(folder):
                self.tlparse(profiles.recorded(folder), "--db", "x.db", "--db-only")
                found = harness.rows(self.path("x.db"), "SELECT DISTINCT label = region, kernel_id IS NULL FROM kernel_cost WHERE label IS NOT NULL")
                self.assertEqual(found, [[1, 0]])
                os.unlink(self.path("x.db"))

    @unittest.skipUnless(os.path.isdir(profiles.GPU), "no public GPU profiles here")
    def test_public_profiles_say_where_triton_kernels_are_from(self):
        seen = 0
        for path in profiles.profiles_below(profiles.GPU):
            events = [event for event in profiles.trace(path)["traceEvents"] if event.get("ph") == "X"]
            ops = {event["args"]["External id"]: event for event in profiles.slices(events, "cpu_op") if "kernel_file" in event.get("args", {})}
            expected = []
            for kernel in profiles.slices(events, "kernel"):
                op = ops.get(kernel["args"].get("External id"))
                if op is None:
                    continue
                around = [event["name"] for event in profiles.slices(events, "cpu_op", "user_annotation") if event["tid"] == op["tid"] and
                          float(event["ts"]) <= float(op["ts"]) and float(op["ts"]) + float(op["dur"]) <= float(event["ts"]) + float(event["dur"])]
                region = [name.split(": ")[1] for name in around if name.startswith("Torch-Compiled Region: ")]
                key = [name.split()[3] for name in around if name.startswith("## Call CompiledFxGraph ")]
                expected.append([kernel["name"], region[0] if region else None, key[0] if key else None, op["args"]["kernel_file"]])
            with self.subTest(path):
                self.tlparse(path, "--db", "x.db", "--db-only")
                self.assertEqual(harness.rows(self.path("x.db"), "SELECT name, region, key, kernel_file FROM kernel_run WHERE kernel_file IS NOT NULL "
                                              "ORDER BY name"), sorted(expected))
                os.unlink(self.path("x.db"))
            seen += len(expected)
        self.assertGreaterEqual(seen, 6)

    def test_a_profile_without_a_measured_event_is_not_counted(self):
        trace = self.gpu_trace()
        # Begin and end events, which the profiler does not write: nothing of the file is measured.
        trace["traceEvents"] = [dict(event, ph="B") for event in trace["traceEvents"]]
        self.write("empty.json", json.dumps(trace).encode())
        self.tlparse(self.path("empty.json"), "--db", "x.db", "--db-only")
        done = self.tlparse("cost", "x.db", expect=2)
        self.assert_one_line_of_complaint(done)
        self.assertIn("hold no event with a time", done.stderr)
        self.write("p.json", json.dumps(self.gpu_trace()).encode())
        self.tlparse(self.path("p.json"), self.path("empty.json"), "--db", "y.db", "--db-only")
        answer = self.ask(database="y.db")
        self.assertEqual(len(answer["profiles"]), 1)
        self.assertEqual(answer["notes"], [self.path("empty.json") + " holds no event with a time and is not counted"])

    def test_kernels_without_a_launch_are_not_called_outside(self):
        trace = self.gpu_trace()
        for event in trace["traceEvents"]:
            if event["cat"] == "kernel" and event["ts"] < 400:
                event["args"] = {"device": 0, "stream": 7, "correlation": 999, "External id": 999}
        outside = [dict(event, tid=9) for event in trace["traceEvents"] if event["cat"] in ("cpu_op", "cuda_runtime", "kernel")][-3:]
        for event in outside:  # enqueued on another thread, where no graph call is open
            event["args"] = dict(event["args"], **{"correlation": 77, "External id": 77})
        outside[-1].update(dur=5, tid=7)
        trace["traceEvents"] += outside
        self.write("p.json", json.dumps(trace).encode())
        self.tlparse(self.path("p.json"), "--db", "x.db", "--db-only")
        profile = self.ask()["profiles"][0]
        self.assertEqual((profile["device_in_calls_us"], profile["device_outside_us"], profile["device_unknown_us"]), (70, 5, 70))

    def test_the_share_of_ops_is_of_the_time_they_are_sorted_by(self):
        trace = self.gpu_trace()
        long = {"ph": "X", "cat": "cpu_op", "name": "aten::long", "pid": 1, "tid": 1, "ts": 340, "dur": 50, "args": {"External id": 1000}}
        trace["traceEvents"].append(long)
        self.write("p.json", json.dumps(trace).encode())
        self.tlparse(self.path("p.json"), "--db", "x.db", "--db-only")
        answer = self.ask("--by", "op")
        self.assertEqual(answer["time"], "ops_on_device")
        self.assertEqual([(row["name"], row["share_us"], row["share"], row["device_us"], row["cpu_us"]) for row in answer["rows"]],
                         [("triton_poi_fused_0", 140, 1, 140, 10), ("aten::long", 0, 0, None, 50)])
        self.assertRegex(self.tlparse("cost", "x.db", "--by", "op").stdout, r"share +kernel time +CPU time +with ops inside +calls +op")
        # Without device work: the CPU's time.
        trace["traceEvents"] = [event for event in trace["traceEvents"] if event["cat"] in ("user_annotation", "cpu_op")]
        self.write("q.json", json.dumps(trace).encode())
        self.tlparse(self.path("q.json"), "--db", "y.db", "--db-only")
        answer = self.ask("--by", "op", database="y.db")
        self.assertEqual(answer["time"], "ops_on_cpu")
        self.assertEqual([(row["name"], row["share_us"], row["device_us"]) for row in answer["rows"]],
                         [("aten::long", 50, None), ("triton_poi_fused_0", 10, None)])
        self.assertRegex(self.tlparse("cost", "y.db", "--by", "op").stdout, r"share +CPU time +with ops inside +calls +op")
        self.assertEqual({by: self.ask("--by", by)["time"] for by in ("line", "kernel", "node", "graph")},
                         {"line": "kernels", "kernel": "kernels", "node": "kernels", "graph": "graph_calls_on_cpu"})

    def test_a_program_without_compiled_graphs(self):
        """Of ops alone no kernel is to be had by a setting of compiled code; sends and receives are called that."""
        def event(name, ts):
            return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 5, "args": {}}
        trace = {"schemaVersion": 1, "traceEvents": [event("aten::mm", 10), event("c10d::send", 20), event("c10d::recv_", 30)]}
        self.write("p.json", json.dumps(trace).encode())
        self.tlparse(self.path("p.json"), "--db", "x.db", "--db-only")
        text = self.tlparse("cost", "x.db").stdout
        self.assertIn("kernels: none was recorded\n", text)
        self.assertEqual(text, self.tlparse("cost", "x.db", "--by", "op").stdout)
        by_line = self.tlparse("cost", "x.db", "--by", "line").stdout
        self.assertIn("kernels: none was recorded; for what ran without compiled graphs on the CPU see 'tlparse cost --by op'", by_line)
        self.assertTrue(by_line.endswith("\nno kernel is in these profiles\n"))
        self.assertTrue(self.tlparse("cost", "x.db", "--by", "graph").stdout.endswith("\nno call of a compiled graph is in these profiles\n"))
        self.assertIn("aten::mm", text)
        self.assertIn("not compared: 2 calls of the profiles: they are sends or receives", self.tlparse("collectives", "x.db").stdout)

    def test_a_device_of_an_unknown_category_is_said_to_count(self):
        trace = self.gpu_trace()
        for category, device in (("quantum_kernel", {"device": 0, "stream": 3}), ("quantum_op", {})):
            trace["traceEvents"].append({"ph": "X", "cat": category, "name": "q", "pid": 0, "tid": 3, "ts": 320, "dur": 10, "args": device})
        self.write("p.json", json.dumps(trace).encode())
        self.tlparse(self.path("p.json"), "--db", "x.db", "--db-only")
        self.assertEqual([["1 event of category 'quantum_kernel', 10.000 us in all: counted as work of a device"], ["1 event of category 'quantum_op', 10.000 us in all"]],
                         harness.rows(self.path("x.db"), "SELECT message FROM import_log WHERE code = 'unknown_profile_event' ORDER BY message"))
        self.assertEqual(3, self.ask()["profiles"][0]["devices"][0]["kernels"])

    def test_errors(self):
        self.write("p.json", json.dumps(self.gpu_trace()).encode())
        self.tlparse(self.path("p.json"), "--db", "x.db", "--db-only")
        for arguments in (("--steps", "5-3"), ("--steps", "x"), ("--steps", "77"), ("--rank", "9"), ("--by", "colour"), ("--run", "none")):
            self.assert_one_line_of_complaint(self.tlparse("cost", "x.db", *arguments, expect=2))
        self.tlparse(harness.bundled("simple"), "--db", "y.db", "--db-only")
        self.assert_one_line_of_complaint(self.tlparse("cost", "y.db", expect=2))

    def test_every_question_of_a_person(self):
        self.write("p.json", json.dumps(self.gpu_trace()).encode())
        self.tlparse(self.path("p.json"), "--db", "x.db", "--db-only")
        for by in QUESTIONS:
            self.assertIn("device 0: 2 kernels", self.tlparse("cost", "x.db", "--by", by).stdout)


if __name__ == "__main__":
    unittest.main()
