"""What the tests of profiles share: where recordings are, and a reader of Chrome traces that has nothing of tlparse."""

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
