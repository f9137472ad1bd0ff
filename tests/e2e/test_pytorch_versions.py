#!/usr/bin/env python3
"""The small recordings of each version of PyTorch (fixtures/versions): what docs/compatibility.md says of them still holds."""

import glob
import json
import os
import sys
import unittest

import harness

TOOLS = os.path.join(harness.ROOT, "tests", "tools", "pytorch")
sys.path.insert(0, TOOLS)
import compatibility  # noqa: E402
import hook  # noqa: E402
import keep  # noqa: E402
import measure  # noqa: E402

VERSIONS = os.path.join(harness.ROOT, "fixtures", "versions")
# Members of a program's row that do not depend on where and when it is read.
HELD = ["records", "artifacts", "metrics", "timed_events", "lookups", "processes", "compiles", "compiles_counted", "caches", "problems",
        "unknown", "finding", "profile", "dumps"]


def versions():
    """Those that were recorded; of others the names in their sources are here."""
    return sorted(os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(VERSIONS, "*", "row.json")))


class PytorchVersions(harness.EndToEnd):
    def read_as_its_row_says(self, version):
        keep.unpack(os.path.join(VERSIONS, version, "recorded.tar.zst"), self.path(version))
        with open(os.path.join(VERSIONS, version, "row.json")) as file:
            row = json.load(file)
        for name in sorted(os.listdir(self.path(version))):
            with self.subTest(version=version, program=name):
                program, names = measure.measure_program(self.path(version, name), name, self.path(version, name))
                self.assertEqual({member: program[member] for member in HELD},
                                 {member: row["programs"][name][member] for member in HELD})
                for kind, found in names.items():
                    self.assertLessEqual(found, set(row["seen"].get(kind, [])), kind)

    def test_no_name_is_unknown_and_nothing_is_damaged(self):
        self.assertGreater(len(versions()), 0)
        for version in versions():
            with open(os.path.join(VERSIONS, version, "row.json")) as file:
                row = json.load(file)
            for name, program in row["programs"].items():
                with self.subTest(version=version, program=name):
                    self.assertEqual(program["unknown"], [])
                    expected = {"open_event"} if name in measure.ENDED_BY_FORCE else set()
                    self.assertLessEqual({one["code"] for one in program["problems"]}, expected)

    def test_the_page_is_made_of_the_rows(self):
        for path, (text, made) in compatibility.pages(os.path.join(harness.ROOT, "docs", "compatibility.md")).items():
            self.assertEqual(text, made, f"{path}: write it anew: tests/tools/pytorch/compatibility.py --write docs/compatibility.md")

    def test_an_answer_without_its_input_names_the_version_that_writes_it(self):
        self.tlparse(harness.bundled("simple_2_6"), "-o", "old", "--db-only")
        answer = json.loads(self.tlparse("execution", "old", "--json").stdout)
        self.assertIn("PyTorch writes the order in which graphs run since 2.9; the log does not say its version", answer["not_written"])
        self.assertIn("since 2.9", self.tlparse("execution", "old").stdout)
        self.assertIn("since 2.7", self.tlparse("provenance", "old", "--kernel", "none").stdout)
        lookups = "PyTorch writes the lookups of AOTAutograd's cache since 2.7; the log does not say its version"
        self.assertIn(lookups, json.loads(self.tlparse("cache", "old", "--json").stdout)["not_written"])
        self.assertIn("note: PyTorch writes the lookups", self.tlparse("cache", "old").stdout)
        self.tlparse(harness.bundled("simple"), "-o", "new", "--db-only")
        for command in ("execution", "cache"):
            self.assertIsNone(json.loads(self.tlparse(command, "new", "--json").stdout)["not_written"])
        self.assertEqual(self.tlparse("provenance", "new", "--kernel", "none").stdout, "no kernel matches\n")

    def test_without_dumps_of_gloo_it_says_which_version_writes_them(self):
        for version in ("2.7.1", "2.8.0"):
            keep.unpack(os.path.join(VERSIONS, version, "recorded.tar.zst"), self.path(version))
            self.tlparse(self.path(version, "slow", "in"), "-o", "of_" + version, "--db-only")
        answer = json.loads(self.tlparse("collectives", "of_2.7.1", "--json").stdout)
        self.assertEqual([answer["issued"], answer["not_written"]],
                         [None, "PyTorch writes recorder dumps of gloo since 2.8; the log does not say its version, as those of PyTorch 2.9 and older do not"])
        self.assertIn("note: no recorder dump or profile says what ranks issued; PyTorch writes recorder dumps of gloo since 2.8",
                      " ".join(self.tlparse("collectives", "of_2.7.1").stdout.split()))
        answer = json.loads(self.tlparse("collectives", "of_2.8.0", "--json").stdout)
        self.assertEqual([answer["issued"] is None, answer["not_written"]], [False, None])

    def test_a_recording_is_small(self):
        for version in versions():
            self.assertLessEqual(os.path.getsize(os.path.join(VERSIONS, version, "recorded.tar.zst")), keep.LIMIT_BYTES, version)

    def test_the_hook_works_with_each_version_that_was_tried(self):
        tried = compatibility.read("hook.json")
        self.assertGreater(len(tried), 0)
        for version, row in [*tried.items(), *((python, row["hook"]) for python, row in compatibility.pythons().items())]:
            self.assertEqual(row, dict.fromkeys(hook.TOUCHED, True), version)


@unittest.skipUnless(os.environ.get("TRACEKIT_TORCH_PYTHON"), "TRACEKIT_TORCH_PYTHON names no Python that has PyTorch and numpy")
class Hook(unittest.TestCase):
    def test_the_hook_works(self):
        os.environ["TLPARSE"] = harness.TLPARSE
        self.assertEqual(hook.check(os.environ["TRACEKIT_TORCH_PYTHON"]), dict.fromkeys(hook.TOUCHED, True))


harness.one_test_each(PytorchVersions, PytorchVersions.read_as_its_row_says, versions())

if __name__ == "__main__":
    unittest.main()
