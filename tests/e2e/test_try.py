#!/usr/bin/env python3
"""tlparse try: runs a command again with a change, and says what came of it.

The jobs are programs with a package of PyTorch's names and none of its work (as in test_run.py): the hook of `run` makes its changes to
that package, and the program leaves the real log that fits them. What PyTorch does with such a change is not tested here.
"""

import json
import os
import subprocess
import sys
import textwrap
import unittest

import jsonschema

import harness

ANSWERS = os.path.join(harness.ROOT, "schemas", "json", "answers")

# One function that is compiled, whose argument is marked or not.
SIZES = """
    import os, sys
    import torch, torch._dynamo.convert_frame as convert
    class Tensor:
        marked = ()
    def auto(x):
        return convert.ConvertFrameAssert()(sys._getframe(), None, skip=1)
    x = Tensor()
    skip = auto(x)
    name = "marked" if x.marked else "plain"
    source = os.environ.get("SIZES_LOG_" + name.upper(), os.path.join(os.path.dirname(__file__), name + ".log"))
    print(name, skip, os.environ.get("OMP_NUM_THREADS"))
    with open(source, "rb") as log, open(os.path.join(os.environ["TORCH_TRACE"], "dedicated_log_torch_trace_a.log"), "wb") as copy:
        copy.write(log.read())
    raise SystemExit(int(os.environ.get("SIZES_EXIT", 0)))
    """

# Four ranks, of which rank 2 sets an option after the import.
OPTIONS = """
    import os, shutil, sys
    import torch._dynamo.convert_frame as convert
    import torch._inductor.config as config
    from torch._inductor.compile_fx import compile_fx
    given = os.environ.get("GIVEN_TO_COMPILE")
    for rank in range(4):
        config.max_fusion_size = 13 if rank == 2 and not given else 64
        convert.ConvertFrameAssert()(sys._getframe(), None, skip=1)
        compile_fx(config_patches={"max_fusion_size": 13} if rank == 2 and given else None)
        if given == "late" and rank == 2:
            config.max_fusion_size = 13
        name = "rank_%d.log" % rank if rank != 2 or config.max_fusion_size == 13 else "rank_2_as_1.log"
        shutil.copy(os.path.join(os.path.dirname(__file__), name),
                    os.path.join(os.environ["TORCH_TRACE"], "dedicated_log_torch_trace_rank_%d_a.log" % rank))
    """


class Try(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        self.script("torch/__init__.py", "")
        self.script("torch/version.py", "__version__ = '2.14.1'\n")
        self.script("torch/_dynamo/__init__.py", """
            def mark_dynamic(tensor, dimension):
                tensor.marked = (*tensor.marked, dimension)
            """)
        self.script("torch/_dynamo/convert_frame.py", """
            class ConvertFrameAssert:
                def __call__(self, frame, cache_entry, *, skip=0):
                    return skip
            class ConvertFrame:
                def __init__(self):
                    self._inner_convert = ConvertFrameAssert()
                def __call__(self, frame, cache_entry, *, skip=0):
                    return self._inner_convert(frame, cache_entry, skip=skip + 1)
            """)
        self.script("torch/_inductor/__init__.py", "")
        self.script("torch/_inductor/config.py", "max_fusion_size = 64\n")
        self.script("torch/_inductor/compile_fx.py", """
            import torch._inductor.config as config
            def compile_fx_inner():
                pass
            def compile_fx(config_patches=None):
                vars(config).update(config_patches or {})
            """)

    def script(self, name, text):
        return self.write(name, textwrap.dedent(text).encode())

    def command(self, *arguments, expect=0, environment=None):
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "RANK", "PYTHONPATH"))}
        variables["PYTHONPATH"] = self.folder
        done = subprocess.run([harness.TLPARSE, *arguments], cwd=self.folder, capture_output=True, check=False, timeout=250,
                              stdin=subprocess.DEVNULL, env={**variables, **(environment or {})})
        out, errors = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        self.assertEqual(done.returncode, expect, out + errors)
        return out, errors

    def write_logs(self):
        """plain.log, in which a function auto is compiled for three sizes; marked.log, which ends before the second."""
        lines = harness.log_bytes(harness.bundled("dynamic")).splitlines(keepends=True)
        for name, end in (("plain.log", b'"frame_compile_id": 3'), ("marked.log", b'"frame_compile_id": 1')):
            self.write(name, b"".join(lines[:next(i for i, line in enumerate(lines) if end in line)]))

    def job(self, environment=None):
        """The finding on the recompiles of the job in the folder `job`."""
        self.write_logs()
        self.command("run", "-q", "-o", "job", "--", sys.executable, self.script("s_dynamic.py", SIZES), environment=environment)
        return self.recompiles("job")

    def recompiles(self, folder):
        return next(one for one in self.findings(folder) if one["changes"] and one["changes"][0]["function"] == "auto")

    def findings(self, folder):
        return json.loads(self.command("findings", folder, "--json")[0])["findings"]

    def document(self, name, text):
        with open(os.path.join(ANSWERS, f"{name}.schema.json"), encoding="utf-8") as file:
            schema = json.load(file)
        document = json.loads(text)
        jsonschema.Draft7Validator(schema, resolver=jsonschema.RefResolver(f"file://{ANSWERS}/", schema)).validate(document)
        return document

    def try_it(self, finding, *arguments, expect=1, environment=None):
        out, _ = self.command("try", "job", finding["id"], "--yes", "--json", *arguments, expect=expect, environment=environment)
        return self.document("try", out)


class Sizes(Try):
    def test_confirmed(self):
        finding = self.job()
        self.assertEqual([[one["kind"], one["name"], one["value"]] for one in finding["changes"]], [["mark_dynamic", "x", "0"]])
        self.assertIn(finding["changes"][0]["text"], finding["try"])
        self.assertIsNone(finding["experiment"])
        document = self.try_it(finding, expect=0)
        self.assertEqual([document["verdict"], document["before"]["exit_code"], document["after"]["exit_code"]], ["confirmed", 0, 0])
        self.assertLess(document["after"]["compile_us"], document["before"]["compile_us"])
        # The first run is still the one that answers are about.
        self.assertEqual(self.recompiles("job")["experiment"]["verdict"], "confirmed")
        self.assertIn(f"confirmed by experiment {document['id']}", " ".join(self.command("findings", "job", "--all")[0].split()))
        self.assertEqual(harness.rows(self.path("job", "trace.db"),
                                      "SELECT e.id, v.name, e.run_id > e.base_run_id FROM experiment e JOIN experiment_verdict v ON v.id = e.verdict"),
                         [[document["id"], "confirmed", 1]])

    def test_the_recorded_environment_is_used_and_said(self):
        finding = self.job(environment={"OMP_NUM_THREADS": "3"})
        _, errors = self.command("try", "job", finding["id"], "--yes")
        self.assertIn("variable  OMP_NUM_THREADS=3\n", errors)
        self.assertIn("marked 2 3\n", errors)  # what the command printed

    def test_refuted(self):
        finding = self.job()
        document = self.try_it(finding, environment={"SIZES_LOG_MARKED": self.path("plain.log")})
        self.assertEqual(document["verdict"], "refuted")
        self.assertIn("still there: ", document["reason"])

    def test_changed(self):
        finding = self.job()
        other = self.write("other.log", harness.log_bytes(harness.bundled("failures_2_6")))
        document = self.try_it(finding, environment={"SIZES_LOG_MARKED": other})
        self.assertEqual(document["verdict"], "changed")
        self.assertTrue(document["came"])

    def test_changed_to_another_line(self):
        """The function is still compiled again, for a guard of another line."""
        finding = self.job()
        lines = harness.log_bytes(self.path("plain.log")).splitlines(keepends=True)
        fewer = self.write("fewer.log", b"".join(lines[:next(i for i, line in enumerate(lines) if b'"frame_compile_id": 2' in line)]))
        document = self.try_it(finding, environment={"SIZES_LOG_MARKED": fewer})
        self.assertEqual(document["verdict"], "changed")
        self.assertIn("there is another of its kind: auto was recompiled once", document["reason"])
        self.assertEqual(len(document["came"]), 1)
        text = " ".join(self.command("findings", "job", "--all")[0].split())
        self.assertIn(f"experiment {document['id']}: {document['reason']}", text)
        self.assertNotIn(".; ", text)  # a hint of PyTorch ends with a full stop

    def test_inconclusive(self):
        finding = self.job()
        document = self.try_it(finding, environment={"SIZES_EXIT": "3"})
        self.assertEqual([document["verdict"], document["reason"]],
                         ["inconclusive", "the finding is not there, and the command ended with exit code 3"])
        document = self.try_it(finding, "--", sys.executable, "-c", "print(1)")
        self.assertEqual([document["verdict"], document["reason"]], ["inconclusive", "the new run's processes logged no compile"])
        self.assertIn(f"experiment {document['id']}: inconclusive, {document['reason']}", " ".join(self.command("findings", "job", "--all")[0].split()))
        document = self.try_it(finding, "--", sys.executable, "-c", "open('/nowhere/x', 'w')")
        self.assertRegex(document["reason"], "^the new run's processes logged no compile, and the command ended with exit code 1: .*FileNotFoundError")
        # A program in which the change has no place.
        copy = f"import shutil, os; shutil.copy({self.path('marked.log')!r}, os.environ['TORCH_TRACE'] + '/dedicated_log_torch_trace_b.log')"
        document = self.try_it(finding, "--", sys.executable, "-c", copy)
        self.assertEqual(document["reason"], "no process of the new run made this change: torch._dynamo.mark_dynamic(x, 0)")
        self.assertEqual(len(harness.rows(self.path("job", "trace.db"), "SELECT id FROM experiment")), 4)

    def test_nothing_runs_unasked(self):
        finding = self.job()
        before = sorted(os.listdir(self.folder))
        _, errors = self.command("try", "job", finding["id"], expect=2)
        self.assertIn("--yes runs the command", errors)
        self.assertIn("change    torch._dynamo.mark_dynamic(x, 0) when auto of ", errors)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_what_cannot_be_changed_is_said(self):
        log = self.write("failures.log", harness.log_bytes(harness.bundled("failures_2_6")))
        copy = f"import shutil, os; shutil.copy({log!r}, os.environ['TORCH_TRACE'] + '/dedicated_log_torch_trace_b.log')"
        self.command("run", "-q", "-o", "job", "--", sys.executable, "-c", copy)
        other = next(one for one in self.findings("job") if not one["changes"])
        _, errors = self.command("try", "job", other["id"], "--yes", expect=2)
        self.assertIn("nothing of this finding can be changed from outside of the program", errors)
        _, errors = self.command("try", "job", "no-such-id", "--yes", expect=2)
        self.assertIn("there is no finding 'no-such-id'", errors)


class Options(Try):
    def record(self, **environment):
        for rank in range(4):
            data = harness.log_bytes(harness.bundled("diverge_config_2_6", rank))
            self.write(f"rank_{rank}.log", data)
            if rank == 1:  # the log that rank 2 would leave: that of rank 1 under its number
                self.write("rank_2_as_1.log", data.replace(b'"rank": 1', b'"rank": 2'))
        self.command("run", "-q", "-o", "job", "--", sys.executable, self.script("ranks.py", OPTIONS), environment=environment)
        finding = next(one for one in self.findings("job") if one["kind"] == "config_divergence")
        self.assertEqual([[one["kind"], one["name"], one["value"]] for one in finding["changes"]],
                         [["option", "torch._inductor.config.max_fusion_size", "64"]])
        return finding

    def test_a_rank_with_another_option(self):
        self.assertEqual(self.try_it(self.record(), expect=0)["verdict"], "confirmed")

    def test_a_rank_that_gives_it_to_torch_compile(self):
        finding = self.record(GIVEN_TO_COMPILE="1")
        self.assertEqual(self.try_it(finding, expect=0, environment={"GIVEN_TO_COMPILE": "1"})["verdict"], "confirmed")
        # Set where the hook does not see it, the change is not tried, and nothing is refuted.
        document = self.try_it(finding, environment={"GIVEN_TO_COMPILE": "late"})
        self.assertEqual(document["verdict"], "inconclusive")
        self.assertIn("the program sets the option after the change does: the finding is still there: Rank 2 compiled", document["reason"])

    def test_bisect_between_ranks(self):
        self.script("torch/_inductor/config.py", "max_autotune = max_autotune_gemm = False\nmax_fusion_size = 64\n")
        for rank in range(4):
            data = harness.log_bytes(harness.bundled("diverge_config_2_6", rank))
            if rank == 1:
                self.write("rank_2_as_1.log", data.replace(b'"rank": 1', b'"rank": 2'))
            if rank == 2:  # differs in three options
                for before, after in ((rb'\"max_autotune\": false', rb'\"max_autotune\": true'), (rb'\"max_autotune_gemm\": false', rb'\"max_autotune_gemm\": true')):
                    self.assertIn(before, data)
                    data = data.replace(before, after)
            self.write(f"rank_{rank}.log", data)
        self.command("run", "-q", "-o", "job", "--", sys.executable, self.script("ranks.py", OPTIONS))
        out, errors = self.command("bisect", "--bad", "job", "--good-rank", "0", "--bad-rank", "2", "--yes", "--json")
        document = self.document("bisect", out)
        names = [f"torch._inductor.config.{name}" for name in ("max_autotune", "max_autotune_gemm", "max_fusion_size")]
        self.assertEqual([one["name"] for one in document["bad"]], names)
        self.assertEqual([[one["name"], one["value"]] for one in document["cause"]], [[names[2], "13"]])
        self.assertEqual([document["is_sure"], document["is_smallest"]], [True, True])
        self.assertIn("(rank 0: torch._inductor.config.max_fusion_size = 64)", errors)
        out, _ = self.command("bisect", "--bad", "job", "--good-rank", "0", "--bad-rank", "2", "--yes")
        self.assertIn("Where each rank keeps this option, and all have the others as rank 0, the finding is there; rank 2 has: "
                      "torch._inductor.config.max_fusion_size = 13", " ".join(out.split()))
        for arguments in (["--good-rank", "0"], ["--good", "job", "--good-rank", "0", "--bad-rank", "2"], []):
            _, errors = self.command("bisect", "--bad", "job", *arguments, "--yes", expect=2)
            self.assertIn("two ranks of the bad run", errors)
        _, errors = self.command("bisect", "--bad", "job", "--good-rank", "0", "--bad-rank", "9", "--yes", expect=2)
        self.assertIn("no compile of rank 9 names its options", errors)


if __name__ == "__main__":
    unittest.main()
