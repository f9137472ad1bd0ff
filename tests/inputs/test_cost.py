#!/usr/bin/env python3
"""tlparse cost of recorded runs: sums, lines, graphs; the JSON as its schema says."""

import contextlib
import glob
import json
import os
import re
import sqlite3
import unittest

import costs
import profiles
from profiles import harness


class Cost(costs.CostTest):
    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_shares_add_up_to_the_kernels_time(self):
        for folder in ("p_mlp_train", "p_two_functions", "p_ddp", "p_estimates", "p_dynamic", "torch-2.6.0/p_mlp_train"):
            with self.subTest(folder):
                self.tlparse(profiles.recorded(folder), "--db", "x.db", "--db-only")
                sums = {by: sum(row["share_us"] for row in self.ask("--by", by)["rows"]) for by in ("line", "kernel", "node")}
                kernel_us = sum(profile["kernel_us"] for profile in self.ask()["profiles"])
                self.assertGreater(kernel_us, 0)
                for by, total in sums.items():
                    self.assertAlmostEqual(total, kernel_us, delta=1e-6 * kernel_us, msg=by)
                whole = harness.rows(self.path("x.db"), "SELECT sum(r.duration_ns) / 1e3 FROM kernel_run_row r JOIN profile p ON "
                                     "p.id = r.profile_id WHERE p.overlaps_id IS NULL")[0][0]
                for view in ("kernel_cost", "line_cost", "node_cost"):
                    total = harness.rows(self.path("x.db"), f"SELECT sum(share_us) FROM {view}")[0][0]
                    self.assertAlmostEqual(total, whole, delta=1e-6 * whole, msg=view)
                os.unlink(self.path("x.db"))

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_kernels_and_lines_of_a_training_step(self):
        path = profiles.recorded("p_mlp_train")
        self.tlparse(path, "--db", "x.db", "--db-only")
        events = profiles.trace(os.path.join(path, "steps.pt.trace.json.zst"))["traceEvents"]
        names = {}
        for event in profiles.slices(events, "cpu_op"):
            if re.match(r"graph_\d+_cpp", event["name"]):
                name = re.sub(r"^graph_\d+_", "", event["name"])
                calls, us = names.get(name, (0, 0))
                names[name] = (calls + 1, us + event["dur"])
        found = {}
        for row in self.ask("--by", "kernel")["rows"]:
            if row["name"].startswith("cpp_"):
                calls, us = found.get(row["name"], (0, 0))
                found[row["name"]] = (calls + row["calls"], us + row["share_us"])
        self.assertEqual({name: calls for name, (calls, _) in found.items()}, {name: calls for name, (calls, _) in names.items()})
        for name, (_, us) in names.items():
            self.assertAlmostEqual(found[name][1], us, delta=0.01)
        calls = [e for e in profiles.slices(events, "cpu_op", "user_annotation") if e["name"].startswith("## Call")]
        graphs = self.ask("--by", "graph")["rows"]
        self.assertEqual(sum(row["calls"] for row in graphs), len(calls))
        self.assertAlmostEqual(sum(row["share_us"] for row in graphs), sum(e["dur"] for e in calls), delta=0.01)
        self.assertIn("common.py:22", self.tlparse("cost", "x.db").stdout)

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_estimates_of_every_kernel(self):
        self.tlparse(profiles.recorded("p_estimates"), "--db", "x.db", "--db-only")
        rows = self.ask("--by", "kernel")["rows"]
        self.assertEqual(len(rows), 29)  # 11 of one graph and 18 of the other
        self.assertTrue(all(row["estimated_us"] is not None for row in rows), rows)

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_lines_share_a_kernel_by_their_nodes(self):
        self.tlparse(profiles.recorded("p_dynamic"), "--db", "x.db", "--db-only")
        # y = gelu(x @ w): add, erf and three mul; the other line: add, div, mean, sqrt, sub, var.
        parts = harness.rows(self.path("x.db"), "SELECT DISTINCT l.line, round(l.part * 11, 6), l.basis FROM kernel_line l JOIN kernel_row k ON "
                             "k.id = l.kernel_id WHERE k.name = 'cpp_fused_add_div_gelu_mean_sqrt_sub_var_0' ORDER BY 1")
        self.assertEqual(parts, [[4, 5.0, "nodes"], [5, 6.0, "nodes"]])
        self.assertEqual(harness.rows(self.path("x.db"), "SELECT count(*) FROM (SELECT sum(part) AS s FROM kernel_line_row GROUP BY kernel_id) "
                                      "WHERE abs(s - 1) > 1e-9"), [[0]])

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_lines_share_a_kernel_by_its_stacks_where_nodes_are_not_logged(self):
        """The log lists a stack for each origin of a kernel; some differ only in the columns that they mark (^^^)."""
        folder = profiles.recorded("p_estimates")
        self.tlparse(folder, "--db", "x.db", "--db-only")
        log, = glob.glob(os.path.join(folder, "*.log.zst"))
        self.write("p.log", profiles.data(log))
        expected = {}
        for record in profiles.records(self.path("p.log")):
            if b"kernel_stack_traces" in record.envelope_bytes:
                for kernel, stacks in json.loads(profiles.payload_text(record)).items():
                    lines = [int(re.findall(r", line (\d+), in ", stack)[-1]) for stack in set(stacks)]
                    expected[kernel] = {line: round(lines.count(line) / len(lines), 9) for line in lines}
        found = {}
        for kernel, line, part in harness.rows(self.path("x.db"), "SELECT k.name || ':' || k.debug_handle, l.line, round(l.part, 9) FROM kernel_line l "
                                               "JOIN kernel_row k ON k.id = l.kernel_id WHERE l.basis = 'stacks'"):
            found.setdefault(kernel, {})[line] = part
        uneven = [kernel for kernel, parts in found.items() if len(set(parts.values())) > 1]
        self.assertTrue(uneven)
        self.assertEqual(found, {kernel: expected[kernel] for kernel in found})
        self.assertEqual(harness.rows(self.path("x.db"), "SELECT count(*) FROM kernel_source WHERE entry_count IS NULL"), [[0]])

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_graphs_with_rank_key_and_a_compile_time_that_is_said_once(self):
        self.tlparse(profiles.recorded("p_ddp"), "--db", "x.db", "--db-only")
        rows = self.ask("--by", "graph")["rows"]
        self.assertEqual({row["rank"] for row in rows}, {0, 1})
        self.assertTrue(all(len(row["key"]) == 52 for row in rows), rows)
        compiles = harness.rows(self.path("x.db"), "SELECT duration_us, backward_duration_us FROM compile WHERE label = '4/0'")
        said = sorted(row["compile_us"] for row in rows if row["compile_us"] is not None)
        self.assertEqual(said, sorted(us for both in compiles for us in both))
        self.assertEqual(harness.rows(self.path("x.db"), "SELECT sum(compile_us) FROM graph_cost WHERE label = '4/0'"), [[sum(said)]])
        # A backward that no metric measured has no time, and its calls say nothing of its forward's.
        with contextlib.closing(sqlite3.connect(self.path("x.db"))) as connection:
            of_forward = "SELECT compile_id, graph_id, compile_time_in_calls FROM graph_cost WHERE direction = 'forward' ORDER BY 1, 2"
            before = connection.execute(of_forward).fetchall()
            self.assertTrue(any(calls is not None for *_, calls in before), before)
            connection.execute("UPDATE compile SET backward_duration_us = NULL")
            self.assertEqual(connection.execute(of_forward).fetchall(), before)
            self.assertEqual(connection.execute("SELECT DISTINCT compile_us, compile_time_in_calls FROM graph_cost WHERE direction = 'backward'").fetchall(),
                             [(None, None)])
        nodes = [row for row in self.ask("--by", "node")["rows"] if row["name"] is None]
        self.assertEqual(len({row["graph_id"] for row in nodes}), len(nodes))
        self.assertGreater(len(nodes), 2)

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_a_compile_time_is_that_of_the_forward(self):
        """The log has compilation_metrics of 3/1 and none of its backward, which is the costlier of the two."""
        self.tlparse(profiles.recorded("p_graph_breaks"), "--db", "x.db", "--db-only")
        measured = harness.rows(self.path("x.db"), "SELECT label, duration_us, backward_duration_us FROM compile ORDER BY label")
        self.assertEqual([row[0] for row in measured if row[2] is None], ["3/1"])
        rows = self.ask("--by", "graph")["rows"]
        self.assertEqual({(row["label"], row["direction"]): row["compile_us"] for row in rows},
                         {(label, direction): us for label, forward, backward in measured for direction, us in (("forward", forward), ("backward", backward))
                          if (label, direction) in {(row["label"], row["direction"]) for row in rows}})
        self.assertEqual([(row["label"], row["direction"], row["join_note"]) for row in rows if row["join_note"]],
                         [("3/1", "backward", "the log has no compile time of this backward")])
        self.assertIn("3/1 backward: the log has no compile time of this backward", self.tlparse("cost", "x.db", "--by", "graph").stdout)
        # A backward alone in the profile has no other's time.
        with contextlib.closing(sqlite3.connect(self.path("x.db"))) as connection:
            connection.execute("DELETE FROM compiled_slice_link_row WHERE graph_id IN (SELECT id FROM graph WHERE direction = 'forward')")
            connection.commit()
        rows = self.ask("--by", "graph")["rows"]
        self.assertEqual({row["label"]: row["compile_us"] for row in rows if row["direction"] == "backward"},
                         {label: backward for label, _, backward in measured if label in {row["label"] for row in rows}})

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_what_a_share_is_of(self):
        self.tlparse(profiles.recorded("p_mlp_train"), "--db", "x.db", "--db-only")
        for by, divided in (("line", "of a kernel of several lines is divided"), ("kernel", ""), ("node", "of a kernel of several nodes is divided evenly"),
                            ("graph", ""), ("op", "")):
            text = " ".join(self.tlparse("cost", "x.db", "--by", by).stdout.split())
            self.assertRegex(text, r"share: of [\d.]+ m?s (kernel|CPU) time")
            self.assertIn(divided, text)

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_generations_of_a_label(self):
        self.tlparse(profiles.recorded("p_two_functions"), "--db", "x.db", "--db-only")
        self.assertEqual({row["generation"] for row in self.ask("--by", "graph")["rows"]}, {0, 1})
        self.assertIn("1/0#2", self.tlparse("cost", "x.db", "--by", "graph").stdout)

    def test_a_profile_that_is_cut_or_has_no_kernels(self):
        event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
        self.write("p.json", json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": [event, event]}).encode()[:-40])
        self.tlparse(self.path("p.json"), "--db", "x.db", "--db-only")
        profile = self.ask("--by", "op")["profiles"][0]
        self.assertIsNone(profile["kernel_us"])
        self.assertEqual(profile["problems"], ["the file ends after 1 event"])
        text = self.tlparse("cost", "x.db").stdout
        self.assertIn("none in what could be read", text)
        self.assertIn("not all of", text)
        bad = dict(event, dur=-1)
        self.write("p.json", json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": [event, bad, bad, bad]}).encode())
        os.unlink(self.path("x.db"))
        self.tlparse(self.path("p.json"), "--db", "x.db", "--db-only")
        self.assertEqual(["an event was left out: its time is out of range (3 times)", "3 events were left out in all"], self.ask("--by", "op")["profiles"][0]["problems"])

    def test_what_libtrace_measured_needs_no_profiler(self):
        lines = []

        def record(head, payload=None):
            lines.append('V1121 08:30:01.000000 4242 a.cc:1] ' + json.dumps(dict(head, rank=1, **({"has_payload": "md5"} if payload else {}))))
            if payload:
                lines.append("\t" + json.dumps(payload))
        record({"dynamo_start": {"stack": []}, "frame_id": 2, "frame_compile_id": 0, "attempt": 0})
        base = 1_700_000_000_000_000
        for number, label in enumerate(("2/0", "2/0", "9/9")):
            record({"artifact": {"name": "libtrace_graph_execution", "encoding": "json"}},
                   {"ordinal": number, "compile_id": label, "label": "forward", "time_us": base + 100 * number, "duration_ns": 50_000})
        record({"artifact": {"name": "libtrace_cuda_activity", "encoding": "json"}},
               {"cupti": "x", "cupti_version": 24, "lost_count": 0,
                "clock": [{"cupti_ns": 0, "epoch_ns": base * 1000, "error_ns": 1}, {"cupti_ns": 1_000_000, "epoch_ns": base * 1000 + 1_000_000, "error_ns": 1}],
                "activities": [{"kind": "kernel", "name": "sgemm", "device": 0, "stream": 7, "start_ns": 10_000, "duration_ns": 30_000},
                               {"kind": "memcpy", "name": "HtoD", "device": 0, "stream": 7, "start_ns": 60_000, "duration_ns": 5000, "size_bytes": 64}]})
        self.write("dedicated_log_torch_trace_rank_1_abcdefgh.log", ("\n".join(lines) + "\n").encode())
        for _ in range(2):  # and again, when the log has grown
            self.tlparse(self.path("dedicated_log_torch_trace_rank_1_abcdefgh.log"), "--db", "x.db", "--db-only", "--run", "r")
            rows = lambda sql: harness.rows(self.path("x.db"), sql)
            self.assertEqual(rows("SELECT kind, rank, event_count FROM profile"), [["libtrace", 1, 5]])
            self.assertEqual(rows("SELECT basis, join_key, join_note IS NULL, duration_us FROM graph_call ORDER BY start_us"),
                             [["libtrace", "K2", 1, 50.0], ["libtrace", "K2", 1, 50.0], ["libtrace", None, 0, 50.0]])
            self.assertEqual(rows("SELECT name, device, duration_us, join_note FROM kernel_run"),
                             [["sgemm", 0, 30.0, "libtrace does not say which graph call enqueued it"]])
            self.assertEqual(rows("SELECT kind, size_bytes FROM device_copy"), [["memcpy", 64]])
            self.assertEqual(rows("PRAGMA foreign_key_check"), [])
            profile = self.ask("--by", "graph")["profiles"][0]
            self.assertEqual((profile["compiled_us"], profile["devices"][0]["kernels"]), (150, 1))
            # The records do not say what enqueued the kernel: it is not called outside.
            self.assertEqual((profile["device_in_calls_us"], profile["device_outside_us"], profile["device_unknown_us"]), (0, 0, 30))
            self.assertIn("0 µs (0.0 %) outside, 30 µs (100.0 %) unknown", self.tlparse("cost", "x.db").stdout)
            with open(self.path("dedicated_log_torch_trace_rank_1_abcdefgh.log"), "a", encoding="utf-8") as log:
                log.write('V1121 08:30:02.000000 4242 a.cc:1] {"str": ["x", 7], "rank": 1}\n')

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_how_much_of_the_time_was_compiling(self):
        self.tlparse(profiles.recorded("p_cache_hit"), "--db", "x.db", "--db-only")
        found = {os.path.join(*profile["path"].split(os.sep)[-2:]): profile for profile in self.ask()["profiles"]}
        self.assertEqual(len(found), 4)
        for name in ("cold/first_call", "warm/first_call"):
            profile = found[name + ".pt.trace.json.zst"]
            # The phases that the profile itself holds say the same, to the accuracy of two clocks.
            events = profiles.trace(profiles.recorded("p_cache_hit", name + ".pt.trace.json.zst"))["traceEvents"]
            spans = sorted((event["ts"], event["ts"] + event["dur"]) for event in profiles.slices(events, "cpu_op", "user_annotation")
                           if event["name"] in ("entire_frame_compile", "entire_backward_compile"))
            self.assertTrue(spans)
            self.assertAlmostEqual(profile["compile_us"], sum(end - start for start, end in spans), delta=0.02 * profile["window_us"])
        for name in ("cold/steps", "warm/steps"):
            self.assertEqual(found[name + ".pt.trace.json.zst"]["compile_us"], 0)
        text = self.tlparse("cost", "x.db").stdout
        self.assertRegex(text, r"(?m)^cold/first_call\.pt\.trace\.json\.zst: .* in all")
        self.assertRegex(text, r"compiles were under way for 1\d\.\d+ s \(9\d\.\d %\) of it")

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_runs_of_a_package_alone_are_not_called_outside_of_compiled_code(self):
        path = profiles.recorded("p_aoti", "run")
        self.tlparse(path, "--db", "x.db", "--db-only")
        answer = self.ask("--by", "kernel")
        profile, = answer["profiles"]
        events = profiles.trace(os.path.join(path, "steps.pt.trace.json.zst"))["traceEvents"]
        ran = sum(event["dur"] for event in profiles.slices(events, "cpu_op") if re.match(r"graph_\d+_cpp_|aoti_torch_", event["name"]))
        self.assertGreater(ran, 0)
        self.assertEqual(profile["compiled_us"], 0)
        self.assertAlmostEqual(profile["unmarked_us"], ran, delta=0.1)
        self.assertAlmostEqual(profile["outside_us"], profile["window_us"] - ran, delta=0.1)
        self.assertEqual({row["join_note"] for row in answer["rows"]}, {"a kernel of Inductor; the profile holds no graph call around it"})
        text = self.tlparse("cost", "x.db").stdout
        self.assertRegex(text, r"0 µs \(0\.0 %\) in calls of compiled graphs on the CPU, [\d.]+ ms \([\d.]+ %\) in kernels of Inductor without such a call, [\d.]+ ms \([\d.]+ %\) in neither")
        self.assertIn("how much of the time outside of calls is compiled code is unknown", " ".join(text.split()))
        # With what the package holds of them they are calls.
        members = profiles.recorded("p_aoti", "compile")
        self.tlparse(path, *glob.glob(os.path.join(members, "*.log.zst")), "--db", "y.db", "--db-only")
        profile, = self.ask(database="y.db")["profiles"]
        self.assertEqual(profile["unmarked_us"], 0)
        self.assertGreater(profile["compiled_us"], ran)

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_launches_and_processes_are_told_apart(self):
        self.tlparse(profiles.recorded("p_cache_hit"), "--db", "x.db", "--db-only")
        pids = [pid for pid, in harness.rows(self.path("x.db"), "SELECT pid FROM process ORDER BY first_record_us")]
        rows = [line for line in self.tlparse("history", "x.db").stdout.splitlines() if re.search(r" [01]/0 ", line)]
        self.assertEqual([line.split()[:3] for line in rows], [["pid", str(pids[0]), "0/0"], ["pid", str(pids[1]), "0/0"], ["pid", str(pids[1]), "1/0"]])
        self.assertIn("sums over 4 profiles", self.ask()["notes"])
        self.assertNotIn("launch", self.tlparse("cost", "x.db", "--by", "graph").stdout)
        with contextlib.closing(sqlite3.connect(self.path("x.db"))) as connection:
            connection.execute("INSERT INTO launch (id, run_id, ordinal, process_count) SELECT 2, run_id, 2, 1 FROM launch")
            connection.execute("UPDATE process SET launch_id = 2 WHERE pid = ?", pids[1:])
            connection.commit()
        self.assertIn("sums over 4 profiles of 2 launches", self.ask()["notes"])
        for by in ("kernel", "node", "graph"):
            self.assertEqual({row["launch"] for row in self.ask("--by", by)["rows"]}, {1, 2})
        text = self.tlparse("cost", "x.db", "--by", "kernel").stdout
        self.assertRegex(text, r"(?m)^warm/steps\.pt\.trace\.json\.zst: launch 2: ")
        self.assertRegex(text, r"estimated +launch +compile id")

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_kernels_of_a_profile_that_lost_events(self):
        folder = profiles.recorded("p_mlp_train")
        trace = profiles.trace(os.path.join(folder, "steps.pt.trace.json.zst"))
        log, = glob.glob(os.path.join(folder, "dedicated*"))
        events = trace["traceEvents"]
        calls = sorted((event for event in events if event.get("name", "").startswith("## Call CompiledFxGraph") and event["cat"] != "Trace"),
                       key=lambda event: event["ts"])

        def kernels(lost, *columns):
            self.write("p.json", json.dumps(dict(trace, traceEvents=[event for event in events if event not in lost])).encode())
            self.tlparse(log, self.path("p.json"), "--db", "x.db", "--db-only")
            found = harness.rows(self.path("x.db"), "SELECT name, join_note, join_key FROM kernel_run ORDER BY start_ns")
            os.unlink(self.path("x.db"))
            return found
        whole = kernels([])
        inside = lambda call, name: [event for event in events if name in event.get("name", "") and event.get("cat") == "cpu_op" and
                                     call["ts"] <= event["ts"] < call["ts"] + call["dur"]]
        # A fused kernel is lost: the others of its call are known by their order.
        lost = inside(calls[0], "cpp_fused_gelu_native_dropout")
        self.assertEqual(len(lost), 1)
        found = kernels(lost)
        self.assertEqual((len(found), {row[1] for row in found}), (len(whole) - 1, {None}))
        # Two products are lost: those that are left are kernels, though not always known which.
        lost = inside(calls[0], "aten::addmm")[:2]
        found = kernels(lost)
        self.assertEqual([row[0] for row in found].count("aten::addmm"), [row[0] for row in whole].count("aten::addmm") - 2)
        # The slice of a call is lost: the autograd function stands for it.
        found = kernels(calls[:1])
        self.assertEqual([row[0] for row in found], [row[0] for row in whole])
        self.assertEqual({row[1] for row in found}, {None})

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_what_is_not_there_is_named(self):
        self.tlparse(profiles.recorded("p_ddp"), "--db", "x.db", "--db-only")
        self.assertIn("no input is of rank 7; there are ranks 0,1", self.tlparse("cost", "x.db", "--rank", "7", expect=2).stderr)
        self.assertIn("no profile of rank 1 holds step 7-9; their steps are 1-3",
                      self.tlparse("cost", "x.db", "--rank", "1", "--steps", "7-9", expect=2).stderr)

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_history_counts_inductor_of_forward_and_backward(self):
        self.tlparse(profiles.recorded("p_mlp_train"), "--db", "x.db", "--db-only")
        row, = json.loads(self.tlparse("history", "x.db", "--json").stdout)["compiles"]
        own = harness.rows(self.path("x.db"), "SELECT kind, inductor_us FROM compilation_metric ORDER BY record_id")
        self.assertEqual([kind for kind, _ in own], ["compilation_metrics", "bwd_compilation_metrics"])
        self.assertEqual([row["inductor_us"], row["backward_inductor_us"]], [us for _, us in own])


if __name__ == "__main__":
    unittest.main()
