#!/usr/bin/env python3
"""tlparse try where a trial is no cure or no whole run: fullgraph=True at a graph break, a backend that is left out, a command that is ended
after some steps, the graph of a compile alone. The programs are stand-ins, as in test_try.py; the logs are PyTorch's.
"""

import os
import sys
import unittest

import harness
from test_try import Try

# A program that steps an optimizer, compiles one function of two sizes, and leaves a log: of as many steps as it makes.
STEPS = """
    import os, sys
    import torch._dynamo.convert_frame as convert
    import torch.optim.optimizer as optim
    class Tensor:
        marked = ()
    def auto(x):
        convert.ConvertFrameAssert()(sys._getframe(), None, skip=1)
    x, done = Tensor(), 0
    def leave():
        name = "marked.log" if x.marked or done < 3 else "plain.log"
        with open(os.path.join(os.path.dirname(__file__), name), "rb") as log:
            with open(os.path.join(os.environ["TORCH_TRACE"], "dedicated_log_torch_trace_a.log"), "wb") as copy:
                copy.write(log.read())
    try:
        for done in range(1, 6):
            auto(x)
            optim.step("only")
    finally:
        leave()
    print("whole", done)
    """


class Steps(Try):
    def setUp(self):
        super().setUp()
        self.script("torch/optim/__init__.py", "")
        self.script("torch/optim/optimizer.py", """
            hooks = []
            register_optimizer_step_post_hook = hooks.append
            def step(optimizer):
                for hook in hooks:
                    hook(optimizer, (), {})
            """)
        self.write_logs()
        self.command("run", "-q", "-o", "job", "--", sys.executable, self.script("s_dynamic.py", STEPS))
        self.finding = self.recompiles("job")

    def test_as_many_as_show_it(self):
        document = self.try_it(self.finding, "--steps", "4", expect=0)
        self.assertEqual(document["verdict"], "confirmed")
        self.assertIn("tlparse ended the command after step 4", document["reason"])
        self.assertEqual([document["after"]["exit_code"], [one["kind"] for one in document["changes"]]], [0, ["mark_dynamic", "steps"]])
        self.assertGreater(document["before"]["run_id"], 1)  # the shortened run without the change
        self.assertEqual(harness.rows(self.path("job", "trace.db"),
                                      "SELECT v.name, e.base_run_id FROM experiment e JOIN experiment_verdict v ON v.id = e.verdict ORDER BY e.id"),
                         [["refuted", 1], ["confirmed", 1]])
        self.assertEqual(self.recompiles("job")["experiment"]["verdict"], "confirmed")  # the old run is still the latest

    def test_too_few(self):
        document = self.try_it(self.finding, "--steps", "2")
        self.assertEqual([document["verdict"], document["reason"]],
                         ["inconclusive", "ended after step 2, the command does not show the finding, also without the change"])
        self.assertFalse(os.path.exists(self.path("tl_try_changed")))

    def test_more_than_there_are(self):
        document = self.try_it(self.finding, "--steps", "100", expect=0)
        self.assertIn("no optimizer made 100 steps", document["reason"])


# What fullgraph=True makes of a frame: PyTorch's own exception handler is left out, and the graph may not break.
WHOLE = """
    import os, shutil, sys
    import torch._dynamo.convert_frame as convert
    def forward():
        try:
            convert.ConvertFrame()(sys._getframe(), None, skip=1)
        except ValueError as error:
            print("raised", error)
            return True
    name = os.environ.get("WHOLE_LOG", "whole.log") if forward() else "broken.log"
    shutil.copy(os.path.join(os.path.dirname(__file__), name), os.path.join(os.environ["TORCH_TRACE"], "dedicated_log_torch_trace_a.log"))
    """


class Fullgraph(Try):
    """Logs of PyTorch 2.14.1: a print breaks the graph; with fullgraph=True the compile fails at that line."""

    def setUp(self):
        super().setUp()
        self.script("torch/_dynamo/convert_frame.py", """
            class ConvertFrameAssert:
                _one_graph = False
                def __call__(self, frame, cache_entry, *, skip=0):
                    if self._one_graph:
                        raise ValueError("graph break")
            class ConvertFrame:
                def __init__(self):
                    self._inner_convert = ConvertFrameAssert()
                def __call__(self, frame, cache_entry, *, skip=0):
                    try:
                        self._inner_convert(frame, cache_entry, skip=skip + 1)
                    except ValueError:
                        pass
            """)
        for name in ("broken", "whole"):
            self.write(f"{name}.log", harness.log_bytes(os.path.join(harness.ROOT, "fixtures", "runs", "fullgraph", f"{name}.log.zst")))
        self.command("run", "-q", "-o", "job", "--", sys.executable, self.script("prn.py", WHOLE))
        self.finding = next(one for one in self.findings("job") if one["kind"] == "graph_break" and one["place"]["line"] == 11)

    def test_the_line_ends_the_graph(self):
        self.assertEqual([[one["kind"], one["function"]] for one in self.finding["changes"]], [["fullgraph", "forward"]])
        document = self.try_it(self.finding, expect=0)
        self.assertEqual(document["verdict"], "confirmed")
        self.assertIn("forward fails at this line, prn.py:11: Unsupported: ", document["reason"])
        self.assertIn("what the break costs was not measured", document["reason"])

    def test_another_line(self):
        data = harness.log_bytes(os.path.join(harness.ROOT, "fixtures", "runs", "fullgraph", "whole.log.zst"))
        self.write("other.log", data.replace(b"line 11,", b"line 10,").replace(b'"fail_user_frame_lineno": 11', b'"fail_user_frame_lineno": 10'))
        document = self.try_it(self.finding, environment={"WHOLE_LOG": self.path("other.log")})
        self.assertEqual(document["verdict"], "changed")
        self.assertIn("fails at another line, prn.py:10, and what comes after it was not traced", document["reason"])

    def test_no_line(self):
        document = self.try_it(self.finding, environment={"WHOLE_LOG": self.path("broken.log")})
        self.assertEqual([document["verdict"], document["reason"]], ["refuted", "forward was compiled as one graph, and no line ended it"])


class Graph(Try):
    """Logs of PyTorch 2.14.1 in which Inductor failed: its compiler of C++, and a pass of the program's own. What runs the script of the
    graph is a stand-in, which raises what the test says."""

    def setUp(self):
        super().setUp()
        self.script("torch/_inductor/compile_fx.py", "def compile_fx_inner(): pass\ndef compile_fx(): pass\n")
        self.stand_in = self.script("stand_in", f"""\
            #!{sys.executable}
            import os, sys
            script = open(sys.argv[1]).read()
            if "TORCH_TRACE" in script or "class Repro(torch.nn.Module)" not in script:
                raise SystemExit(7)
            import torch._inductor.compile_fx as compile_fx, torch._inductor.config as config
            compile_fx.compile_fx_inner()
            class InductorError(Exception):
                pass
            if os.environ.get("STAND_IN") and not config.disabled_passes:
                raise InductorError(os.environ["STAND_IN"])
            """)
        os.chmod(self.stand_in, 0o755)
        self.script("torch/_inductor/config.py", "disabled_passes = ''\n")

    def failed(self, name):
        log = self.write(f"{name}.log", harness.log_bytes(os.path.join(harness.ROOT, "fixtures", "runs", "inductor_fails", f"{name}.log.zst")))
        copy = f"import shutil, os; shutil.copy({log!r}, os.environ['TORCH_TRACE'] + '/dedicated_log_torch_trace_b.log')"
        self.command("run", "-q", "-o", "job", "--", sys.executable, "-c", copy)
        return next(one for one in self.findings("job") if one["kind"] == "compile_failed")

    def try_graph(self, finding, raised, expect):
        return self.try_it(finding, "--graph", "--python", self.stand_in, expect=expect, environment={"STAND_IN": raised})

    def test_the_graph_alone(self):
        finding = self.failed("compiler")
        self.assertEqual([[one["kind"], one["value"]] for one in finding["changes"]], [["backend", "aot_eager"]])
        document = self.try_graph(finding, "InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, '/bin/false')", 0)
        self.assertEqual([document["verdict"], document["changes"]], ["confirmed", []])  # a backend has no place in it
        self.assertIn("the graph alone fails in the same way, without the job: InductorError: InvalidCxxCompiler", document["reason"])
        self.assertEqual(self.try_graph(finding, "", 1)["verdict"], "refuted")
        document = self.try_graph(finding, "another", 1)
        self.assertEqual([document["verdict"], document["reason"]], ["changed", "the graph alone fails otherwise: InductorError: another"])

    def test_the_graph_with_the_change(self):
        finding = self.failed("pass")
        self.assertEqual([[one["name"], one["value"]] for one in finding["changes"]],
                         [["torch._inductor.config.disabled_passes", "'post_grad_custom_post_pass'"]])
        self.assertIn("It came out of Inductor's pass post_grad_passes.post_grad_custom_post_pass.", finding["detail"])
        document = self.try_graph(finding, "KeyError: 'scale_3'", 0)
        self.assertEqual([document["verdict"], document["reason"]],
                         ["confirmed", "the graph alone fails in the same way, and not with the change; the job was not run"])
        self.assertEqual(len(harness.rows(self.path("job", "trace.db"), "SELECT id FROM experiment")), 2)

    def test_a_finding_without_a_graph(self):
        _, errors = self.command("try", "job", self.job()["id"], "--graph", "--yes", expect=2)
        self.assertIn("runs the graph of a compile that failed", errors)


class Backend(Try):
    def test_it_is_left_out(self):
        self.script("torch/_dynamo/__init__.py", "def optimize(backend='inductor', **options):\n    return backend\n")
        for name, data in (("failed", harness.log_bytes(os.path.join(harness.ROOT, "fixtures", "runs", "inductor_fails", "compiler.log.zst"))),
                           ("fine", harness.log_bytes(harness.bundled("simple")))):
            self.write(f"{name}.log", data.replace(b"cxx.py", b"job.py"))
        self.command("run", "-q", "-o", "job", "--", sys.executable, self.script("job.py", """
            import os, shutil
            import torch._dynamo
            name = {"inductor": "failed.log", "aot_eager": "fine.log"}[torch._dynamo.optimize("inductor")]
            shutil.copy(os.path.join(os.path.dirname(__file__), name), os.path.join(os.environ["TORCH_TRACE"], "dedicated_log_torch_trace_a.log"))
            """))
        finding = next(one for one in self.findings("job") if one["kind"] == "compile_failed")
        document = self.try_it(finding)
        self.assertEqual([document["verdict"], document["reason"]], ["inconclusive", "the new run did not compile step"])
        self.assertIn(f"experiment {document['id']}: inconclusive, the new run did not compile step", " ".join(self.command("findings", "job", "--all")[0].split()))


if __name__ == "__main__":
    unittest.main()
