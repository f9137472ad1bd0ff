"""`tlparse findings` of recorded jobs: the cause is the first finding, what follows from it is its evidence, and nothing else alarms."""

import glob
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import ROOT, AnswerTest, ask, run, trace_lines  # noqa: E402

RUNS = os.path.join(ROOT, "fixtures", "runs")


class RecordedCauses(AnswerTest):
    def findings(self, scenario, *arguments):
        return ask("findings", self.job(scenario), *arguments)["findings"]

    def above_notes(self, findings):
        return [one for one in findings if one["severity"] != "note" and one["kind"] != "missing_rank"]


class Graphs(RecordedCauses):
    def test_a_rank_is_odd_in_one_graph_where_each_rank_has_another_graph_of_its_own(self):
        findings = self.findings("autocast_one")
        one, = self.above_notes(findings)
        self.assertEqual((one["kind"], one["ranks"], one["compiles"], one["place"]["line"]), ("graph_divergence", [3], ["0/0"], 19))
        self.assertTrue(one["title"].startswith("Rank 3 compiled another graph: 0/0 forward: linear: bf16[6, 64][64, 1]cpu → linear: f32[6, 64][64, 1]cpu"), one["title"])
        self.assertNotIn("majority", one["detail"] or "")
        note, = [one for one in findings if one["severity"] == "note"]
        self.assertEqual((note["title"], note["ranks"], note["compiles"], note["place"]["line"]),
                         ("Each of the 3 ranks has a graph of its own in 1/0 clip_loss", [0, 1, 3], ["1/0"], 36))
        self.assertIn("target = arange + 0 → target = arange + 6", note["detail"])
        self.assertIn("As where the rank is part of a computation.", note["detail"])
        ask("check", self.job("autocast_one"), "--no-divergence", code=1)

    def test_another_text_of_a_file_is_named(self):
        """PyTorch prints the lines of the file as it is now: the function that moved shows that it was another one."""
        one, = self.above_notes(self.findings("source_edited"))
        self.assertEqual((one["kind"], one["ranks"], one["compiles"]), ("graph_divergence", [1], ["0/0"]))
        self.assertTrue(one["title"].startswith("Rank 1 ran another text of losses.py: 0/0 focal: (no node) → gt_1 = l_target_ > 0, at "), one["title"])
        self.assertEqual(one["detail"], "consistency begins in line 11 of it on rank 1, in line 10 on ranks 0,2.")
        self.assertEqual(one["try"], "start all ranks with the same source files")

    def test_an_input_that_needs_no_gradient_on_one_rank(self):
        """Its collective is left out; the dumps tell the hang, the log what rank 2 was given."""
        one, = self.above_notes(ask("findings", self.ingest(os.path.join(RUNS, "frozen_parameter"), name="frozen"))["findings"])
        self.assertEqual((one["kind"], one["severity"], one["ranks"]), ("collective_divergence", "error", [2]))
        self.assertEqual([(other["kind"], other["title"]) for other in one["evidence"]],
                         [("input_divergence", "Rank 2 compiled 0/0 forward for other inputs: self.scale: requires_grad True → False")])

    def test_the_first_stage_of_a_pipeline_gets_data(self):
        """The same logs with the tensor as an argument that no parameter is, of rank 0: its input needs no gradient."""
        for swapped, severity in ({0: 2, 2: 0}, "note"), ({}, "warning"):
            folder = f"stages{len(swapped)}"
            for path in glob.glob(os.path.join(RUNS, "frozen_parameter", "*.log.zst")):
                with trace_lines.open_log(path) as log:
                    lines = log.read().decode().split("\n")
                rank = int(re.search(r"_rank_(\d)_", path).group(1))
                for number, line in enumerate(lines):
                    if not line.startswith("\t"):
                        line = line.replace('"is_parameter": true, ', "").replace("L['self']._parameters['scale']", "L['y']")
                        lines[number] = line.replace(f'"rank": {rank}', f'"rank": {swapped.get(rank, rank)}')
                self.save(f"{folder}/dedicated_log_torch_trace_rank_{swapped.get(rank, rank)}_abcdefgh.log", "\n".join(lines))
            one, = [one for one in ask("findings", self.ingest(os.path.join(self.scratch, folder), name=folder))["findings"] if one["kind"] == "input_divergence"]
            self.assertEqual((one["severity"], one["ranks"], one["title"]),
                             (severity, [0 if swapped else 2], f"Rank {0 if swapped else 2} compiled 0/0 forward for other inputs: y: requires_grad True → False"))
            self.assertEqual(one["detail"], "As of the first stage of a pipeline, whose input needs no gradient." if swapped else "")


    def test_ranks_that_get_data_of_other_lengths(self):
        """Three lengths in 0/0; in 0/1, whose length is dynamic, rank 0's 6 lets PyTorch save other tensors than 37 and 12 do."""
        findings = ask("findings", self.ingest(os.path.join(RUNS, "other_lengths"), name="other_lengths"))["findings"]
        self.assertEqual({one["severity"] for one in findings if one["kind"] in ("graph_divergence", "input_divergence", "recompiles")}, {"note"})
        self.assertEqual([(one["title"], one["ranks"]) for one in findings if one["kind"] in ("graph_divergence", "input_divergence")],
                         [("Each of the 3 ranks has inputs of its own of 0/0 forward", []),
                          ("Rank 0 compiled 0/1 forward for other inputs: x: size [8, 37, 32] → [8, 6, 32] (from rank 1 to rank 0; ranks 1,2 differ in it as well)", [0])])
        self.assertIn("As where the ranks get data of other sizes.", "".join(one["detail"] or "" for one in findings if one["title"].startswith("Each of ")))
        # Of two ranks alone: one finding for both compiles, with the lengths of the first.
        two = ask("findings", self.ingest(*sorted(glob.glob(os.path.join(RUNS, "other_lengths", "*")))[:2], name="two"))["findings"]
        self.assertIn("Rank 0 and rank 1 compiled 0/0 forward, 0/1 forward for different inputs: x: size [8, 25, 32] → [8, 11, 32] in 0/0 forward "
                      "(from rank 0 to rank 1)", [one["title"] for one in two])


class Recompiles(RecordedCauses):
    def test_modules_of_other_widths_are_no_sizes_that_vary(self):
        """mark_dynamic of the input could not be: the weights fix its size."""
        one, = ask("findings", self.ingest(os.path.join(RUNS, "two_encoders"), name="encoders"))["findings"]
        self.assertEqual((one["severity"], one["title"], one["try"]), ("note", "forward was recompiled once (size 1 of x: 24, 48)", None))
        self.assertTrue(one["detail"].endswith(" Parameters differ in size between these compiles: several modules run this code."), one["detail"])
        one, = ask("findings", self.ingest(os.path.join(RUNS, "threads"), name="threads"))["findings"]
        self.assertEqual(one["severity"], "note")
        self.assertIn("forward was recompiled 5 times (size 0 of self.first.bias: 96, 48; size 0 of x: 2, 3", one["title"])
        self.assertIn("several modules run this code", one["detail"])

    def test_recompiles_of_one_rank_alone_cost_what_it_compiled_longer(self):
        first, *_ = ask("findings", self.ingest(os.path.join(RUNS, "other_sizes_later"), name="later"))["findings"]
        self.assertEqual((first["kind"], first["severity"], first["ranks"]), ("extra_compile", "warning", [1]))
        self.assertEqual(first["try"], "torch._dynamo.mark_dynamic(x, 0) and torch._dynamo.mark_dynamic(x, 1) before the call, if these sizes are meant to "
                         "vary (against 2 of the 3 recompiles)")
        self.assertIn("Rank 1 compiled for 325.2 s, 1 other for 144.5 s", [one["title"] for one in first["evidence"]])

    def test_the_guard_of_most_recompiles_leads_and_text_of_the_same_processes_adds_nothing(self):
        """A list that grows; err.txt holds the same warning of both ranks."""
        findings = ask("findings", self.ingest(os.path.join(RUNS, "growing_list"), name="growing_list"))["findings"]
        one, = self.above_notes(findings)
        self.assertTrue(one["title"].startswith("forward was recompiled 7 times on each of the 2 ranks (len(self.past): 1, 2, 3, 4, 5, 6, …; not self.past); "), one["title"])
        self.assertEqual(one["place"]["line"], 9)
        self.assertEqual(one["try"], "keep len(self.past) the same, or pass a tensor in its place: each length is compiled for itself (against 6 of the 7 recompiles)")
        # The graph of 1/1 has L_temperature_ as an input: PyTorch made the number dynamic.
        self.assertEqual([(other["title"], other["try"]) for other in findings[1:]],
                         [("postprocess was recompiled once on each of the 2 ranks (temperature: 1.0)", None)])

    def test_a_recompile_that_failed_is_told_once(self):
        findings = ask("findings", self.ingest(os.path.join(RUNS, "dynamic_recompile_fails"), name="dynamic_recompile_fails"))["findings"]
        one, = self.above_notes(findings)
        self.assertEqual((one["kind"], one["compiles"], one["try"]), ("compile_failed", ["4/1"], None))
        self.assertIn("An earlier compile of it finished; it was compiled again after 4/0: tensor 'x' size mismatch at index 0. expected 8, actual 5.", one["detail"])
        self.assertEqual([other["title"] for other in findings if other["title"].startswith("forward was recompiled")], [])
        # A function of PyTorch that wraps what two lines call: its variables are not the user's.
        self.assertNotIn("mark_dynamic", " ".join(other["try"] or "" for other in findings))


class Codes(RecordedCauses):
    def test_one_key_for_two_processors_is_said_once(self):
        one, = self.above_notes(self.findings("cpu_capability"))
        self.assertEqual((one["kind"], one["severity"], one["ranks"]), ("one_key_two_codes", "warning", [1]))
        self.assertEqual(one["title"], "Rank 1 generated other code than ranks 0,2 under 3 equal cache keys: for vectors of 8 floats instead of 16")
        self.assertIn("ATEN_CPU_CAPABILITY", one["try"])
        self.assertEqual([other["kind"] for other in one["evidence"]], ["code_divergence"])
        self.assertTrue(one["evidence"][0]["title"].endswith(": code for vectors of 8 floats instead of 16"), one["evidence"][0]["title"])


class Failures(RecordedCauses):
    def test_what_the_compiler_wrote(self):
        one, = self.above_notes(self.findings("cpp_headers_missing"))
        self.assertEqual(one["title"], "All 4 ranks failed to compile 0/0 embed: InductorError: CppCompileError: C++ compile error: "
                         "fatal error: torch/csrc/inductor/cpp_prefix.h: No such file or directory")
        self.assertTrue(one["place"]["file"].endswith("/pretrain_moe.py"))
        self.assertIn("development files of PyTorch", one["try"])

    def test_a_host_without_a_compiler(self):
        one, = self.above_notes(self.findings("no_compiler"))
        self.assertEqual((one["kind"], one["ranks"]), ("compile_failed", [3]))
        self.assertIn("InvalidCxxCompiler: No working C++ compiler found", one["title"])
        self.assertIn("CXX", one["try"])
        self.assertEqual([(other["kind"], other["ranks"]) for other in one["evidence"]], [("stopped_first", [0, 1, 2])])

    def test_a_failure_that_is_suppressed_loses_no_work(self):
        findings = self.findings("suppress_errors")
        failed, config = self.above_notes(findings)
        self.assertEqual((failed["kind"], failed["severity"], failed["ranks"]), ("compile_failed", "warning", [1]))
        self.assertTrue(failed["detail"].startswith("torch._dynamo.config.suppress_errors is set: the function runs eagerly instead."), failed["detail"])
        self.assertEqual((config["kind"], config["ranks"]), ("config_divergence", [1]))
        self.assertIn("suppress_errors False → True; post_grad_custom_post_pass None → a value that the log does not have", config["title"])
        self.assertEqual([one["kind"] for one in config["evidence"]], ["cache_bypassed"])

    def test_an_exception_of_the_traced_code_ends_the_rank(self):
        """Dynamo logs it as a graph break; rank 1's log ends together with rank 0's."""
        job = self.ingest(os.path.join(RUNS, "raise_traced"), name="raise_traced")
        one, = ask("findings", job)["findings"]
        self.assertEqual((one["kind"], one["severity"], one["ranks"], one["place"]["line"]), ("compile_failed", "error", [0], 13))
        self.assertEqual(one["title"], "Rank 0 raised ValueError('label out of range: 99') in 0/0 forward while it was traced; its log has no compile after that")
        self.assertEqual([other["title"] for other in one["evidence"]], ["Rank 1's log ends inside 0/0 forward, in inductor_codecache_torch_key"])
        self.assertEqual([row["state"] for row in ask("status", job)["rows"]], ["failed", "compiling"])

    def test_a_compile_that_was_skipped_is_not_finished(self):
        """The recording above with another reason why Dynamo gave up."""
        folder = os.path.join(self.scratch, "skipped")
        os.mkdir(folder)
        for path in glob.glob(os.path.join(RUNS, "raise_traced", "*")):
            text = subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True).stdout
            # Of the lines that are not of payloads.
            text = b"\n".join(line if line.startswith(b"\t") else line.replace(b"Observed exception", b"Other thing") for line in text.split(b"\n"))
            with open(os.path.join(folder, os.path.basename(path).removesuffix(".zst")), "wb") as file:
                file.write(text)
        ends, breaks = self.above_notes(ask("findings", self.ingest(folder, name="skipped_job"))["findings"])
        self.assertEqual(ends["title"], "Rank 1's log ends inside 0/0 forward, in inductor_codecache_torch_key")
        self.assertEqual((breaks["kind"], breaks["ranks"]), ("graph_break", [0]))

    def test_a_backward_that_failed_is_called_that(self):
        one, = self.above_notes(self.findings("backward_fails_2_6"))
        self.assertEqual((one["kind"], one["ranks"], one["title"]),
                         ("compile_failed", [2], "Rank 2 failed to compile the backward of 0/0 forward: KeyError: 'sum'"))

    def test_those_that_compiled_a_backward_are_not_those_that_compiled_the_forward(self):
        """Rank 0's log is cut behind the forwards and inside its backward of 0/0."""
        for count, text in ((233, "Ranks 0,1 compiled it."), (200, "Rank 1 compiled it."), (150, "Rank 1 compiled it.")):
            folder = os.path.join(self.scratch, f"backward_{count}")
            shutil.copytree(os.path.join(ROOT, "fixtures", "logs", "backward_fails_2_6"), folder)
            path, = glob.glob(os.path.join(folder, "*_rank_0_*"))
            data = subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True).stdout
            records = [one for one in trace_lines.read_log(path) if isinstance(one, trace_lines.Record)]
            os.remove(path)
            with open(path.removesuffix(".zst"), "wb") as file:
                file.write(data[:records[count].byte_offset] if count < len(records) else data)
            one = next(one for one in ask("findings", self.ingest(folder, name=f"cut_{count}"))["findings"] if one["kind"] == "compile_failed")
            self.assertIn(text, one["detail"])

    def test_an_export_that_failed(self):
        """No record has the exception: the graph as far as it was traced shows that there was one."""
        one, = self.findings("export_fails")
        self.assertEqual((one["kind"], one["severity"], len(one["logs"])), ("compile_failed", "warning", 1))
        self.assertRegex(one["title"], r"^A trace of make_fx failed in log serve_pack\.py-pid14623 after serve_pack\.py:26; the log names no exception$")
        self.assertEqual((one["place"]["line"], one["place"]["code"]), (26, "if good.sum() < 3:"))


class Ends(RecordedCauses):
    def test_a_hang_in_a_compile_explains_that_a_collective_was_not_reached(self):
        one, = self.above_notes(ask("findings", self.ingest(os.path.join(RUNS, "hang_in_backward"), name="hang"))["findings"])
        self.assertEqual((one["kind"], one["ranks"]), ("stopped_first", [2]))
        self.assertEqual(one["title"], "Rank 2's log ends inside the backward of 0/0 forward, in pass.post_grad_passes.post_grad_custom_post_pass; "
                         "rank 0 finished that backward")
        self.assertEqual([(other["kind"], other["ranks"]) for other in one["evidence"]], [("collective_not_reached", [2])])

    def test_of_two_ranks_the_one_that_ended_before_the_others_compile(self):
        """The other is ended later on, inside a compile."""
        database = self.job("killed_restart_2_6")
        one, = self.above_notes(ask("findings", database, "--launch", "1")["findings"])
        self.assertEqual((one["kind"], one["ranks"]), ("stopped_first", [1]))
        self.assertEqual(one["title"], "Rank 1's log ends after 0/0 forward; rank 0 went on to 1/0 nll")
        self.assertEqual([(other["kind"], other["ranks"]) for other in one["evidence"] if other["kind"] == "stopped_first"], [("stopped_first", [0])])
        note = next(one for one in ask("findings", database)["findings"] if one["kind"] == "restarted")
        self.assertIn("ended earlier on some ranks: Rank 1's log ends after 0/0 forward", note["title"])
        # The first launch did not come to its backwards, so that the times are not compared.
        self.assertIn("Launch 2 had 5 cache hits, 4 of them on 2 entries that earlier launches had filled",
                      [one["title"] for one in ask("findings", database)["findings"]])

    def test_entries_that_a_rank_hit_in_the_first_launch_were_not_filled_by_it(self):
        """Rank 1's cache was filled before the job, rank 0's in the first launch."""
        note, = ask("findings", self.ingest(os.path.join(RUNS, "cold_then_warm"), name="cold_then_warm"))["findings"]
        self.assertEqual(note["title"], "Launch 2 had 14 cache hits, 7 of them on 7 entries that earlier launches had filled: "
                                        "1.0 s of compile time on its slowest rank instead of 3.5 s in launch 1")

    def test_a_break_before_what_the_log_ends_in_is_a_note(self):
        """A compiled step of an optimizer: Dynamo compiles it by itself, which the log does not reach."""
        end, graph_break = ask("findings", self.ingest(os.path.join(RUNS, "ends_in_step"), name="ends_in_step"))["findings"]
        # Either may have been ended by the launcher, within a second of the other's end.
        self.assertEqual((end["kind"], end["severity"], end["ranks"]), ("stopped_first", "error", []))
        self.assertEqual(end["title"], "The logs of both ranks end within 0.33 s: rank 0 inside 2/0 wrapper, rank 1 outside compiles")
        self.assertIn("Which rank was the first to stop is not in the logs.", end["detail"])
        self.assertEqual([other["title"] for other in end["evidence"]],
                         ["Rank 1's log ends after 0/0 forward; rank 0 went on to 1/0 apply_update", "Rank 0's log ends inside 2/0 wrapper, in bytecode_tracing",
                          "Rank 0 began to compile 1/0 apply_update, 2/0 wrapper, rank 1 did not"])
        self.assertEqual((graph_break["kind"], graph_break["severity"], graph_break["try"]), ("graph_break", "note", None))
        self.assertEqual(graph_break["detail"], "The log ends inside the next compile, 2/0 wrapper, of a function of PyTorch.")

    def test_a_slow_rank_among_half_of_the_ranks_is_a_note(self):
        database = self.ingest(os.path.join(RUNS, "own_sizes"), name="own_sizes")
        for world, severity in ((7, "warning"), (8, "note")):
            slow, = [one for one in ask("findings", database, "--world-size", str(world))["findings"] if one["kind"] == "slow_rank"]
            self.assertEqual((slow["severity"], slow["ranks"]), (severity, [1]))

    def test_a_compile_that_stood_still_is_named_with_its_phase(self):
        one, = self.above_notes(self.findings("stalled_compile"))
        self.assertEqual((one["kind"], one["ranks"]), ("slow_rank", [2]))
        self.assertRegex(one["detail"], r"^Most of the difference in 1/0 forward \(4\d\.\d s more\): 45\.00 s more in pass\.post_grad_passes\.post_grad_custom_pre_pass\."
                         r" The logs of ranks 0,1 end during that compile: whether they waited for it to the end is not in them\.$")
        self.assertEqual((one["compiles"], one["place"]["line"]), (["1/0"], 42))


class History(RecordedCauses):
    def exceptions(self, recording):
        connection = sqlite3.connect(self.job(recording))
        self.addCleanup(connection.close)
        return connection.execute("SELECT rank, label, status, fail_type FROM compile_history WHERE fail_type IS NOT NULL ORDER BY 1, 2").fetchall()

    def test_a_compile_that_was_refused_and_a_backward_that_failed_have_their_exception(self):
        self.assertEqual(self.exceptions("recompile_limit_2_6"),
                         [(1, "0/8", "skipped", "RecompileLimitExceeded"), (1, "1/8", "skipped", "RecompileLimitExceeded")])
        self.assertIn(" refused at the…\n", run("history", self.job("recompile_limit_2_6")))  # of 80 columns
        self.assertEqual(self.exceptions("backward_fails_2_6"), [(2, "0/0", "failed", "KeyError")])


class Limits(RecordedCauses):
    def test_the_limit_on_one_rank(self):
        findings = self.findings("recompile_limit_2_6")
        self.assertEqual([one["kind"] for one in findings if one["severity"] != "note"], ["recompile_limit", "graph_break"])
        one = findings[0]
        self.assertEqual(one["ranks"], [1])
        self.assertTrue(one["title"].startswith("Only rank 1 recompiled residual_vq: 7 times (size 0 of x: 20, 23, 26, 29, 32, 35, …); "
                                                "1 further attempt was refused at the recompile limit"), one["title"])
        self.assertEqual(one["try"], "leave out what sets torch._dynamo.config.automatic_dynamic_shapes to False, as "
                         "torch.compile(dynamic=False) does, if size 0 of x is meant to vary")
        other = [one["title"] for one in one["evidence"] if one["kind"] == "recompile_limit"]
        self.assertEqual(len(other), 1)
        self.assertTrue(other[0].startswith("Only rank 1 recompiled stft_loss: 7 times"), other)
        # Values, not a chain of guards.
        for evidence in one["evidence"]:
            self.assertNotIn("mismatch", evidence["title"])
        self.assertEqual([row["state"] for row in ask("status", self.job("recompile_limit_2_6"))["rows"]], ["between_compiles"] * 2)
        ask("check", self.job("recompile_limit_2_6"), "--no-divergence", code=1)


if __name__ == "__main__":
    unittest.main()
