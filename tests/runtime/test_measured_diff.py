#!/usr/bin/env python3
"""tlparse diff of two measured runs: which lines and kernels got slower."""

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


if __name__ == "__main__":
    unittest.main()
