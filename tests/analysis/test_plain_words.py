"""Sentences say what differs, where and how, in words of the log: reasons, lines of the user's code, names of logs."""

import glob
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, AnswerTest, another_process, ask, edit_log, first_log, record, run  # noqa: E402


class Places(AnswerTest):
    def findings(self, database, kind):
        return [one for one in ask("findings", database)["findings"] if one["kind"] == kind]

    def test_the_reason_that_a_program_gives_for_a_break_is_said(self):
        one = self.findings(self.job("fsdp2"), "graph_break")[0]
        self.assertIn("Call to `torch._dynamo.disable()` (reason: skipping FSDP hooks)", one["title"])

    def test_of_a_library_the_line_of_the_user_that_ran_it_is_named(self):
        one, = self.findings(self.job("ddp_optimizer_2_6"), "graph_break")
        self.assertEqual((os.path.basename(one["place"]["file"]), one["place"]["line"]), ("d_ddp.py", 29))
        self.assertIn("inner breaks the graph in distributed.py:1511, called from d_ddp.py:29", one["title"])

    def test_a_recompile_in_a_library_has_the_line_of_the_user(self):
        ids = {"frame_id": 0, "attempt": 0}
        stack = [{"line": 7, "name": "main", "filename": 0}, {"line": 30, "name": "wrapper", "filename": 1}]
        library = "/usr/lib/python3/dist-packages/torch/optim/optimizer.py"
        lines = [record({"str": ["/u/train.py", 0]}), record({"str": [library, 1]})]
        for number in range(2):
            if number:
                lines.append(record({"artifact": {"name": "recompile_reasons", "encoding": "json"}, **ids, "frame_compile_id": 1},
                                    '["0/0: tensor \'x\' size mismatch at index 0. expected 4, actual 1"]'))
            lines.append(record({"dynamo_start": {"stack": stack}, **ids, "frame_compile_id": number}))
            lines.append(record({"compilation_metrics": {"co_name": "wrapper", "co_filename": library, "co_firstlineno": 30}, **ids, "frame_compile_id": number}))
        one, = self.findings(self.ingest(self.save("library.log", *lines)), "recompiles")
        self.assertEqual((one["place"]["file"], one["place"]["line"]), ("/u/train.py", 7))
        self.assertIn("The code is of a library, /usr/lib/python3/dist-packages/torch/optim/optimizer.py:30", one["detail"])
        # A size of 1 is compiled apart, whatever is marked.
        self.assertIsNone(one["try"])
        self.assertTrue(one["detail"].endswith(". Sizes 0 and 1 are compiled apart from others: mark_dynamic does not change that."), one["detail"])

    def test_advice_counts_the_recompiles_that_it_is_for(self):
        one = next(one for one in self.findings(self.job("dynamic"), "recompiles") if one["title"].startswith("auto "))
        self.assertIn("(size 0 of x: 4, 5, 1, 0;", one["title"])
        self.assertTrue(one["try"].startswith("torch._dynamo.mark_dynamic(x, 0) before the call, if this size is meant to vary (against 1 of the 3 recompiles)"), one["try"])


class Logs(AnswerTest):
    def test_logs_with_made_up_names_are_called_by_their_folders(self):
        source = first_log("recompiles_2_6")
        folder = os.path.join(self.scratch, "steps")
        for number, step in enumerate(("cold", "warm")):
            os.makedirs(os.path.join(folder, step, "logs"))
            target = os.path.join(folder, step, "logs", f"dedicated_log_torch_trace_abcdefg{number}.log")
            another_process(source, target) if number else shutil.copy(source, target + ".gz")
        database = self.ingest(folder)
        finding = next(one for one in ask("findings", database)["findings"] if one["kind"] == "recompiles")
        self.assertEqual(finding["logs"], ["log:cold", "log:warm"])
        self.assertIn(" in each of 2 logs", finding["title"])
        self.assertNotIn("abcdefg", run("ranks", database))

    def test_logs_of_one_folder_are_called_by_script_and_process(self):
        folder = os.path.join(self.scratch, "one")
        os.makedirs(folder)
        shutil.copy(first_log("recompiles_2_6"), os.path.join(folder, "dedicated_log_torch_trace_abcdefg0.log.gz"))
        another_process(first_log("recompiles_2_6"), os.path.join(folder, "dedicated_log_torch_trace_abcdefg1.log"))
        finding = next(one for one in ask("findings", self.ingest(folder))["findings"] if one["kind"] == "recompiles")
        self.assertEqual(finding["logs"], ["log:s_recompiles.py-pid15261", "log:s_recompiles.py-pid15261#2"])


class Differences(AnswerTest):
    def edited(self, change):
        """A job of three ranks; `change` is made on rank 2."""
        folder = os.path.join(self.scratch, f"edited_{len(os.listdir(self.scratch))}")
        os.mkdir(folder)
        for path in sorted(glob.glob(os.path.join(LOGS, "train_order", "*_rank_[023]_*"))):
            edit_log(path, os.path.join(folder, os.path.basename(path).removesuffix(".zst")), change if "_rank_2_" in path else lambda item: item.payload)
        return self.ingest(folder, name=os.path.basename(folder))

    def test_an_input_of_another_size_is_named_with_both(self):
        def wider(item):
            return item.payload.replace(b"f32[32, 16]", b"f32[48, 16]").replace(b"# File: ", b"# File: /other", 1) if item.kind == "dynamo_output_graph" else item.payload
        one = next(one for one in ask("findings", self.edited(wider))["findings"] if one["kind"] == "graph_divergence")
        self.assertIn("L_x_: f32[32 → 48, 16][16, 1]cpu", one["title"])

    def test_what_is_missing_of_collectives_and_why(self):
        text = " ".join(run("ranks", self.job("crash_in_compile")).split())
        self.assertIn("collectives: 1/0 grad_sync [inference]: all_reduce_('sum') [3280] float32 group 1 and 1 more are not in the log: "
                      "the compile failed here", text)

    def test_a_graph_that_differs_is_said_by_its_node_and_line(self):
        def other_order(item):
            return item.payload.replace(b"l_x_ @ l_w_", b"l_w_ @ l_x_") if item.kind == "dynamo_output_graph" else item.payload
        database = self.edited(other_order)
        one = next(one for one in ask("findings", database)["findings"] if one["kind"] == "graph_divergence")
        self.assertRegex(one["title"], r"^Rank 2 compiled another graph: 0/0 layer_0: matmul = l_x_ @ l_w_ → matmul = l_w_ @ l_x_ at .*job\.py:39 in ")
        self.assertNotIn("gm: line", run("ranks", database))

    def test_another_function_is_no_other_graph(self):
        one = next(two for one in ask("findings", self.job("diverge_order"))["findings"] for two in one["evidence"] if two["kind"] == "graph_divergence")
        self.assertEqual(one["title"], "Rank 2 compiled block_other_order as 0/0, most others compiled block")


class Damage(AnswerTest):
    def title(self, *lines):
        database = self.ingest(self.save("damaged/job.log", *lines), name=str(len(lines)))
        return next(one["title"] for one in ask("findings", database)["findings"] if one["kind"] == "import_errors")

    def test_a_second_rank_in_one_process_loses_nothing(self):
        start = [record({"dynamo_start": {"stack": []}, "rank": rank, "frame_id": rank, "frame_compile_id": 0, "attempt": 0}) for rank in (0, 5)]
        self.assertEqual(self.title(*start), "Records of one process name different ranks in job.log: rank_conflict ×1")

    def test_the_lines_of_a_hole_are_counted(self):
        lines = [record({"str": ["/u/a.py", 0]}), 'V1121 08:30:01.000000 4242 a.py:3] {"dynamo_output_graph": {"si\n', *["\tlost\n"] * 9, record({"str": ["/u/b.py", 1]})]
        self.assertRegex(self.title(*lines), r" in 1 place \(10 lines\) of job\.log: ")


if __name__ == "__main__":
    unittest.main()
