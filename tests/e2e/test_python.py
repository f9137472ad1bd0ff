#!/usr/bin/env python3
"""The Python package tracekit: what tlparse answers, as objects; and its wheel."""

import base64
import gzip
import hashlib
import importlib.util
import os
import subprocess
import sys
import unittest
import zipfile

import harness

sys.path.insert(0, os.path.join(harness.ROOT, "python"))
os.environ["TLPARSE"] = harness.TLPARSE

import tracekit  # noqa: E402


class Answers(harness.EndToEnd):
    def logs(self):
        for rank in range(3):
            self.write(f"logs/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", harness.log_bytes(harness.bundled("diverge_config_2_6", rank)))
        return self.path("logs")

    def test_findings_are_objects(self):
        job = tracekit.open(self.logs())
        finding = job.findings("--kind", "config_divergence")[0]
        self.assertEqual([finding.severity, finding.kind, finding.ranks], ["warning", "config_divergence", [2]])
        self.assertIn("set the same option", finding.try_)
        self.assertTrue(str(finding).startswith("warning: Rank 2 compiled with another configuration"))
        self.assertIn("<b>warning: Rank 2", finding._repr_html_())
        self.assertEqual(len(job.sql(finding.query)) > 0, True)

    def test_rows(self):
        self.tlparse(self.logs(), "-o", "out")
        for path in (self.path("out"), self.path("out", "trace.db")):
            job = tracekit.open(path)
            rows = job.sql("SELECT label, status FROM compile WHERE rank = ? ORDER BY label", 1)
            self.assertEqual([rows[0].label, rows[0].to_dict()], ["0/0", {"label": "0/0", "status": "ok"}])
            self.assertTrue(rows._repr_html_().startswith("<table><tr><th>label</th><th>status</th></tr><tr><td>0/0</td>"))
            self.assertIn("0/0", [compile.label for compile in job.history()])
        with self.assertRaisesRegex(tracekit.Error, "No such file"):
            tracekit.open(self.path("nothing"))

    def test_each_answer_is_a_method(self):
        self.tlparse(self.logs(), "-o", "out")
        job = tracekit.open(self.path("out"))
        ranks = job.ranks()
        self.assertEqual([one.ranks.ranks for one in ranks.classes], ["0,1", "2"])
        self.assertIn("<td>", ranks.classes._repr_html_())
        self.assertEqual(job.status().launch, 1)
        for answer in job._answers:
            if answer not in ("check", "compile", "cost", "memory", "provenance", "source"):  # these need an argument, or a profile
                self.assertIsInstance(getattr(job, answer)(), tracekit.Row)
        self.assertEqual(job.compile("0/0").compile, "0/0")
        with self.assertRaisesRegex(AttributeError, "no answer 'nothing'"):
            job.nothing()
        timeline = job.timeline("--rank", "2")
        packed = base64.b64decode(timeline._repr_html_().split("base64,")[1].split('"')[0])
        self.tlparse("timeline", "out", "-o", "rank2.json", "--rank", "2")
        with open(self.path("rank2.json"), "rb") as file:
            self.assertEqual(gzip.decompress(packed), file.read())
        path = timeline.path
        del timeline
        self.assertFalse(os.path.exists(path))

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "this Python has no pandas")
    def test_data_frames_have_the_types_of_the_rows(self):
        rows = tracekit.Rows(map(tracekit.Row, [
            {"whole": 2**60 + 1, "gap": 2**60 + 1, "mixed": 1, "text": "a", "some": None, "yes": True, "nothing": None},
            {"whole": 2, "gap": None, "mixed": 0.5, "text": "b", "some": "c", "yes": False, "nothing": None}]))
        frame = rows.df()
        self.assertEqual({name: str(one) for name, one in frame.dtypes.items()},
                         {"whole": "int64", "gap": "Int64", "mixed": "float64", "text": "object", "some": "object", "yes": "bool", "nothing": "object"})
        self.assertEqual([int(frame.gap[0]), frame.some[0], frame.nothing[1]], [2**60 + 1, None, None])

    def test_record_asks_for_a_trace(self):
        program = "import os, tracekit\nwith tracekit.record('traces') as recording:\n    print(os.environ['TORCH_TRACE'], os.path.isdir(recording.directory))"
        done = subprocess.run([sys.executable, "-c", program], cwd=self.folder, capture_output=True, text=True, check=True,
                              env={**os.environ, "PYTHONPATH": os.path.join(harness.ROOT, "python")})
        self.assertEqual(done.stdout, f"{os.path.realpath(self.path('traces'))} True\n")


class Wheel(harness.EndToEnd):
    def make(self, folder):
        os.mkdir(self.path(folder))
        program = self.write("program", b"\x7fELF not really")
        subprocess.run([sys.executable, os.path.join(harness.ROOT, "scripts", "make-wheel.py"), "1.2.3", program,
                        os.path.join(harness.ROOT, "python", "tracekit"), self.path(folder)], check=True, capture_output=True)
        return self.path(folder, "tracekit_tlparse-1.2.3-py3-none-manylinux2014_x86_64.whl")

    def test_it_is_whole_and_the_same_bytes_twice(self):
        first, second = self.make("a"), self.make("b")
        with open(first, "rb") as one, open(second, "rb") as other:
            self.assertEqual(one.read(), other.read())
        with zipfile.ZipFile(first) as wheel:
            script = wheel.getinfo("tracekit_tlparse-1.2.3.data/scripts/tlparse")
            self.assertEqual(script.external_attr >> 16 & 0o777, 0o755)
            record = wheel.read("tracekit_tlparse-1.2.3.dist-info/RECORD").decode().splitlines()
            self.assertEqual({line.split(",")[0] for line in record}, set(wheel.namelist()))
            for line in record[:-1]:
                path, digest, size = line.split(",")
                data = wheel.read(path)
                self.assertEqual([len(data), "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()],
                                 [int(size), digest])


if __name__ == "__main__":
    unittest.main()
