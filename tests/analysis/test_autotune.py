"""What the compiler tuned, and CUDA graphs: recordings of fixtures/tuning."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import ROOT, AnswerTest, ask, run  # noqa: E402

TUNING = os.path.join(ROOT, "fixtures", "tuning")


def recording(name):
    return os.path.join(TUNING, name)


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
        self.assertEqual(["triton_mm_0", "addmm"], [one["best"] for one in second["on_ranks"]])
        self.assertIn("BLOCK_M=64", first["on_ranks"][0]["best_description"])
        self.assertEqual(("triton_poi_fused_relu_0", True, "0/0 inner"), (at_run_time["kernel"], at_run_time["is_at_run_time"], at_run_time["compile"]))
        self.assertIsNone(at_run_time["on_ranks"][0]["best"])

    def test_choices_that_failed(self):
        database = self.ingest(recording("choices"))
        memory, time = ask("autotune", database)["failed"]
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


if __name__ == "__main__":
    unittest.main()
