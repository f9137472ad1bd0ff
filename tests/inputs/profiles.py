"""What the tests of profiles and other inputs share: where recordings are, readers of Chrome traces and logs that have nothing of
tlparse, and an ingest."""

import glob
import gzip
import json
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

import harness  # noqa: E402
from harness import trace_lines  # noqa: E402

RUNS = os.path.join(ROOT, "fixtures", "runs")
# Public profiles of GPU programs are not part of the repository; TRACEKIT_GPU_PROFILES names a directory of them.
GPU = os.environ.get("TRACEKIT_GPU_PROFILES", os.path.join(ROOT, "..", "shared", "runs", "gpu"))
HAS_ZSTD = shutil.which("zstd") is not None


def recorded(*parts):
    return os.path.join(RUNS, *parts)


def profiles_below(folder):
    """The profiles of a folder. Beside recordings stand dumps and package members, which are JSON too."""
    wanted = ".pt.trace.json" if folder == RUNS else ".json"
    return sorted(path for path in glob.glob(os.path.join(folder, "**", "*"), recursive=True)
                  if wanted in os.path.basename(path) and os.path.isfile(path))


def data(path):
    if path.endswith(".zst"):
        return subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True).stdout
    if path.endswith(".gz"):
        with gzip.open(path) as file:
            return file.read()
    with open(path, "rb") as file:
        return file.read()


def trace(path):
    return json.loads(data(path))


def slices(events, *categories):
    return [event for event in events if event.get("ph") == "X" and event.get("cat") in categories]


def records(log):
    """The trace_lines.Record of each record of a log."""
    return [item for item in trace_lines.read_log(log) if isinstance(item, trace_lines.Record)]


def payload_text(record):
    return (record.payload or b"").decode("utf-8", "replace")


class InputTest(harness.EndToEnd):
    def ingest(self, *inputs, code=0, name="t.db"):
        """The path of a database with one run `r` of the inputs; self.database is the latest."""
        self.database = self.path(name)
        self.tlparse(*inputs, "--db", self.database, "--run", "r", "-o", self.path(name + ".out"), "--overwrite", expect=code)
        return self.database

    def rows(self, database, sql, *parameters):
        return harness.rows(database, sql, *parameters)

    def answer(self, command, database, *arguments):
        return json.loads(self.tlparse(command, database, *arguments, "--json").stdout)
