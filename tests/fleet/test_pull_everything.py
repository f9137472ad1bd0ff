#!/usr/bin/env python3
"""A pulled database prints what the pushed one printed, byte for byte, for every answer: over all bundled logs, jobs and fixtures.

TRACEKIT_EXTRA_LOGS names directories (separated by ':') whose folders are read like the bundled ones.
"""

import glob
import os
import re
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
sys.path.insert(0, os.path.join(ROOT, "tests", "fleet"))

import clickhouse  # noqa: E402
from harness import TLPARSE, EndToEnd  # noqa: E402

ANSWERS = [["history"], ["findings"], ["findings", "--markdown"], ["findings", "--world-size", "16"], ["ranks"], ["ranks", "--all"],
           ["cache"], ["cache", "--all"], ["cache", "--rank", "0", "--all"], ["collectives"], ["collectives", "--all"], ["execution", "--all"],
           ["recompiles"], ["provenance"], ["import-log"], ["import-log", "--unknown"], ["status"], ["status", "--launch", "1"],
           ["findings", "--launch", "1"], ["check", "--no-failures", "--max-recompiles", "3", "--max-compile-seconds", "1", "--no-divergence"],
           ["cost"], ["cost", "--by", "kernel"], ["cost", "--by", "graph"], ["cost", "--by", "op"]]
ANSWERS_OF_TWO = [["diff", "--rank", "0", "--rank", "1"], ["diff", "--launch", "1", "2"]]


def folders_of(root):
    """Each folder below `root` with files in it or in several folders below it."""
    found = []
    for folder, names, files in os.walk(root):
        if os.path.basename(folder) in ("scripts", "gpu"):
            names.clear()
        elif files and folder != root or len(names) > 1 and folder != root:
            found.append(folder)
    return sorted(found)


def logs_of_fixtures():
    """(name, [bytes]) of the logs that stand in fixtures/artifacts and fixtures/corrupt."""
    for path in sorted(glob.glob(f"{ROOT}/fixtures/artifacts/*.test") + glob.glob(f"{ROOT}/fixtures/corrupt/*.test")):
        with open(path, "rb") as file:
            parts = re.split(rb"(?m)^=== (.*)\n", file.read())
        logs = [body for title, body in zip(parts[1::2], parts[2::2]) if title.split()[0] == b"log"]
        if logs:
            yield os.path.relpath(path, ROOT), logs


class PullEverything(EndToEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = clickhouse.scratch(cls)
        cls.server = clickhouse.cluster(cls, cls.home, 1)[0]
        subprocess.run([TLPARSE, "fleet", "init", "--url", cls.server.url], check=True, stdout=subprocess.DEVNULL)

    def setUp(self):
        super().setUp()
        for name in ("pushed", "pulled"):
            os.makedirs(self.path(name))

    def answers(self, side):
        """Both databases have the same name in another folder: what is printed of paths is equal."""
        for answer in ANSWERS + [["diff", "trace.db", *one[1:]] for one in ANSWERS_OF_TWO]:
            arguments = answer if answer[0] == "diff" else [answer[0], "trace.db", *answer[1:]]
            for options in ([], ["--json"]) if "--markdown" not in answer else ([],):
                done = subprocess.run([TLPARSE, *arguments, *options], cwd=self.path(side), capture_output=True, check=False)
                yield " ".join(arguments + options), done.returncode, done.stdout + done.stderr

    def compare(self, name, *inputs):
        self.server.empty()
        for side in ("pushed", "pulled"):
            if os.path.exists(self.path(f"{side}/trace.db")):
                os.remove(self.path(f"{side}/trace.db"))
        self.tlparse(*inputs, "--db-only", "--db", self.path("pushed/trace.db"), "--run", "run", expect=None)
        self.tlparse("push", self.path("pushed/trace.db"), "--url", self.server.url, "--job", "all", "--day", "2026-11-01", "--job-key", name)
        self.tlparse("pull", "--url", self.server.url, "--job", "all", "--latest", "-o", self.path("pulled/trace.db"))
        differ = [(ours, theirs) for ours, theirs in zip(self.answers("pushed"), self.answers("pulled")) if ours != theirs]
        print(f"{name}: {'differs in ' + ', '.join(ours[0] for ours, _ in differ) if differ else 'equal'}", file=sys.stderr, flush=True)
        self.assertEqual(differ[:1], [], name)

    def test_folders(self):
        roots = [f"{ROOT}/fixtures/logs", f"{ROOT}/fixtures/runs"] + list(filter(None, os.environ.get("TRACEKIT_EXTRA_LOGS", "").split(":")))
        folders = [folder for root in roots for folder in folders_of(root)]
        self.assertGreater(len(folders), 50)
        for folder in folders:
            with self.subTest(folder):
                self.compare(folder, folder)

    def test_logs_of_fixtures(self):
        for name, logs in logs_of_fixtures():
            with self.subTest(name):
                paths = []
                for i, log in enumerate(logs):
                    paths.append(self.path(f"rank_{i}.log"))
                    with open(paths[-1], "wb") as file:
                        file.write(log)
                self.compare(name, *paths)


if __name__ == "__main__":
    unittest.main()
