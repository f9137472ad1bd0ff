"""What the compiler tuned, and CUDA graphs: recordings of fixtures/tuning."""

import glob
import hashlib
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import ROOT, AnswerTest, ask, run  # noqa: E402

TUNING = os.path.join(ROOT, "fixtures", "tuning")


def recording(name):
    return os.path.join(TUNING, name)


def changed(name, folder, factor=1, replace=(b"\0", b"")):
    """Copies of a recording in which everything takes longer by this factor, or one text is another."""
    for path in glob.glob(os.path.join(recording(name), "*.zst")):
        text = subprocess.run(["zstdcat", path], capture_output=True, check=True).stdout.replace(*replace)
        first = min(float(ts) for ts in re.findall(rb'"ts": ([\d.]+)', text))
        text = re.sub(rb'"ts": ([\d.]+)', lambda ts: b'"ts": %.1f' % (first + factor * (float(ts[1]) - first)), text)
        text = re.sub(rb'"duration_us": (\d+)', lambda us: b'"duration_us": %d' % (factor * int(us[1])), text)
        text = re.sub(rb'("has_payload": ")\w+(.*\n)((?:\t.*\n)+)', lambda one: one[1] + hashlib.md5(
            one[3][1:-1].replace(b"\n\t", b"\n")).hexdigest().encode() + one[2] + one[3], text)
        with open(os.path.join(folder, os.path.basename(path)[:-4]), "wb") as file:
            file.write(text)


class Autotune(AnswerTest):
    def test_choices_of_a_cpu(self):
        database = self.ingest(recording("cpu"))
        answer = ask("autotune", database)
        self.assertEqual([("addmm", "64x512, 64x256, 256x512"), ("addmm", "64x64, 64x512, 512x64")],
                         [(kernel["kernel"], kernel["shapes"]) for kernel in answer["kernels"]])
        first = answer["kernels"][0]
        self.assertEqual(("0/0 inner", False), (first["compile"], first["is_at_run_time"]))
        self.assertEqual([("0", 2, 0, "addmm", 5.74025500100106), ("1", 2, 0, "addmm", 5.715403000067454)],
                         [(one["rank"], one["choices"], one["triton_choices"], one["best"], one["best_ms"]) for one in first["on_ranks"]])
        self.assertEqual([0.86577675, 1.11193825], [one["precompile_seconds"] for one in first["on_ranks"]])
        self.assertEqual([0.260704, 0.26027225], [one["benchmark_seconds"] for one in first["on_ranks"]])
        self.assertEqual([], answer["failed"])
        text = run("autotune", database)
        self.assertRegex(text, r"0/0 inner +addmm +64x512, 64x256\S* +0,1 +2 +addmm +5\.7 ms +1\.37 s")
        # PyTorch's own sum of that rank is compile_time_autotune_time_us.
        self.assertIn("tuning took 2.76 s of 5.40 s of compiles, of rank 1, which tuned longest", text)

    def test_ranks_that_chose_differently(self):
        answer = ask("autotune", self.ingest(recording("choices")))
        first, second, at_run_time = answer["kernels"]
        self.assertEqual([("triton_mm_0", 0.104, 1, 0.104), ("addmm", 0.131, 2, 0.15)],
                         [(one["best"], one["best_ms"], one["triton_place"], one["triton_ms"]) for one in first["on_ranks"]])
        self.assertEqual(["addmm", "cpp_CppMicroGemmRef_1"], [one["best"] for one in second["on_ranks"]])
        self.assertIn("BLOCK_M=64", first["on_ranks"][0]["best_description"])
        self.assertEqual(("triton_poi_fused_relu_0", True, "0/0 inner"), (at_run_time["kernel"], at_run_time["is_at_run_time"], at_run_time["compile"]))
        self.assertIsNone(at_run_time["on_ranks"][0]["best"])

    def test_choices_that_failed(self):
        database = self.ingest(recording("choices"))
        memory, _, time = ask("autotune", database)["failed"]
        self.assertEqual(("OutOfResources", True, "addmm", "0,1"), (memory["exception"], memory["is_out_of_memory"], memory["kernel"], memory["ranks"]["ranks"]))
        self.assertEqual((None, False, "Precompilation timed out after 3600s"), (time["exception"], time["is_out_of_memory"], time["message"]))
        self.assertIn("failed in addmm of 0/0 inner on ranks 0,1: ACC_TYPE='tl.float32'", run("autotune", database))

    def test_nothing_was_tuned(self):
        database = self.ingest(recording("graphs"))
        self.assertEqual([], ask("autotune", database)["kernels"])
        self.assertIn("no kernel was tuned", run("autotune", database))

    def test_frozen_constants_are_no_difference(self):
        """The generated code names the ids of constants: they differ in each process."""
        kinds = [finding["kind"] for finding in ask("findings", self.ingest(recording("cpu")))["findings"]]
        self.assertEqual(["cache_bypassed"], kinds)


class Findings(AnswerTest):
    def findings(self, *inputs):
        database = self.ingest(*inputs)
        return [finding for finding in ask("findings", database)["findings"] if finding["kind"] == "autotuning"], database

    def test_ranks_chose_differently(self):
        (memory, differently), database = self.findings(recording("choices"))
        self.assertEqual(("note", [1], ["0/0"]), (differently["severity"], differently["ranks"], differently["compiles"]))
        self.assertEqual("Tuning chose addmm (131 µs) on rank 1 and triton_mm_0 (104 µs) on rank 0 for addmm of 0/0 inner (16x128, 16x64, 64x128)",
                         differently["title"])
        self.assertIn("took 1.26 times as long, each measured on its rank: how fast the other one would be there is not in the log. Ranks chose differently for 1 more kernel.", differently["detail"])
        self.assertEqual(4, differently["row_count"])
        # The code differs for that reason, and a key that does not hold it is no defect of the cache.
        self.assertEqual(["code_divergence", "one_key_two_codes"], sorted(one["kind"] for one in differently["evidence"]))
        self.assertEqual(["cache_bypassed", "autotuning", "autotuning"], [one["kind"] for one in ask("findings", database)["findings"]])
        self.assertEqual(("note", [], 2), (memory["severity"], memory["ranks"], memory["rank_count"]))
        self.assertEqual("2 of 7 choices for addmm of 0/0 inner (16x128, 16x64, 64x128) need more shared memory or registers than the device has",
                         memory["title"])
        self.assertEqual(4, memory["row_count"])

    def test_within_noise(self):
        """The kernel whose times differ most takes as long on both ranks."""
        folder = os.path.join(self.scratch, "noise")
        os.mkdir(folder)
        changed("choices", folder, replace=(b'\\"best_time\\": 0.131', b'\\"best_time\\": 0.105'))
        differently, = [one for one in self.findings(folder)[0] if one["title"].startswith("Tuning chose")]
        self.assertEqual("note", differently["severity"])
        self.assertIn("Both are equally fast, within the noise of the measurement.", differently["detail"])

    def test_time_that_tuning_takes(self):
        self.assertEqual([], self.findings(recording("cpu"))[0])
        slow = os.path.join(self.scratch, "slow")
        os.mkdir(slow)
        changed("cpu", slow, factor=20)
        (cost,), _ = self.findings(slow)
        self.assertEqual(("note", [], 2, ["0/0"]), (cost["severity"], cost["ranks"], cost["rank_count"], cost["compiles"]))
        self.assertEqual("Tuning took 55 s of 1 min 48 s of compiles on rank 1", cost["title"])
        self.assertIn("That is 51 %, for 2 kernels.", cost["detail"])
        self.assertEqual(2, cost["row_count"])


class CudaGraphs(AnswerTest):
    def test_recordings(self):
        database = self.ingest(recording("graphs"))
        graphs = ask("compile", database, "0/0")["cuda_graphs"]
        self.assertEqual([(False, 2), (True, 1)], [(one["is_backward"], one["count"]) for one in graphs["recordings"]])
        self.assertEqual([0.042981, 0.0219515], [round(one["seconds"], 7) for one in graphs["recordings"]])
        self.assertEqual([], graphs["skips"])
        self.assertIn("CUDA graphs: 2 of the forward recorded in 43.0 ms; 1 of the backward", run("compile", database, "0/0"))
        self.assertEqual([], ask("findings", database)["findings"])
        compiled, = ask("history", database)["compiles"]
        self.assertEqual((3, None), (compiled["cuda_graphs"], compiled["cuda_graph_skip"]))
        self.assertIn("3 CUDA graphs", run("history", database))

    def test_sizes(self):
        """PyTorch tells them in text alone: three graphs are recorded in four calls of three sizes."""
        database = self.ingest(recording("sizes"))
        graphs = ask("compile", database, "0/0")["cuda_graphs"]
        self.assertEqual(([3], ["8", "16", "32"]), ([one["count"] for one in graphs["recordings"]], graphs["sizes"]))
        self.assertRegex(run("compile", database, "0/0"), r"CUDA graphs: 3 of the forward recorded in \S+ ms; sizes 8, 16, 32\n")

    def test_a_run_without(self):
        """The same compile, whose graphs are not recorded."""
        folder = os.path.join(self.scratch, "without")
        os.mkdir(folder)
        changed("graphs", folder, replace=(b"CUDAGraphNode.record", b"CUDAGraphNode.replay"))
        before = self.ingest(recording("graphs"))
        text = run("diff", before, folder)
        self.assertIn("CUDA graphs: 2 of the forward, 1 of the backward recorded → none in the log", text)
        compiled, = ask("diff", before, folder)["comparisons"][0]["compiles"]
        self.assertEqual((2, 1, 0), (compiled["a_cuda_graphs"]["forward_count"], compiled["a_cuda_graphs"]["backward_count"], compiled["b_cuda_graphs"]["forward_count"]))
        self.assertFalse(compiled["is_equal"])
        self.assertNotIn("CUDA graphs", run("diff", before, recording("graphs")))

    def test_another_reason(self):
        """The name of the node, which each compile gives anew, is no difference."""
        sides = {}
        for name, reason in (("node", b"cpu device (primals_7)"), ("reason", b"multiple devices (primals_1)")):
            sides[name] = os.path.join(self.scratch, name)
            os.mkdir(sides[name])
            changed("skip", sides[name], replace=(b"cpu device (primals_1)", reason))
        before = self.ingest(recording("skip"))
        self.assertNotIn("CUDA graphs", run("diff", before, sides["node"]))
        text = " ".join(run("diff", before, sides["reason"]).split())
        self.assertRegex(text, r"CUDA graphs: none: cpu device \(primals_1\) at \S*skip.py:8 → none: multiple devices \(primals_1\) at \S*skip.py:8")

    def test_why_none_was_recorded(self):
        database = self.ingest(recording("skip"))
        skip, = ask("compile", database, "0/0")["cuda_graphs"]["skips"]
        self.assertEqual(("cpu device (primals_1)", 8), (skip["reason"], skip["line"]))
        finding, = ask("findings", database)["findings"]
        self.assertEqual(("cuda_graph_skipped", "note", ["0/0"]), (finding["kind"], finding["severity"], finding["compiles"]))
        self.assertEqual("No CUDA graph for 0/0 step because of skip.py:8: cpu device (primals_1)", finding["title"])
        self.assertIn("move it to the GPU", finding["try"])
        self.assertEqual(1, finding["row_count"])
        compiled, = ask("history", database)["compiles"]
        self.assertEqual(0, compiled["cuda_graphs"])
        self.assertIn("cpu device (primals_1)", compiled["cuda_graph_skip"])
        self.assertIn("no CUDA graph", run("history", database))


if __name__ == "__main__":
    unittest.main()
