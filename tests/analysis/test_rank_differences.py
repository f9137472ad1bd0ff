"""What is a difference between ranks, and what is none."""

import glob
import json
import os
import pickle
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, ROOT, AnswerTest, ask, edit_log, record, run  # noqa: E402
from test_first_sentences import RankTest, graph  # noqa: E402


class Ranks(AnswerTest):
    def test_the_processor_takes_no_part_in_device_numbering(self):
        folder = os.path.join(self.scratch, "devices")
        for rank in (0, 3):
            inputs = f'L_x_: "f32[4][1]cpu:0", L_y_: "f32[4][1]cuda:{rank}"'
            self.save(f"devices/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", record({"str": ["/u/m.py", 1]}),
                      self.compiled(0, "f", "add", rank, inputs))
        answer = ask("ranks", self.ingest(folder, name="devices"))
        self.assertEqual(len(answer["classes"]), 1, answer["classes"])

    def test_a_first_call_without_gradients(self):
        """As that of the stages of a pipeline but the last, by which they learn shapes: the last one is compared with their second."""
        def compiled(rank, number, stages):
            ids = {"rank": rank, "frame_id": 0, "frame_compile_id": number, "attempt": 0}
            graph = 'class GraphModule(torch.nn.Module):\n    def forward(self, L_x_: "f32[4][1]cpu"):\n        add: "f32[4][1]cpu" = L_x_ + 1\n        return (add,)\n'
            metrics = {"co_name": "forward", "co_filename": "/u/m.py", "co_firstlineno": 10, "compile_id": f"0/{number}"}
            return "".join([record({"dynamo_start": {"stack": [{"line": 10, "name": "forward", "filename": 1, "loc": "x"}]}, **ids}),
                            record({"dynamo_output_graph": {"sizes": {}}, **ids}, graph), *(record({stage: {}, **ids}, graph) for stage in stages),
                            record({"compilation_metrics": metrics, **ids})])

        with_gradients, without = ("aot_joint_graph", "aot_forward_graph", "aot_backward_graph"), ("aot_inference_graph",)
        for rank in range(3):
            calls = [with_gradients] if rank == 2 else [without, with_gradients]
            self.save(f"stages/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", record({"str": ["/u/m.py", 1]}),
                      *(compiled(rank, number, stages) for number, stages in enumerate(calls)))
        findings = ask("findings", self.ingest(os.path.join(self.scratch, "stages"), name="stages"))["findings"]
        self.assertEqual({one["severity"] for one in findings}, {"note"})
        self.assertIn("Rank 2 did not compile 0/0 forward without gradients, the others did", [one["title"] for one in findings])

    def test_a_rank_that_compiled_nothing_is_known_by_its_process(self):
        self.save("job/dedicated_log_torch_trace_rank_0_abcdefgh.log", record({"str": ["/u/m.py", 1]}), self.compiled(0, "f", "add", 0))
        processes = [{"pid": 100 + rank, "parent_pid": 99, "rank": rank, "exit_code": 0, "signal": None, "started_us": 1, "ended_us": 2} for rank in range(2)]
        for ranks, expected in ((1, []), (2, ["No log from rank 1 (1 of 2 ranks have one)"])):
            self.save("job/run.json", json.dumps({"version": 1, "tool": "tlparse run", "command": ["torchrun"], "directory": "/", "host": "h",
                                                  "started_us": 1, "ended_us": 2, "exit_code": 0, "processes": processes[:ranks]}))
            findings = ask("findings", self.ingest(os.path.join(self.scratch, "job"), name=f"ranks_{ranks}"))["findings"]
            self.assertEqual([one["title"] for one in findings], expected)
        self.assertEqual(findings[0]["severity"], "note")
        self.assertTrue(findings[0]["detail"].startswith("By run.json rank 1 ended with exit code 0."), findings[0]["detail"])

    def test_of_a_log_that_is_given_alone_no_other_was_looked_for(self):
        folder = os.path.join(ROOT, "fixtures", "runs", "worker_raises")
        log, = glob.glob(os.path.join(folder, "*trace_rank_1_gq7oea1r*"))
        shown = {name: [(one["severity"], one["kind"], one["title"]) for one in ask("findings", self.ingest(given, name=name))["findings"]]
                 for name, given in (("folder", folder), ("alone", log))}
        self.assertEqual(shown["folder"][0][:2], ("error", "missing_rank"))
        self.assertEqual(shown["alone"][0][:2], ("error", "stopped_first"))
        self.assertEqual([one[0] for one in shown["alone"] if one[1] == "missing_rank"], ["note"])

    def test_splits_of_all_to_all_differ_by_rank_and_have_to_fit(self):
        logs = sorted(glob.glob(os.path.join(ROOT, "fixtures", "runs", "uneven_splits", "*.zst")))
        os.mkdir(os.path.join(self.scratch, "unfit"))

        def other(item):  # rank 0 sends to rank 1 what rank 2 should get
            return item.payload and item.payload.replace(b"[3, 3, 3], [3, 2, 2]", b"[3, 3, 3], [4, 1, 2]")
        for rank, log in enumerate(logs):
            target = os.path.join(self.scratch, "unfit", os.path.basename(log)[:-4])
            self.assertEqual(rank == 0, edit_log(log, target, other if rank == 0 else lambda item: item.payload) > 0)
        for folder, has_divergence in ((os.path.dirname(logs[0]), False), (os.path.join(self.scratch, "unfit"), True)):
            answer = ask("collectives", self.ingest(folder, name=f"splits_{has_divergence}"))
            self.assertEqual(has_divergence, answer["has_divergence"])
            if not has_divergence:
                self.assertEqual([["rank 0: other splits of all_to_all_single in 0/0 resample [inference], which fit those of the other ranks"]],
                                 [one["notes"] for one in answer["classes"]])
        found = ask("findings", self.ingest(os.path.join(self.scratch, "unfit"), name="splits_found"))["findings"]
        self.assertEqual(("error", "collective_divergence", [0]), (found[0]["severity"], found[0]["kind"], found[0]["ranks"]))
        self.assertIn("all_to_all_single([3, 3, 3], [4, 1, 2])", found[0]["title"])
        # Of a part of the ranks they are not known to fit.
        part = ask("collectives", self.ingest(*logs[:2], name="splits_part"))
        self.assertFalse(part["has_divergence"])
        self.assertIn("whether they fit those of the other ranks is not known", json.dumps(part["classes"]))

    def cut(self, name, of_rank_1):
        """Rank 1 has the collectives of the other ranks' graph in these graphs: (frame, compile of it, function, ops)."""
        schedule = {"name": "inductor_collective_schedule", "encoding": "json"}
        for rank in range(3):
            parts = [record({"str": ["/u/m.py", 1]})]
            for frame, count, function, ops in of_rank_1 if rank == 1 else [(0, 0, "f", ["all_reduce_", "broadcast_"])]:
                ids = {"rank": rank, "frame_id": frame, "frame_compile_id": count, "attempt": 0}
                text = json.dumps([f"torch.ops._c10d_functional.{op}.default" for op in ops])
                parts += [record({"dynamo_start": {"stack": []}, **ids}), record({"artifact": schedule, **ids}, text),
                          record({"compilation_metrics": {"co_name": function, "co_filename": "/u/m.py", "co_firstlineno": 1, "compile_id": f"{frame}/{count}"}, **ids})]
            self.save(f"{name}/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", *parts)
        return self.ingest(os.path.join(self.scratch, name), name=name)

    def test_equal_collectives_in_graphs_that_are_cut_differently_are_no_divergence(self):
        resumed = (1, 0, "torch_dynamo_resume_in_f_at_2", ["all_reduce_", "broadcast_"])
        recompiled = (1, 1, *resumed[2:])
        for name, graphs, count in (("cut", [(0, 0, "f", ["all_reduce_"]), (1, 0, "g", ["broadcast_"])], 6),
                                    ("resumed", [(0, 0, "f", []), resumed], 6),
                                    ("recompiled", [(0, 0, "f", []), resumed, recompiled], 8)):
            database = self.cut(name, graphs)
            connection = sqlite3.connect(database)
            self.addCleanup(connection.close)
            self.assertEqual(connection.execute("SELECT count(*) FROM collective").fetchone(), (count,), name)
            self.assertEqual(len(connection.execute("SELECT * FROM collective_divergence").fetchall()), 0, name)
            only, = ask("collectives", database)["classes"]
            self.assertEqual(only["notes"], ["rank 1: the same collectives in the same order, in other graphs"], name)
            self.assertNotIn("collective_divergence", {one["kind"] for one in ask("findings", database)["findings"]})

    def test_what_a_recompile_has_besides_is_a_divergence(self):
        resumed = (1, 0, "torch_dynamo_resume_in_f_at_2", ["all_reduce_", "broadcast_"])
        for name, graphs in (("other", [(0, 0, "f", []), resumed, (1, 1, resumed[2], ["all_reduce_"])]),
                             ("twice", [(0, 0, "f", []), resumed, (2, 0, "g", resumed[3])]),
                             ("both", [(0, 0, "f", resumed[3]), (0, 1, "f", resumed[3])]),
                             ("unknown", [(0, 0, "f", []), (1, 0, None, resumed[3]), (2, 0, None, resumed[3])])):
            self.assertEqual(len(ask("collectives", self.cut(name, graphs))["classes"]), 2, name)

    def test_the_collectives_of_one_rank_alone_are_the_same_as_no_others(self):
        log, = glob.glob(os.path.join(LOGS, "diverge_order", "*_rank_0_*"))
        lines = run("collectives", self.ingest(log, name="alone")).splitlines()
        self.assertRegex(lines[-1], r"^rank 0: \d+ collectives? and \d+ waits?$")

    def test_a_rank_beyond_all_sense_costs_nothing(self):
        for rank in (3_000_000_000, 2**63 - 1):
            ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
            path = self.save(f"{rank}/a.log", record({"dynamo_start": {"stack": []}, "rank": 0, **ids}),
                             record({"dynamo_start": {"stack": []}, "rank": rank, **ids}))
            answer = ask("ranks", self.ingest(path, name=str(rank)))
            self.assertEqual(answer["missing_ranks"]["count"], 0)
            # The number is no rank: all records are those of rank 0.
            self.assertEqual([one["ranks"] for one in answer["findings"] if one["kind"] == "stopped_first"], [[0]])
            self.assertIn("compile time unknown", run("ranks", self.ingest(path, name=f"{rank}_again")))


class Sides(AnswerTest):
    """Two ranks that differ: neither is the odd one."""

    def two(self, scenario):
        logs = sorted(glob.glob(os.path.join(LOGS, scenario, "*_rank_*")))
        database = self.ingest(logs[0], logs[2], name=scenario, run_name="two")
        return [one for one in ask("findings", database)["findings"] if one["kind"] != "missing_rank"]

    def test_configuration(self):
        one = self.two("diverge_config_2_6")[0]
        self.assertRegex(one["title"], r"^Rank 0 and rank 2 compiled with different configurations: max_fusion_size 64 → 13 \(from rank 0 to rank 2\)$")
        self.assertEqual((one["ranks"], one["rank_count"]), ([0, 2], 2))  # rank 1 has no log: these are not all
        self.assertIn("no majority", one["detail"])

    def test_collectives(self):
        one = self.two("diverge_order")[0]
        self.assertRegex(one["title"], "^Rank 0 and rank 2 schedule their collectives in different orders: ")
        self.assertNotIn("others", one["title"])


class CallersOfCollectives(AnswerTest):
    """Nodes of a functional collective name a line of torch's."""

    TORCH = "# File: /usr/lib/python3/dist-packages/torch/distributed/_functional_collectives.py:{} in {}, code: return torch.ops._c10d_functional.{}("

    def graph(self, *nodes):
        text = 'class GraphModule(torch.nn.Module):\n    def forward(self, L_x_: "f32[4][1]cpu"):\n        l_x_ = L_x_\n\n'
        for number, (line, operation) in enumerate(nodes):
            where = self.TORCH.format(179, operation, operation) if line is None else f"# File: /u/m.py:{line}"
            called = f"torch.ops._c10d_functional.{operation}(x, 'sum', '1')" if line is None else operation
            text += f'        {where}\n        n{number}: "f32[4][1]cpu" = {called}\n\n'
        return text + f"        return (n{len(nodes) - 1},)\n"

    def first_difference(self, usual, odd):
        """The finding on rank 2, whose graph is another, and what `ranks` says of it."""
        logs = []
        case = f"case_{len(os.listdir(self.scratch))}"
        for rank in range(3):
            ids = {"rank": rank, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}
            metrics = {"co_name": "f", "co_filename": "/u/m.py", "co_firstlineno": 10, "compile_id": "0/0"}
            logs.append(self.save(f"{case}/rank_{rank}.log", record({"dynamo_start": {"stack": []}, **ids}),
                                  record({"dynamo_output_graph": {"sizes": {}}, **ids}, self.graph(*(odd if rank == 2 else usual))),
                                  record({"compilation_metrics": metrics, **ids})))
        database = self.ingest(*logs, name=case)
        finding, = [one for one in ask("findings", database)["findings"] if one["kind"] == "graph_divergence"]
        text = self.aspects(database)["2"][0]
        self.detail = finding["detail"]
        self.assertNotIn("_functional_collectives", text)
        return finding["place"], text

    def test_the_line_that_calls_it_is_named(self):
        call = ('11 in f, code: s = fcol.all_reduce(x.exp(), "sum", g)', "l_x_.exp()")
        place, text = self.first_difference([call, (None, "all_reduce")], [call, (None, "all_reduce_coalesced")])
        self.assertEqual((place["file"], place["line"]), ("/u/m.py", 11))
        self.assertIn('at /u/m.py:11 in f: s = fcol.all_reduce(x.exp(), "sum", g)', text)

    def test_a_line_that_the_log_lacks_is_not(self):
        other = ("11 in f, code: y = x.exp()", "l_x_.exp()")
        place, text = self.first_difference([other, (None, "all_reduce")], [other, (None, "all_gather_into_tensor")])
        self.assertIsNone(place)
        self.assertNotIn(" at /", text)
        self.assertEqual(self.detail, "The log has no line of the user's code for it; f begins at /u/m.py:10.")
        # The line had made its call before, or a call since may be that of the line.
        call = ('11 in f, code: y = fcol.all_reduce(x.exp(), "sum", g) * 2', "l_x_.exp()")
        rest = (call[0], "y * 2")
        place, _ = self.first_difference([call, (None, "all_reduce"), rest, (None, "all_reduce")], [call, (None, "all_reduce"), rest])
        self.assertIsNone(place)
        bare = ('11 in f, code: y = fcol.all_reduce(x, "sum", g) * 2', "y * 2")
        place, _ = self.first_difference([(None, "all_reduce"), bare, (None, "all_reduce")], [(None, "all_reduce"), bare])
        self.assertIsNone(place)

    def test_a_schedule_in_another_order_has_the_users_line(self):
        finding, = [one for one in ask("findings", self.job("diverge_order"))["findings"] if one["severity"] != "note"]
        self.assertEqual((os.path.basename(finding["place"]["file"]), finding["place"]["line"]), ("d_fcol.py", 24))


class OtherPrograms(AnswerTest):
    def test_the_graph_of_another_function_is_not_compared(self):
        findings = ask("findings", self.ingest(os.path.join(ROOT, "fixtures", "runs", "actors"), name="actors"))["findings"]
        (one,) = [one for one in findings if one["kind"] == "graph_divergence"]
        self.assertEqual((one["severity"], one["title"]), ("note", "Rank 0 compiled nll as 1/0, most others compiled answer"))
        self.assertIn("meant to do equal work is not in the inputs", one["detail"])
        # What it has of forward, which all compiled, is compared: its batches are those of both actors.
        self.assertIn("Rank 0 compiled 0/0 forward for other inputs: x: size [8, 16] → [16, 16]", [part["title"] for part in one["evidence"]])

    def job_of(self, *ranks):
        """Titles of the findings on ranks of which each has these compiles."""
        case = f"case_{len(os.listdir(self.scratch))}"
        for rank, compiles in enumerate(ranks):
            self.save(f"{case}/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", record({"str": ["/u/m.py", 1]}),
                      *(self.compiled(frame, function, operation, rank, f'L_x_: "f32[4][1]cuda:{rank}"', place) for frame, (function, operation, place) in enumerate(compiles)))
        return [one["title"] for one in ask("findings", self.ingest(os.path.join(self.scratch, case), name=case))["findings"]]

    def test_functions_of_one_name_at_other_lines_or_in_other_files_are_two(self):
        usual, other = ("forward", "add", ("/u/m.py", 10)), ("forward", "mul", ("/u/m.py", 20))
        self.assertEqual(["Rank 2 compiled forward (m.py:20) as 0/0, most others compiled forward (m.py:10)"], self.job_of([usual], [usual], [other]))
        self.assertEqual(["Rank 2 compiled forward (n.py:10) as 0/0, most others compiled forward (m.py:10)"],
                         self.job_of([usual], [usual], [("forward", "mul", ("/u/n.py", 10))]))
        # In another order each is compared with itself.
        self.assertEqual([], self.job_of([usual, other], [usual, other], [other, usual]))
        own = ("forward", "sub", ("/u/m.py", 20))
        changed, = self.job_of([usual, other], [usual, other], [own, usual])
        self.assertRegex(changed, "^Rank 2 compiled another graph: forward: mul.* → sub")

    def test_a_text_of_the_file_with_moved_functions_is_another_text(self):
        step, scale = ("step", "add", ("/u/m.py", 10)), ("scale", "mul", ("/u/m.py", 20))
        title, = self.job_of([step, scale], [step, scale], [("step", "add", ("/u/m.py", 11)), ("scale", "sub", ("/u/m.py", 21))])
        self.assertRegex(title, "^Rank 2 ran another text of m.py: 1/0 scale: mul")

    def test_a_title_on_a_rank_has_the_ids_of_that_rank(self):
        step, check = ("step", "add", ("/u/m.py", 10)), ("check", "mul", ("/u/m.py", 20))
        titles = self.job_of([step], [step], [check, ("step", "sub", ("/u/m.py", 10))])
        self.assertIn("Rank 2 compiled another graph: step: add", titles[0])
        self.assertNotIn("0/0 step", str(titles))

    def test_sizes_of_each_rank_hide_no_difference_of_the_program(self):
        for odd in range(3):
            case = f"sizes_{odd}"
            for rank in range(3):
                ids = {"rank": rank, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}
                extra = '        s: "f32[4][1]cpu" = torch.sigmoid(v);  v = None\n' if rank == odd else ""
                graph = (f'class GraphModule(torch.nn.Module):\n    def forward(self, L_x_: "f32[{rank + 2}, 4][4, 1]cpu"):\n        l_x_ = L_x_\n'
                         f'        v: "f32[4][1]cpu" = l_x_.narrow(0, 0, {rank + 2})\n{extra}        w: "f32[4][1]cpu" = v.sum(0)\n        return (w,)\n')
                self.save(f"{case}/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", record({"dynamo_start": {"stack": []}, **ids}),
                          record({"dynamo_output_graph": {"sizes": {}}, **ids}, graph),
                          record({"compilation_metrics": {"co_name": "f", "co_filename": "/u/m.py", "co_firstlineno": 10, "compile_id": "0/0"}, **ids}))
            findings = ask("findings", self.ingest(os.path.join(self.scratch, case), name=case))["findings"]
            first = [one for one in findings if one["ranks"]][0]
            self.assertEqual(("graph_divergence", "warning", [odd]), (first["kind"], first["severity"], first["ranks"]))
            self.assertIn("(no node) → s = torch.sigmoid", first["title"])
            self.assertEqual({"warning": 1}, {one["severity"]: 1 for one in findings if one["severity"] != "note"})

    def test_code_for_other_sizes_of_a_dynamic_dimension_is_a_note(self):
        findings = ask("findings", self.ingest(os.path.join(ROOT, "fixtures", "runs", "marked_sizes"), name="sizes"))["findings"]
        (one,) = [one for one in findings if one["kind"] == "code_divergence"]
        self.assertEqual((one["severity"], one["ranks"]), ("note", [1]))
        self.assertRegex(one["title"], r"^Rank 1 generated other code in 0/0 forward \[backward\] for other sizes: size 0 of x: \d+ → 12; size 0 of y: \d+ → 12$")


class Once(AnswerTest):
    def test_a_recompile_that_follows_from_another_cause_is_its_evidence(self):
        findings = ask("findings", self.job("libtrace_collectives"))["findings"]
        self.assertEqual([one["kind"] for one in findings], ["config_divergence"])
        self.assertIn("extra_compile", {one["kind"] for one in findings[0]["evidence"]})
        # What rank 2 issued in another order, as libtrace recorded it, follows from its schedule.
        self.assertIn("Rank 1 issued #0 of group data_parallel before #0 of group statistics, rank 2 the other way round",
                      {one["title"] for one in findings[0]["evidence"]})


class Clocks(RankTest):
    def late(self, first, last):
        for rank in range(3):
            begin, end = (first, last) if rank == 1 else ("08:30:01.000000", "08:30:09.000000")
            self.rank(rank, self.compile(rank, 0, time=begin), self.compile(rank, 1, function="g", time=end))
        return [one["title"] for one in self.job_findings() if one["kind"] == "late_rank"]

    def test_a_log_that_is_later_as_a_whole_may_be_of_another_clock(self):
        self.assertEqual(self.late("09:30:02.600000", "09:30:09.600000"), [
            "The log of rank 1 begins 60 min 2 s after those of most ranks and ends 60 min 1 s after them: the clock of its host is ahead, or it started later"])

    def test_a_log_that_ends_with_the_others_is_of_a_rank_that_began_late(self):
        self.assertEqual(self.late("08:30:08.000000", "08:30:09.000000"), ["Rank 1 began to compile 7.00 s after most ranks"])

    def test_a_rank_that_waits_for_others_before_it_compiles(self):
        """As an evaluator for the weights: the dumps show it."""
        began_ns = 1763713801 * 10**9  # 08:30:01 UTC
        for called_s, severity, told in ((0.5, "note", " By the dumps it waited 6.40 s of that for others in a collective."), (6.5, "warning", None)):
            for rank in range(3):
                at = began_ns + int((called_s if rank == 1 else 6.9) * 1e9)
                entry = {"frames": [{"name": "share", "filename": "/u/m.py", "line": 7}], "record_id": 0, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": 1,
                         "p2p_seq_id": 0, "op_id": 1, "profiling_name": "gloo:all_reduce", "time_created_ns": at, "duration_ms": None, "input_sizes": ((4,),),
                         "input_dtypes": ["Float"], "output_sizes": ((4,),), "output_dtypes": ["Float"], "state": "completed", "time_discovered_started_ns": None,
                         "time_discovered_completed_ns": None, "retired": True, "timeout_ms": 600_000, "is_p2p": False}
                config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}}
                with open(os.path.join(self.scratch, f"comm_lib_trace_rank_{rank}"), "wb") as file:
                    pickle.dump({"version": "2.10", "pg_config": config, "pg_status": {}, "entries": [entry]}, file, protocol=2)
                metrics = {"start_time": began_ns // 10**9 + (7 if rank == 1 else 0), "duration_us": 100_000}
                self.rank(rank, self.compile(rank, 0, time="08:30:08.000000" if rank == 1 else "08:30:01.000000", metrics=metrics),
                          self.compile(rank, 1, function="g", time="08:30:09.000000"))
            dumps = [os.path.join(self.scratch, f"comm_lib_trace_rank_{rank}") for rank in range(3)]
            found = [one for one in ask("findings", self.ingest(os.path.join(self.scratch, "job"), *dumps, name=f"late_{severity}"))["findings"] if one["title"].startswith("Rank 1 began")]
            self.assertEqual([severity], [one["severity"] for one in found])
            self.assertEqual(told is not None, found[0]["detail"].endswith(told or " By the dumps"), found[0]["detail"])

    def test_a_rank_that_begins_when_the_others_have_compiled_may_have_waited(self):
        """As where rank 0 fills the caches first, or a client takes part from the second round on."""
        begin = 1763713801  # 08:30:01 UTC
        for seconds, severity in ((6.9, "note"), (3, "warning"), (7.5, "warning")):
            for rank in range(3):
                metrics = {"start_time": begin + 7, "duration_us": 900000} if rank == 1 else {"start_time": begin, "duration_us": int(seconds * 1e6)}
                self.rank(rank, self.compile(rank, 0, time="08:30:08.000000" if rank == 1 else "08:30:01.000000", metrics=metrics),
                          self.compile(rank, 1, function="g", time="08:30:09.000000"))
            one, = (one for one in self.job_findings() if one["kind"] == "late_rank")
            self.assertEqual(one["severity"], severity, seconds)
            waited = " The others compiled until 0.10 s before: it may have waited for them."
            self.assertEqual(one["detail"].endswith(waited), severity == "note", one["detail"])


class Roles(RankTest):
    def test_work_that_one_rank_alone_has_does_not_make_it_slow(self):
        for count in (2, 3):
            for rank in range(count):
                own = [self.compile(rank, 0, metrics={"start_time_us": 1_000_000, "duration_us": 7_000_000}.items())]
                if rank == 0:
                    own.append(self.compile(rank, 1, function="package", metrics={"start_time_us": 9_000_000, "duration_us": 40_000_000}.items()))
                self.rank(rank, *own)
            one, = self.job_findings()
            self.assertEqual("note", one["severity"])
            self.assertEqual(["Rank 0 compiled for 47.0 s, 1 other for 7.0 s" if count == 2 else "Rank 0 compiled for 47.0 s, 2 others for 7.0 s"],
                             [each["title"] for each in one["evidence"]])

    def test_ranks_are_compared_within_a_role(self):
        for rank in range(3):
            self.rank(rank, self.compile(rank, 0, function="serve" if rank == 0 else "forward", script=f"/u/{'serve' if rank == 0 else 'train'}.py"))
        self.assertEqual([], self.job_findings())
        answer = ask("ranks", self.database)
        self.assertEqual([("0", "serve", []), ("1,2", "forward", [])],
                         [(one["ranks"]["ranks"], one["role"], one["aspects"]) for one in answer["classes"]])
        self.assertEqual((False, True), (answer["has_divergence"], answer["has_majority"]))
        self.assertIn("ranks 1,2 compiled the same thing", run("ranks", self.database))


class Constants(RankTest):
    def constants(self, value):
        for rank in range(2):
            guard = f"+- EQUALS_MATCH: G['{value}'] == {rank}  # y = x + {value}  # m.py:10 in f"
            guards = f"\nTREE_GUARD_MANAGER:\n+- RootGuardManager\n| +- GuardManager: source=G['{value}'], type=<class 'int'>\n| | {guard}\n"
            self.rank(rank, self.compile(rank, 0, graph('L_x_: "f32[4]"', "l_x_ = L_x_", f'y: "f32[4]" = l_x_ + {8 * rank}'), guards))
        return self.job_findings()

    def test_a_constant_of_the_rank_is_a_note_of_two_ranks_too(self):
        one, = self.constants("RANK")
        self.assertEqual(one["severity"], "note")
        self.assertIn("the rank is part of a computation", one["detail"])

    def test_a_multiple_of_the_rank_is_a_note_without_guards(self):
        """As a compile ahead of time writes it: vLLM's shards of the vocabulary."""
        for first, second, severity in ((0, 256, "note"), (2, 3, "warning"), (0.0, 0.5, "warning")):
            for rank, value in enumerate((first, second)):
                self.rank(rank, self.compile(rank, 0, graph('L_x_: "f32[4]"', "l_x_ = L_x_", f'y: "f32[4]" = l_x_ >= {value}')))
            one, = self.job_findings()
            self.assertEqual((one["kind"], one["severity"]), ("graph_divergence", severity))
            (self.assertIn if severity == "note" else self.assertNotIn)("is a multiple of the rank", one["detail"])

    def test_two_shards_on_more_ranks_are_a_note(self):
        """Ranks of a mesh hold the first and the second part of a table; one rank that is alone has another program."""
        for values, severity in (((0, 256, 0, 256), "note"), ((0, 0, 256, 256), "note"), ((256, 0, 256, 0), "warning"), ((0, 256, 256, 0), "warning"),
                                 ((0, 0, 0, 256), "warning")):
            for rank, value in enumerate(values):
                self.rank(rank, self.compile(rank, 0, graph('L_x_: "f32[4]"', "l_x_ = L_x_", f'y: "f32[4]" = l_x_ >= {value}')))
            one, = self.job_findings()
            self.assertEqual((one["kind"], one["severity"]), ("graph_divergence", severity), values)
            (self.assertIn if severity == "note" else self.assertNotIn)("is 0 on one half of the ranks", one["detail"])


if __name__ == "__main__":
    unittest.main()
