#!/usr/bin/env python3
"""tlparse diff of two measured runs: which lines and kernels got slower."""

import glob
import json
import os
import re
import unittest

import costs
import profiles


class MeasuredDiff(costs.CostTest):
    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_what_got_slower_between_two_runs(self):
        folder = profiles.recorded("p_mlp_train")
        trace = profiles.trace(os.path.join(folder, "steps.pt.trace.json.zst"))
        log = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("dedicated")][0]
        self.write("a/p.json", json.dumps(trace).encode())
        slow = 0
        for event in trace["traceEvents"]:
            if re.match(r"graph_\d+_cpp_fused_gelu_native_dropout_native_layer_norm_1$", event.get("name", "")):
                event["dur"] *= 3
                slow += 1
        self.assertGreater(slow, 0)
        self.write("b/p.json", json.dumps(trace).encode())
        for side in "ab":
            self.tlparse(log, self.path(f"{side}/p.json"), "--db", f"{side}.db", "--db-only")
        answer = self.ask_diff("a.db", "b.db")
        measured = answer["comparisons"][0]["measured"]
        self.assertEqual(measured["unit"], "step")
        slower = [change for change in measured["changes"] if change["b_us"] > change["a_us"] * 1.001]
        self.assertEqual([(change["kind"], change["name"]) for change in slower if change["kind"] == "kernel"],
                         [("kernel", "cpp_fused_gelu_native_dropout_native_layer_norm_1:7")])
        kernel = next(change for change in slower if change["kind"] == "kernel")
        self.assertAlmostEqual(kernel["b_us"], 3 * kernel["a_us"], delta=0.01)
        self.assertFalse(kernel["has_other_code"])
        self.assertIn("the same generated code", self.tlparse("diff", "a.db", "b.db").stdout)

    def ingest(self, name, log, trace):
        """A database of a log's text and a profile."""
        self.write(f"{name}/dedicated_log_torch_trace_{name * 8}.log", log)
        self.write(f"{name}/p.json", json.dumps(trace).encode())
        self.tlparse(self.path(name), "--db", f"{name}.db", "--db-only")

    def recording(self, folder):
        path = profiles.recorded(folder)
        log, = glob.glob(os.path.join(path, "dedicated*"))
        return profiles.data(log), profiles.trace(os.path.join(path, "steps.pt.trace.json.zst"))

    def measured(self, a, b):
        return self.ask_diff(a, b)["comparisons"][0]["measured"]

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_kernels_that_one_profile_cannot_show_are_not_called_its_own(self):
        """Without with_stack the profiler has no event of a C++ kernel."""
        log, trace = self.recording("p_mlp_train")
        self.ingest("a", log, trace)
        trace["traceEvents"] = [event for event in trace["traceEvents"] if "cpp_fused" not in event.get("name", "")]
        self.ingest("b", log, trace)
        measured = self.measured("a.db", "b.db")
        self.assertEqual((measured["only_a"], measured["only_b"]), ([], []))
        unrecorded = measured["compared"]["unrecorded"]
        self.assertGreater(unrecorded["a_count"], 0)
        self.assertEqual(unrecorded["b_count"], 0)
        self.assertIn(f"not compared: {unrecorded['a_count']} C++ kernels of a", " ".join(self.tlparse("diff", "a.db", "b.db").stdout.split()))

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_kernels_of_one_name_that_compute_other_things_are_not_compared(self):
        log, trace = self.recording("p_mlp_train")
        self.ingest("a", log, trace)
        self.ingest("b", log.replace(b"(64, 256)", b"(32, 256)"), trace)
        measured = self.measured("a.db", "b.db")
        kernels = {change["name"] for change in measured["changes"] if change["kind"] == "kernel"}
        only_a, only_b = ({change["name"]: change["shapes"] for change in measured[key]} for key in ("only_a", "only_b"))
        self.assertEqual(only_a["cpp_fused_gelu_0:2"], "fused_gelu ([64, 256] float32, [64, 256] float32)")
        self.assertEqual(only_b["cpp_fused_gelu_0:2"], "fused_gelu ([32, 256] float32, [32, 256] float32)")
        self.assertEqual(set(only_a), set(only_b))
        self.assertFalse(kernels & set(only_a))
        for line in log.decode().splitlines():  # every kernel of that shape, and no other
            call = re.match(r"\t\s+(extern_kernels\.\w+|cpp_fused_\w+)\((.*)\)$", line)
            if call and "(64, 256)" in call.group(2):
                self.assertTrue(any(name.startswith(call.group(1) + ":") for name in only_a), call.group(1))
        self.assertEqual(len(kernels) + len(only_a), 19)
        text = self.tlparse("diff", "a.db", "b.db").stdout
        self.assertRegex(text, rf"only in a: {len(only_a)} kernels, ")

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_kernels_are_matched_by_what_they_compute_whatever_their_names(self):
        """PyTorch 2.6 writes no handles and numbers its kernels in another order."""
        for name, folder in (("a", "p_mlp_train"), ("b", os.path.join("torch-2.6.0", "p_mlp_train"))):
            self.tlparse(profiles.recorded(folder), "--db", f"{name}.db", "--db-only")
        measured = self.measured("a.db", "b.db")
        kernels = [change for change in measured["changes"] if change["kind"] == "kernel"]
        self.assertEqual((len(kernels), len(measured["only_a"]), len(measured["only_b"])), (15, 4, 4))
        self.assertIn(("cpp_fused_gelu_0:4", "cpp_fused_gelu_1"), [(change["a_name"], change["name"]) for change in kernels])
        self.assertTrue(all(change["a_calls"] == change["b_calls"] == 3 and change["has_other_code"] for change in kernels))
        # Each side's profile by another program: three steps.
        for side, folder in (("a", "p_mlp_train"), ("b", os.path.join("torch-2.6.0", "p_mlp_train"))):
            events = profiles.trace(profiles.recorded(folder, "steps.pt.trace.json.zst"))["traceEvents"]
            window = [event for event in events if event.get("ph") == "X" and event["name"].startswith("ProfilerStep#") and event["cat"] == "user_annotation"]
            self.assertAlmostEqual(measured[side]["window_us"] * 3, max(e["ts"] + e["dur"] for e in window) - min(e["ts"] for e in window), delta=1)
            compared = sum(change[side + "_us"] for change in kernels)
            self.assertAlmostEqual(compared, measured["compared"]["kernels"][side + "_us"], delta=0.01)
            self.assertAlmostEqual(compared + sum(change[side + "_us"] for change in measured["only_" + side]), measured[side]["kernel_us"], delta=0.01)
        text = " ".join(self.tlparse("diff", "a.db", "b.db", "--all").stdout.split())
        self.assertIn("measured: a 29.1 ms per step, b 118.8 ms per step (+308 %)", text)
        self.assertIn("15 kernels (89 % of the kernel time of a, 42 % of b)", text)
        self.assertIn("only in b: 4 kernels, 58.5 ms per step: cpp_fused_gelu_gelu_backward_sum_2 in 0/0 backward 39.3 ms", text)

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_little_that_was_compared_is_called_so(self):
        log, trace = self.recording("p_mlp_train")
        self.ingest("a", log, trace)
        self.ingest("b", log.replace(b"(64, 256)", b"(32, 256)").replace(b"common.py", b"others.py"), trace)
        measured = self.measured("a.db", "b.db")
        self.assertFalse(measured["is_fair"])
        self.assertGreater(measured["compared"]["kernels"]["count"], 0)
        text = " ".join(self.tlparse("diff", "a.db", "b.db", "--all").stdout.split())
        self.assertIn("it is too little of the time to say what does", text)
        self.ingest("c", log.replace(b"(64, 256)", b"(32, 256)"), trace)
        self.assertTrue(self.measured("b.db", "c.db")["is_fair"])
        text = " ".join(self.tlparse("diff", "b.db", "c.db").stdout.split())
        self.assertIn("19 kernels (100 % of the kernel time of a, 100 % of b) nothing of that takes more than a tenth longer", text)
        # The step takes longer outside the kernels.
        last = max((event for event in trace["traceEvents"] if event.get("name", "").startswith("ProfilerStep#")), key=lambda event: event["ts"])
        last["dur"] *= 2
        self.ingest("d", log, trace)
        self.assertIn("nothing of that takes more than a tenth longer: what makes the step longer is not among it",
                      " ".join(self.tlparse("diff", "a.db", "d.db").stdout.split()))

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_graphs_of_one_compile_are_compared_apart(self):
        """DDP makes four forward graphs of 4/0, two of them with one key; each calls extern_kernels.addmm:1."""
        folder = profiles.recorded("p_ddp")
        for name in "ab":
            for rank in (0, 1):
                trace = profiles.trace(os.path.join(folder, f"steps.rank{rank}.pt.trace.json.zst"))
                if name == "a":
                    calls = [event for event in trace["traceEvents"] if event.get("name", "").startswith("## Call CompiledFxGraph") and event["cat"] != "Trace"]
                    keys = list(dict.fromkeys(call["name"] for call in sorted(calls, key=lambda call: call["ts"])))
                    for call in calls:
                        if call["name"] != keys[1]:
                            continue
                        for event in trace["traceEvents"]:
                            if event.get("name") == "aten::addmm" and event["tid"] == call["tid"] and call["ts"] <= event["ts"] < call["ts"] + call["dur"]:
                                event["dur"] /= 2
                self.write(f"{name}/rank{rank}.json", json.dumps(trace).encode())
            self.tlparse(*glob.glob(os.path.join(folder, "dedicated*")), self.path(name), "--db", f"{name}.db", "--db-only")
        for comparison in self.ask_diff("a.db", "b.db")["comparisons"]:
            forward = [change for change in comparison["measured"]["changes"] if change["kind"] == "kernel" and change["direction"] == "forward"]
            self.assertEqual({change["slot"] for change in forward}, {0, 1, 2, 3})
            names = [(change["label"], change["slot"], change["name"]) for change in forward]
            self.assertEqual(len(set(names)), len(names))
            slower = {(change["slot"], change["name"].split(":")[0]) for change in forward if change["b_us"] > 1.2 * change["a_us"]}
            self.assertEqual(slower, {(1, "extern_kernels.addmm"), (2, "extern_kernels.addmm")})
        self.assertRegex(self.tlparse("diff", "a.db", "b.db").stdout, r"extern_kernels\.addmm:\d in 4/0 forward 2 ")


class DiffWithoutLogs(costs.CostTest):
    def event(self, category, name, ts, dur, **more):
        return dict({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {}}, **more)

    def profile(self, name, kernels):
        """A profile of two steps; each of the kernels (name, shapes, time in the first step, time in the second) is enqueued by an op."""
        events = [self.event("user_annotation", f"ProfilerStep#{step}", step * 1000, 1000) for step in (1, 2)]
        for number, (kernel, shapes, *times) in enumerate(kernels):
            for step, dur in zip((1, 2), times):
                at, correlation = step * 1000 + 100 * number, 10 * step + number
                events.append(self.event("cpu_op", "aten::mm", at, 20, args={"External id": correlation, "Input Dims": shapes}))
                events.append(self.event("cuda_runtime", "cudaLaunchKernel", at + 5, 5, args={"correlation": correlation}))
                events.append(self.event("kernel", kernel, at + 50, dur, pid=0, tid=7, args={"correlation": correlation}))
        self.write(f"{name}.json", json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": events}).encode())
        self.tlparse(self.path(f"{name}.json"), "--db", f"{name}.db", "--db-only", "--run", name)

    def test_kernels_and_ops_by_name_and_shapes(self):
        self.profile("a", [("gemm", [[8, 8], [8, 8]], 10, 20), ("gemm", [[16, 8], [8, 8]], 30, 30), ("old", [[1]], 1, 1)])
        self.profile("b", [("gemm", [[8, 8], [8, 8]], 40, 40), ("gemm", [[32, 8], [8, 8]], 70, 70), ("new", [[1]], 2, 2)])
        answer = self.ask_diff("a.db", "b.db")
        self.assertIsNone(answer["is_equal"])
        comparison, = answer["comparisons"]
        self.assertEqual((comparison["a"], comparison["b"], comparison["is_equal"]), ("run a", "run b", None))
        measured = comparison["measured"]
        self.assertEqual((measured["unit"], measured["has_logs"]), ("step", False))
        self.assertEqual([measured[side][key] for side in "ab" for key in ("steps", "window_us", "kernel_us", "op_us")], [2, 1000, 46, 46, 2, 1000, 112, 112])
        said = lambda key: [[change[member] for member in ("kind", "name", "shapes", "a_us", "b_us", "a_calls", "b_calls")] for change in measured[key]]
        self.assertEqual(said("changes"), [["kernel", "gemm", "[[8, 8], [8, 8]]", 15, 40, 2, 2], ["op", "aten::mm", "[[8, 8], [8, 8]]", 15, 40, 2, 2],
                                           ["op", "aten::mm", "[[1]]", 1, 2, 2, 2]])
        self.assertEqual(said("only_a"), [["kernel", "gemm", "[[16, 8], [8, 8]]", 30, 0, 2, 0], ["op", "aten::mm", "[[16, 8], [8, 8]]", 30, 0, 2, 0],
                                          ["kernel", "old", "[[1]]", 1, 0, 2, 0]])
        self.assertEqual(said("only_b"), [["kernel", "gemm", "[[32, 8], [8, 8]]", 0, 70, 0, 2], ["op", "aten::mm", "[[32, 8], [8, 8]]", 0, 70, 0, 2],
                                          ["kernel", "new", "[[1]]", 0, 2, 0, 2]])
        text = " ".join(self.tlparse("diff", "a.db", "b.db", "--all").stdout.split())
        self.assertIn("only in b: 2 kernels, 72 µs per step: gemm [[32, 8], [8, 8]] 70 µs, new [[1]] 2 µs", text)
        self.assertIn("only in b: 1 op, 70 µs per step: aten::mm [[32, 8], [8, 8]] 70 µs", text)
        self.assertIn("a and b have no log: only what was measured is compared", text)
        self.assertIn("compared: 1 kernel (33 % of the kernel time of a, 36 % of b); 2 ops (35 % of the ops' time of a, 38 % of b)", text)
        self.assertNotIn("compile", text)
        self.assertFalse(measured["is_fair"])

    def test_how_much_of_a_step_ran_from_cuda_graphs(self):
        """The same kernels, of which one side replays all but the first of 101 from a graph, in two steps."""
        with open(os.path.join(profiles.ROOT, "fixtures", "inputs", "op_share_graph", "trace.json"), encoding="utf-8") as file:
            trace = json.load(file)
        trace["traceEvents"] += [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1, "tid": 1, "ts": ts, "dur": dur}
                                 for number, ts, dur in ((1, 90, 50), (2, 140, 20000))]
        self.write("p.json", json.dumps(trace).encode())
        replayed = sum(event["dur"] for event in trace["traceEvents"] if "graph node id" in event.get("args", {}))
        whole = sum(event["dur"] for event in trace["traceEvents"] if event["cat"] == "kernel")
        eager = json.dumps(trace).replace("cudaGraphLaunch", "cudaLaunchKernel")
        self.write("q.json", eager.encode())
        for name in "pq":
            self.tlparse(self.path(f"{name}.json"), "--db", f"{name}.db", "--db-only")
        measured = self.ask_diff("p.db", "q.db")["comparisons"][0]["measured"]
        self.assertEqual([measured[side][key] for side in "ab" for key in ("device_us", "graph_us", "replays")],
                         [whole / 2, replayed / 2, 0.5, whole / 2, 0, 0])
        text = " ".join(self.tlparse("diff", "p.db", "q.db").stdout.split())
        self.assertIn("on devices, from CUDA graphs: a 5.0 ms of 5.0 ms (99.9 %), 0.5 replays per step, b none of 5.0 ms", text)
        self.assertNotIn("CUDA graphs", self.tlparse("diff", "q.db", "q.db").stdout)

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_a_run_with_a_log_and_one_without(self):
        self.profile("a", [("gemm", [[8, 8]], 10, 20)])
        self.tlparse(profiles.recorded("p_mlp_train"), "--db", "b.db", "--db-only", "--run", "b")
        self.assertIn("a has no log: only what was measured is compared", self.tlparse("diff", "a.db", "b.db").stdout)
        self.assertIn("b has no log: only what was measured is compared", self.tlparse("diff", "b.db", "a.db").stdout)
        self.assert_one_line_of_complaint(self.tlparse("diff", "a.db", "b.db", "--rank", "7", expect=2))
        self.assert_one_line_of_complaint(self.tlparse("diff", "a.db", "b.db", "--rank", "x", expect=2))


if __name__ == "__main__":
    unittest.main()
