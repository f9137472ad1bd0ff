"""Exceptions that come out of compiled code are placed at the line of which the failed statement was made."""

import json
import os
import shutil
import unittest

from answers import ROOT, AnswerTest, ask

RUNS = os.path.join(ROOT, "fixtures", "runs")
# By what each fails; its statement.
FAILED = {
    # aot_eager: the graph is run node by node. The second input has another type than the weights.
    "raises_in_graph": (22, "    return self.out(torch.sigmoid(self.project(x)))",
                        "addmm = torch.ops.aten.addmm.default(primals_2, primals_3, t) in the graph of 4/1 forward"),
    # Generated code calls an operation of ATen.
    "raises_in_kernel": (6, "    return torch.linalg.solve_triangular(torch.linalg.cholesky(c), x.T, upper=False)",
                         "the call of torch.ops.aten._linalg_check_errors.default in the generated code of 0/0 whiten, line 107"),
}


class CompiledLines(AnswerTest):
    def check(self, inputs, line, code, statement):
        first = ask("findings", self.ingest(*inputs))["findings"][0]
        self.assertEqual((first["kind"], first["place"]["line"], first["place"]["code"]), ("crashed", line, code.strip()))
        name = os.path.basename(first["place"]["file"])
        self.assertIn(f" It came of {statement}, which was made of {name}:{line}.", first["detail"])

    def test_the_line_of_the_failed_statement(self):
        for name, expected in FAILED.items():
            with self.subTest(name):
                self.check([os.path.join(RUNS, name)], *expected)

    def test_an_index_that_a_kernel_refuses(self):
        """Its traceback ends in the call of a kernel of several lines; one of them has an index."""
        first = ask("findings", self.ingest(os.path.join(RUNS, "index_out_of_bounds")))["findings"][0]
        self.assertEqual((first["kind"], first["place"]["file"], first["place"]["line"]), ("crashed", "/rec/look.py", 5))
        self.assertIn(" The index is of index in cpp_fused_index_mul_relu_sum_0, at look.py:5.", first["detail"])

    def test_by_a_printed_traceback(self):
        source = os.path.join(RUNS, "raises_in_graph")
        with open(os.path.join(source, "run.json")) as file:
            traceback = next(one["traceback"] for one in json.load(file)["processes"] if one["rank"] == 1)
        self.save("job/stderr.txt", *(f"[rank1]: {line}\n" for line in traceback.splitlines()))
        for log in os.listdir(source):
            if log.endswith(".zst"):
                shutil.copy(os.path.join(source, log), os.path.join(self.scratch, "job", log))
        self.check([os.path.join(self.scratch, "job")], *FAILED["raises_in_graph"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
