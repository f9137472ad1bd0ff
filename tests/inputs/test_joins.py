#!/usr/bin/env python3
"""The joins of profiles with logs, counted by another program: it reads the logs and the profiles itself and knows tlparse by its tables only."""

import collections
import glob
import json
import os
import re
import unittest

import profiles
from profiles import harness


CALL = re.compile(r"## Call CompiledFxGraph (\S+) ##$")
REGION = re.compile(r"Torch-Compiled Region: (\S+)$")
ALLOCATION = re.compile(r"aten::(empty|empty_strided|empty_like|resize_|detach|set_|as_strided|view|slice|select)$|graph_\d+_inductor_wrapper_call$")


def read_log(path):
    """{cache key: handles of its code, in order}, {cache key: compile ids}"""
    handles, keys, code = {}, collections.defaultdict(set), {}
    for record in profiles.records(path):
        envelope, payload = record.envelope, profiles.payload_text(record)
        compile_id = "%s/%s" % (envelope["frame_id"], envelope["frame_compile_id"]) if "frame_id" in envelope else None
        if "inductor_output_code" in envelope:
            code[compile_id] = re.findall(r"\[Provenance debug handles\] (\S+)", payload)
        if envelope.get("artifact", {}).get("name", "").startswith("fx_graph_cache_") and payload:
            key = json.loads(payload).get("key")
            keys[key].add(compile_id)
            handles.setdefault(key, code.get(compile_id, []))
    return handles, keys


def children_of_calls(events):
    """[(key, start µs, number of the kernels' slices)] of each graph call: direct children that allocate nothing."""
    cpu = sorted(profiles.slices(events, "cpu_op", "user_annotation"), key=lambda e: (str(e["tid"]), e["ts"], -e["dur"]))
    calls = []
    for index, event in enumerate(cpu):
        match = CALL.match(event["name"])
        if not match:
            continue
        end, last, names = event["ts"] + event["dur"], -1, []
        for inner in cpu[index + 1:]:
            if inner["tid"] != event["tid"] or inner["ts"] >= end:
                break
            if inner["ts"] < last:
                continue
            if not ALLOCATION.match(inner["name"]) or "wrapper_call" not in inner["name"]:
                last = inner["ts"] + inner["dur"]
            if not ALLOCATION.match(inner["name"]):
                names.append(inner["name"])
        calls.append((match.group(1), names))
    return calls


@unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
class Joins(harness.EndToEnd):
    def ingest(self, *folders):
        self.tlparse(*(profiles.recorded(folder) for folder in folders), "--db", "x.db", "--db-only", "--run", "r")

    def rows(self, sql, *parameters):
        return harness.rows(self.path("x.db"), sql, *parameters)

    def profile_and_log(self, folder):
        logs = sorted(glob.glob(profiles.recorded(folder, "dedicated*")))
        for profile in sorted(glob.glob(profiles.recorded(folder, "*.trace.json*"))):
            rank = re.search(r"\.rank(\d+)\.", profile)
            yield profile, [log for log in logs if not rank or "rank_%s_" % rank.group(1) in log][0]

    # Recordings whose log has keys, and those of them whose kernels were recorded with provenance.
    WITH_KEYS = ("p_mlp_train", "p_two_functions", "p_graph_breaks", "p_ddp", "p_estimates", "p_cache_hit/cold", "p_cache_hit/warm", "p_dynamic")
    WITH_KERNELS = tuple(name for name in WITH_KEYS if name != "p_graph_breaks")

    def test_every_graph_call_by_its_key(self):
        for folder in self.WITH_KEYS:
            with self.subTest(folder):
                self.ingest(folder)
                for profile, log in self.profile_and_log(folder):
                    handles, keys = read_log(log)
                    expected = collections.Counter()
                    for key, _ in children_of_calls(profiles.trace(profile)["traceEvents"]):
                        expected[key] += 1
                    found = collections.Counter()
                    for key, label, count in self.rows(
                        "SELECT g.key, c.label, count(*) FROM graph_call g JOIN compile c ON c.id = g.compile_id JOIN profile p "
                        "ON p.id = g.profile_id WHERE p.path = ? AND g.join_key = 'K1' AND g.graph_id IS NOT NULL GROUP BY 1, 2", profile):
                        self.assertIn(label, keys[key])
                        found[key] += count
                    self.assertEqual(found, expected)
                # Where a region is around a forward's call, it names the same compile.
                self.assertEqual(self.rows(
                    "SELECT count(*) FROM graph_call g JOIN compiled_region r ON r.thread_id = g.thread_id AND g.start_ns BETWEEN r.start_ns AND "
                    "r.start_ns + r.duration_ns AND NOT EXISTS (SELECT 1 FROM compiled_region i WHERE i.thread_id = r.thread_id AND i.start_ns > "
                    "r.start_ns AND g.start_ns BETWEEN i.start_ns AND i.start_ns + i.duration_ns) "
                    "WHERE g.direction <> 'backward' AND g.compile_id <> r.compile_id"), [[0]])
                self.assertEqual(self.rows("SELECT count(*) FROM graph_call WHERE join_key IS NULL"), [[0]])
                os.unlink(self.path("x.db"))

    def test_every_region_by_its_compile_id(self):
        for folder in self.WITH_KEYS + ("torch-2.6.0/p_mlp_train",):
            with self.subTest(folder):
                self.ingest(folder)
                expected = sum(bool(REGION.match(event["name"])) for profile, _ in self.profile_and_log(folder)
                               for event in profiles.slices(profiles.trace(profile)["traceEvents"], "cpu_op", "user_annotation"))
                self.assertGreater(expected, 0)
                self.assertEqual(self.rows("SELECT count(*), sum(r.label = c.label) FROM compiled_region r JOIN compile c ON "
                                           "c.id = r.compile_id WHERE r.join_key = 'K2'"), [[expected, expected]])
                os.unlink(self.path("x.db"))

    def test_every_kernel_by_its_place_in_the_call(self):
        for folder in self.WITH_KERNELS:
            with self.subTest(folder):
                self.ingest(folder)
                for profile, log in self.profile_and_log(folder):
                    handles, _ = read_log(log)
                    expected = collections.Counter()
                    for key, names in children_of_calls(profiles.trace(profile)["traceEvents"]):
                        self.assertEqual(len(names), len(handles[key]), (key, names, handles[key]))
                        for handle in handles[key]:
                            expected[(key, handle)] += 1
                    self.assertGreater(len(expected), 0)
                    found = {(key, handle): count for key, handle, count in self.rows(
                        "SELECT g.key, k.name || ':' || k.debug_handle, count(*) FROM kernel_run r JOIN graph_call g ON g.id = r.graph_call_id "
                        "JOIN kernel_row k ON k.id = r.kernel_id JOIN profile p ON p.id = r.profile_id "
                        "WHERE p.path = ? AND r.join_key = 'K5' GROUP BY 1, 2", profile)}
                    self.assertEqual(found, dict(expected))
                self.assertEqual(self.rows("SELECT count(*) FROM kernel_run WHERE kernel_id IS NULL"), [[0]])
                os.unlink(self.path("x.db"))

    def test_every_kernel_by_the_line_of_its_frame(self):
        """A profile without kernel events: Python frames say which line of the generated code called (K6)."""
        self.ingest("p_graph_breaks")
        (profile, log), = self.profile_and_log("p_graph_breaks")
        handles, _ = read_log(log)
        expected = collections.Counter()
        events = profiles.trace(profile)["traceEvents"]
        for key, _ in children_of_calls(events):
            for handle in handles[key]:
                expected[(key, handle)] += 1
        found = {(key, handle): count for key, handle, count in self.rows(
            "SELECT g.key, k.name || ':' || k.debug_handle, count(*) FROM kernel_run r JOIN graph_call g ON g.id = r.graph_call_id "
            "JOIN kernel_row k ON k.id = r.kernel_id WHERE r.join_key = 'K6' GROUP BY 1, 2")}
        self.assertEqual(found, dict(expected))
        frames = [e for e in profiles.slices(events, "python_function") if e["name"] == "<built-in function kernel>"]
        self.assertEqual(self.rows("SELECT count(*), round(sum(duration_us), 3) FROM kernel_run WHERE frame_id IS NOT NULL"),
                         [[len(frames), round(sum(e["dur"] for e in frames), 3)]])
        self.assertIn("p_graph_breaks.py", self.tlparse("cost", "x.db").stdout)

    def test_every_phase_by_the_id_behind_its_start(self):
        self.ingest("p_dynamic")
        expected = collections.Counter()
        for profile, _ in self.profile_and_log("p_dynamic"):
            for event in profiles.slices(profiles.trace(profile)["traceEvents"], "user_annotation"):
                match = re.match(r"(.+?)_data: .*compile_id=([0-9!/]+)", event["name"])
                if match:
                    expected[match.groups()] += 1
        self.assertGreater(len(expected), 0)
        found = {(phase, label): count for phase, label, count in self.rows(
            "SELECT o.name, c.label, count(*) FROM op_run o JOIN compile c ON c.id = o.compile_id WHERE o.join_key = 'K7' GROUP BY 1, 2")}
        self.assertEqual(found, dict(expected))

    def test_history_and_provenance_with_measured_times(self):
        self.ingest("p_dynamic")
        calls = collections.Counter()
        for profile, log in self.profile_and_log("p_dynamic"):
            _, keys = read_log(log)
            for key, _ in children_of_calls(profiles.trace(profile)["traceEvents"]):
                label, = keys[key]
                calls[label] += 1
        history = json.loads(self.tlparse("history", "x.db", "--json").stdout)["compiles"]
        self.assertEqual({row["label"]: row["calls"] for row in history}, dict(calls))
        self.assertIn("one call in the profiles", self.tlparse("history", "x.db").stdout)
        # Two of the four recompiles were for a dtype, one for a rank.
        finding, = json.loads(self.tlparse("findings", "x.db", "--json").stdout)["findings"]
        self.assertRegex(finding["try"], r"^torch\._dynamo\.mark_dynamic\(x, 0\) .* \(against 1 of the 4 recompiles\); torch\._dynamo\.decorators\.mark_unbacked")
        rows = json.loads(self.tlparse("provenance", "x.db", "--sort", "cost", "--json").stdout)["kernels"]
        times = [row["measured_us"] for row in rows]
        self.assertEqual(times, sorted(times, reverse=True))
        whole = self.rows("SELECT sum(duration_us) FROM kernel_run")[0][0]
        self.assertAlmostEqual(sum({(row["kernel_id"], row["graph_id"]): row["measured_us"] for row in rows}.values()), whole, delta=0.01)

    def test_pytorch_2_6_without_keys(self):
        self.ingest("torch-2.6.0/p_mlp_train")
        events = profiles.trace(profiles.recorded("torch-2.6.0/p_mlp_train/steps.pt.trace.json.zst"))["traceEvents"]
        backwards = [e for e in profiles.slices(events, "cpu_op") if e["name"] == "CompiledFunctionBackward"]
        kernels = [e for e in profiles.slices(events, "cpu_op") if re.match(r"graph_\d+_cpp", e["name"])]
        self.assertEqual(self.rows("SELECT count(*) FROM graph_call WHERE join_key = 'K3' AND direction = 'backward'"), [[len(backwards)]])
        self.assertEqual(self.rows("SELECT count(*) FROM kernel_run WHERE op_run_id IS NULL AND kernel_id IS NOT NULL"), [[len(kernels)]])

    def test_labels_that_come_again_after_a_reset(self):
        self.ingest("p_two_functions")
        after, before = (self.rows("SELECT DISTINCT c.label, c.generation FROM graph_call g JOIN compile c ON c.id = g.compile_id JOIN "
                                   "profile p ON p.id = g.profile_id WHERE p.path LIKE ? ORDER BY 1", "%/" + name + "%")
                         for name in ("after_reset", "before_reset"))
        self.assertEqual({label for label, _ in after} & {label for label, _ in before}, {label for label, _ in after})
        self.assertEqual({generation for _, generation in before}, {0})
        self.assertEqual({generation for _, generation in after}, {1})

    def test_a_log_that_comes_later(self):
        log = glob.glob(profiles.recorded("p_mlp_train", "dedicated*"))[0]
        profile = glob.glob(profiles.recorded("p_mlp_train", "*.trace.json*"))[0]
        answers = []
        for order in ([log, profile], [profile, log]):
            for path in order:
                self.tlparse(path, "--db", "x.db", "--db-only", "--run", "r")
            answers.append(self.rows("SELECT name, join_key, count(*), sum(duration_ns) FROM kernel_run GROUP BY 1, 2 ORDER BY 1, 2"))
            self.assertEqual(self.rows("SELECT count(*) FROM kernel_run WHERE join_key IS NULL"), [[0]])
            self.assertEqual(self.rows("PRAGMA foreign_key_check"), [])
            os.unlink(self.path("x.db"))
        self.assertEqual(answers[0], answers[1])

    def test_another_processs_log_of_the_same_graph(self):
        log = glob.glob(profiles.recorded("p_cache_hit/cold", "dedicated*"))[0]
        profile = profiles.recorded("p_cache_hit/warm/steps.pt.trace.json.zst")
        self.tlparse(log, profile, "--db", "x.db", "--db-only", "--run", "r")
        self.assertEqual(self.rows("SELECT DISTINCT join_key, join_note FROM graph_call"),
                         [["K1", "the log of another process that compiled the same graph"]])
        self.assertEqual(self.rows("SELECT code FROM import_log WHERE code = 'unmatched_profile'"), [["unmatched_profile"]])

    def test_profiles_that_overlap_are_counted_once(self):
        profile = profiles.recorded("p_mlp_train/steps.pt.trace.json.zst")
        trace = profiles.trace(profile)
        self.write("a.json", json.dumps(trace).encode())
        trace["traceEvents"].append(dict(trace["traceEvents"][-1], ph="M"))
        self.write("b.json", json.dumps(trace).encode())
        self.tlparse(self.path("a.json"), self.path("b.json"), "--db", "x.db", "--db-only", "--run", "r")
        self.assertEqual(self.rows("SELECT count(*) FROM import_log WHERE code = 'overlapping_profiles'"), [[1]])
        kernels = len([e for e in profiles.slices(trace["traceEvents"], "cpu_op") if re.match(r"graph_\d+_cpp", e["name"])])
        self.assertEqual(self.rows("SELECT sum(calls) FROM kernel_cost"), [[kernels]])
        answer = json.loads(self.tlparse("cost", "x.db", "--json").stdout)
        self.assertEqual(len(answer["profiles"]), 1)
        self.assertEqual(answer["notes"][0],
                         f"{self.path('b.json')} is not counted: {self.path('a.json')}, which is, measured the same process at the same time")

    def test_what_overlaps_only_a_profile_that_is_not_counted_is_counted(self):
        trace = profiles.trace(profiles.recorded("p_mlp_train/steps.pt.trace.json.zst"))
        starts = [e["ts"] for e in trace["traceEvents"] if e["ph"] == "X"]
        length_us = max(e["ts"] + e["dur"] for e in trace["traceEvents"] if e["ph"] == "X") - min(starts)
        for name, shift in (("a", 0), ("b", 0.6), ("c", 1.2), ("d", 1.8)):
            moved = [dict(e, ts=e["ts"] + shift * length_us) if "ts" in e else e for e in trace["traceEvents"]]
            self.write(f"job/{name}.json", json.dumps({**trace, "traceEvents": moved}).encode())
        self.tlparse("job", "--db", "x.db", "--db-only")
        self.assertEqual([["a", None], ["b", "a"], ["c", None], ["d", "c"]],
                         self.rows("SELECT substr(p.path, -6, 1), substr(o.path, -6, 1) FROM profile p LEFT JOIN profile o ON o.id = p.overlaps_id ORDER BY p.path"))


class TritonKernelsByPath(harness.EndToEnd):
    """The profile names the file of a kernel's source, and so does the generated code: a log is made whose code names the files."""

    def log(self, key, files):
        """`files`: (name in the code, path), one for each call, in order"""
        code = ["# AOT ID: ['0_inference']"]
        for name, path in dict(files).items():
            code += [f"# kernel path: {path}", "# Topologically Sorted Source Nodes: [x], Original ATen: []", f"{name} = async_compile.triton('{name}', '''",
                     "import triton", "''', device_str='cuda')"]
        code += ["def call(args):"] + [f"    {name}.run(arg0_1, stream=stream0)" for name, _ in files]

        def record(head, *payload):
            head = dict(head, frame_id=0, frame_compile_id=0, attempt=0, **({"has_payload": "md5"} if payload else {}))
            return ["V1121 08:31:05.000000 4242 torch/_x.py:1] " + json.dumps(head)] + ["\t" + line for line in payload]
        lines = record({"dynamo_start": {"stack": []}}) + record({"inductor_output_code": {"filename": "/c/x.py"}}, *code) + record(
            {"artifact": {"name": "fx_graph_cache_miss", "encoding": "json"}}, json.dumps({"key": key}))
        self.write("dedicated_log_torch_trace_abcdefgh.log", ("\n".join(lines) + "\n").encode())
        return self.path("dedicated_log_torch_trace_abcdefgh.log")

    def joined(self, *inputs):
        self.tlparse(*inputs, "--db", "x.db", "--db-only")
        rows = harness.rows(self.path("x.db"), "SELECT r.name, k.name, k.code_line, r.join_key, r.join_note FROM kernel_run r LEFT JOIN kernel_row k ON "
                            "k.id = r.kernel_id WHERE r.device IS NOT NULL ORDER BY r.start_ns")
        os.unlink(self.path("x.db"))
        return rows

    def profile(self, key, launches):
        events = [{"ph": "X", "cat": "user_annotation", "name": f"## Call CompiledFxGraph {key} ##", "pid": 1, "tid": 1, "ts": 0, "dur": 1000, "args": {}}]
        for number, (name, path) in enumerate(launches, 1):
            at = 10 * number
            args = {"External id": number, "correlation": number}
            events.append({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": 5,
                           "args": dict(args, **({"kernel_file": path} if path else {}))})
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cuLaunchKernel", "pid": 1, "tid": 1, "ts": at + 1, "dur": 1, "args": args})
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at + 2, "dur": 4, "args": dict(args, device=0, stream=7)})
        self.write("p.json", json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": events}).encode())
        return self.path("p.json")

    def test_path_before_order_and_name(self):
        key = "f" * 52
        log = self.log(key, [("user_0", "/a/xx/cxx.py"), ("triton_b", "/a/yy/cyy.py"), ("user_0", "/a/xx/cxx.py")])
        # The profiler gives the name of the function, the code its own; the cache may lie elsewhere.
        self.assertEqual(self.joined(log, self.profile(key, [("add", "/b/xx/cxx.py"), ("triton_b", "/b/yy/cyy.py"), ("add", "/b/xx/cxx.py")])),
                         [["add", "user_0", 13, "K9", None], ["triton_b", "triton_b", 14, "K9", None], ["add", "user_0", 15, "K9", None]])
        # Not every call is in the profile: one of user_0 before triton_b is the first one; alone it may be either.
        why = "it ran another number of times than the generated code calls it"
        self.assertEqual(self.joined(log, self.profile(key, [("add", "/b/xx/cxx.py"), ("triton_b", "/b/yy/cyy.py")])),
                         [["add", "user_0", 13, "K9", None], ["triton_b", "triton_b", 14, "K9", None]])
        self.assertEqual(self.joined(log, self.profile(key, [("add", "/b/xx/cxx.py")])), [["add", None, None, None, why]])
        # The same name from another file is another kernel; without a file the name counts.
        self.assertEqual(self.joined(log, self.profile(key, [("triton_b", "/b/zz/czz.py")])),
                         [["triton_b", None, None, None, "the generated code's kernel of this name is in another file"]])
        self.assertEqual(self.joined(log, self.profile(key, [("triton_b", None)])), [["triton_b", "triton_b", 14, "K4", None]])

    @unittest.skipUnless(os.path.isdir(profiles.GPU), "no public GPU profiles here")
    def test_public_profiles(self):
        for name in sorted(os.listdir(profiles.GPU)):
            path = os.path.join(profiles.GPU, name)
            events = [event for event in profiles.trace(path)["traceEvents"] if event.get("ph") == "X"]
            calls = [event for event in profiles.slices(events, "user_annotation", "cpu_op") if CALL.match(event["name"])]
            launches = [event for event in profiles.slices(events, "cpu_op") if "kernel_file" in event.get("args", {})]
            keys = {CALL.match(event["name"]).group(1) for event in calls}
            if len(keys) != 1 or not launches:
                continue
            with self.subTest(name):
                log = self.log(keys.pop(), [(event["name"], event["args"]["kernel_file"]) for event in sorted(launches, key=lambda event: event["ts"])])
                of_op = {event["args"]["External id"]: event["name"] for event in launches}
                expected = sorted(event["name"] for event in profiles.slices(events, "kernel") if event["args"].get("External id") in of_op)
                self.assertGreater(len(expected), 0)
                self.assertEqual(sorted(row[0] for row in self.joined(log, path) if row[3] == "K9" and row[0] == row[1]), expected)


class Counts(profiles.InputTest):
    """What is kept, what is left out, and joins that users write."""

    @staticmethod
    def trace(*events):
        return json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 1790857026000000000, "traceEvents": events}).encode()

    def test_what_is_left_out_has_its_time(self):
        names = ("cudaLaunchKernel", "cudaGetDevice", "cudaStreamSynchronize", "cudaGetDevice")
        op = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 0, "dur": 2}
        calls = [{"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": 1, "ts": 10 * at, "dur": 1.5 + at, "args": {"correlation": at}}
                 for at, name in enumerate(names)]
        database = self.ingest(self.write("p.json", self.trace(op, *calls)))
        self.assertEqual(self.rows(database, "SELECT message FROM import_log WHERE code = 'profile_events_left_out' AND message LIKE '%cuda_runtime%'"),
                         [["3 events: cuda_runtime, 10.500 us in all"]])
        self.assertEqual(self.rows(database, "SELECT duration_ns FROM device_launch_row WHERE correlation = 0"), [[1500]])

    def test_a_compiled_function_is_one_event(self):
        events = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {"External id": ts}}
                  for name, ts, dur in (("outer", 0, 100), ("CompiledFunction", 10, 80), ("## Call CompiledFxGraph abc ##", 20, 50), ("aten::mm", 30, 15),
                                        ("aten::add", 72, 5))]
        database = self.ingest(self.write("p.json", self.trace(*events)))
        self.assertEqual(self.rows(database, "SELECT event_count, kept_count FROM profile"), [[5, 5]])
        # The graph call is no op, and its time is not the function's.
        self.assertEqual(self.rows(database, "SELECT name, self_us FROM op_run ORDER BY start_ns"),
                         [["outer", 20], ["CompiledFunction", 25], ["aten::mm", 15], ["aten::add", 5]])
        self.assertEqual(self.rows(database, "SELECT s.kind, t.text FROM compiled_slice_row s JOIN op_run_row o ON o.id = s.op_run_id JOIN text_row t ON t.id = o.name_id"),
                         [[2, "CompiledFunction"]])

    def test_joins_of_launches_ops_and_work_have_an_index(self):
        database = self.ingest(self.write("p.json", self.trace()))
        for key, one, other in (("correlation", "device_launch_row", "kernel_run_row"), ("correlation", "device_launch_row", "device_copy_row"),
                                ("external_id", "op_run_row", "kernel_run_row"), ("external_id", "op_run_row", "device_copy_row"),
                                ("sequence_number", "op_run_row", "op_run_row")):
            for first, second in ((one, other), (other, one)):
                for join in ("JOIN", "LEFT JOIN", "CROSS JOIN"):
                    plan = self.rows(database, f"EXPLAIN QUERY PLAN SELECT * FROM {first} a {join} {second} b ON b.profile_id = a.profile_id AND b.{key} = a.{key}")
                    self.assertRegex(plan[-1][3], rf"INDEX \S+ \(profile_id=\? AND {key}=\?\)", f"{first} {join} {second}")


if __name__ == "__main__":
    unittest.main()
