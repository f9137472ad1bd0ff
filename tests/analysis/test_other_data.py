"""Graphs that differ by the data of a rank, and graphs that differ by its program."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import record  # noqa: E402
from test_first_sentences import RankTest, graph  # noqa: E402

SIZE, MODE = "0/0: tensor 'x' size mismatch at index 0. expected 8, actual 4", "0/0: GLOBAL_STATE changed: training"


def tall(dtype="f32"):
    return graph(f'L_x_: "{dtype}[8, 4]"', "l_x_ = L_x_", f't: "{dtype}[4, 8]" = l_x_.t()', f'y: "{dtype}[4, 8]" = t.tanh()')


def wide(rows=4):
    return graph(f'L_x_: "f32[{rows}, 8]"', "l_x_ = L_x_", f'y: "f32[{rows}, 8]" = l_x_.tanh()')


class OtherData(RankTest):
    def compiled(self, rank, number, text, reason=None, stage="aot_joint_graph", time="08:30:01.000000", ends=True, frame=0):
        ids = {"rank": rank, "frame_id": frame, "frame_compile_id": number, "attempt": 0}
        line, name = 10 * (frame + 1), "fg"[frame]
        stack = [{"line": 3, "name": "<module>", "filename": 1, "loc": "f(x)"}, {"line": line, "name": name, "filename": 1, "loc": "y"}]
        done = {"co_name": name, "co_filename": "/u/m.py", "co_firstlineno": line, "compile_id": f"{frame}/{number}"}
        parts = [record({"dynamo_start": {"stack": stack}, **ids}, time=time)]
        if reason:
            parts.append(record({"artifact": {"name": "recompile_reasons", "encoding": "json"}, **ids}, json.dumps([reason]), time))
        if ends:
            parts += [record({"dynamo_output_graph": {"sizes": {}}, **ids}, text, time), record({stage: {}, **ids}, text, time),
                      record({"compilation_metrics": done, **ids}, time=time)]
        return "".join(parts)

    def graph_findings(self, ranks):
        for rank, compiles in enumerate(ranks):
            self.rank(rank, record({"str": ["/u/m.py", 1]}), *compiles)
        return [(one["kind"], one["severity"]) for one in self.job_findings() if one["kind"] == "graph_divergence"]

    def test_each_rank_compiled_both_graphs_for_sizes_in_an_order_of_its_own(self):
        for reason, severity in ((SIZE, "note"), (MODE, "warning")):
            orders = [(tall(), wide()), (wide(), tall()), (tall(), wide())]
            found = self.graph_findings([[self.compiled(rank, 0, a), self.compiled(rank, 1, b, reason)] for rank, (a, b) in enumerate(orders)])
            self.assertEqual(found, [("graph_divergence", severity)])

    def test_a_size_that_one_rank_had_twice_before_it_was_dynamic(self):
        """The others compiled it as any size at once: which sizes came first says nothing."""
        dynamic = graph('s5: "Sym(s5)", L_x_: "f32[s5, 8]"', "l_x_ = L_x_", 'y: "f32[s5, 8]" = l_x_.tanh()')
        for reason, severity in ((SIZE, "note"), (MODE, "warning")):
            found = self.graph_findings([[self.compiled(rank, 0, wide(4)), self.compiled(rank, 1, wide(1) if rank == 2 else dynamic, reason)] for rank in range(3)])
            self.assertEqual(found, [("graph_divergence", severity)])

    def test_sizes_of_what_needs_no_gradients_are_each_ranks_own(self):
        """Also of a rank that evaluates what the others train."""
        for stages, severity in ((["aot_inference_graph"] * 3, "note"), (["aot_joint_graph"] * 3, "warning"),
                                 (["aot_joint_graph", "aot_joint_graph", "aot_inference_graph"], "note")):
            found = self.graph_findings([[self.compiled(rank, 0, wide(rows), stage=stage)] for rank, (rows, stage) in enumerate(zip((8, 8, 16), stages))])
            self.assertEqual(found, [("graph_divergence", severity)], stages)

    def test_sizes_of_a_function_beside_one_that_was_compiled_again_for_sizes(self):
        """The data of both ranks have several sizes; a weight of another size is no data."""
        for reason, name, severity in ((SIZE, "L_x_", "note"), (MODE, "L_x_", "warning"), (SIZE, "L_self_weight_", "warning")):
            def sized(rows, name=name):
                return graph(f'{name}: "f32[{rows}, 8]"', f"{name.lower()} = {name}", f'y: "f32[{rows}, 8]" = {name.lower()}.tanh()')
            found = self.graph_findings([[self.compiled(rank, 0, sized(rows)), self.compiled(rank, 0, tall(), frame=1),
                                          self.compiled(rank, 1, wide(), reason.replace("0/0", "1/0"), frame=1)] for rank, rows in enumerate((8, 16))])
            self.assertEqual(found, [("graph_divergence", severity)], (reason, name))

    def test_another_type_of_one_rank_goes_before_the_end_of_all(self):
        """Rank 1 ends inside its compile, ranks 0 and 2 have compiled; which was first the logs do not show."""
        for rank, dtype in enumerate(("bf16", "bf16", "bf16", "f32")):
            self.rank(rank, record({"str": ["/u/m.py", 1]}), self.compiled(rank, 0, tall(dtype), ends=rank != 1, time=f"08:30:01.0{rank}0000"))
        for name, run in (("logs", None), ("run", {"version": 1, "command": ["torchrun"], "directory": "/u", "host": "h", "started_us": 1, "exit_code": 1})):
            if run:
                us = 1_795_854_601_000_000
                path = os.path.join(self.scratch, "job", "run.json")
                ends = [{"pid": 100, "parent_pid": 99, "started_us": us - 9_000_000, "ended_us": us + 900_000, "exit_code": 1}]
                ends += [{"pid": 4242 + rank, "parent_pid": 100, "rank": rank, "started_us": us - 9_000_000, "ended_us": us + 300_000 + 300_000 * (rank != 2),
                          "signal": 6 if rank == 2 else 15, "at": "/u/m.py:10 in f, which called all_reduce"} for rank in range(4)]
                text = "gloo::EnforceNotMet: 128 vs 64. Received data size doesn't match expected size. Is there a distributed collective mismatch in your code?"
                with open(path, "w") as file:
                    json.dump({**run, "processes": ends, "printed_aborts": [{"rank": 2, "text": text}]}, file)
            with self.subTest(name):
                first = self.job_findings()[0]
                self.assertEqual(("graph_divergence", "error", [3]), (first["kind"], first["severity"], first["ranks"]))
                self.assertTrue(first["title"].startswith("Rank 3 compiled another graph: 0/0 f: "), first["title"])
                self.assertEqual("crashed" if run else "stopped_first", first["evidence"][0]["kind"])
                if run:
                    self.assertEqual(["stopped_first"], [one["kind"] for one in first["evidence"][0]["evidence"]])


if __name__ == "__main__":
    unittest.main()
