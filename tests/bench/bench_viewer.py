#!/usr/bin/env python3
"""Measures waiting times of the report's page in headless Chromium: a table of first view, interactions and scrolling.

Reports of a log of 200 MB, of a job of 64 ranks (tests/tools), and of a log whose lists have 100,000 rows; each opened from file://
and from `tlparse serve`. The times are the browser's own (tests/viewer/bench.mjs).
"""

import argparse
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = os.path.join(ROOT, "tests", "tools")
TEMPLATE = os.path.join(ROOT, "fixtures", "logs", "train_order")


def write_rows(path, count):
    """A log of so many compiles, entries of the import log (a rank that is no number) and records without a compile."""
    with open(path, "w") as log:
        for i in range(count):
            time = f"V1121 {i // 3600 % 24:02}:{i // 60 % 60:02}:{i % 60:02}.{i % 1000:03}000 7 bench.py:1]"
            log.write(f'{time} {{"dynamo_start": {{"stack": []}}, "rank": "none", "frame_id": {i}, "frame_compile_id": 0, '
                      f'"attempt": 0}}\n{time} {{"artifact": {{"name": "event_{i % 97}", "encoding": "string"}}}}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything, for a first look")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="DIRECTORY")
    parser.add_argument("--folder", default="/dev/shm", metavar="DIRECTORY",
                        help="where input and reports lie while it runs (default /dev/shm)")
    arguments = parser.parse_args()
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    modules = os.path.join(arguments.build, "viewer")
    if chromium is None or not os.path.exists(os.path.join(modules, "node_modules", "playwright-core")):
        print("bench_viewer: left out, it needs chromium and a build with the viewer")
        return
    scale = 10 if arguments.quick else 1
    folder = os.path.join(arguments.folder, "tracekit_bench_viewer")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    inputs = {name: os.path.join(folder, f"{name}.in") for name in ("200 MB", "64 ranks", "100,000 rows")}
    tlparse = os.path.join(arguments.build, "bin", "tlparse")
    try:
        subprocess.run([sys.executable, os.path.join(TOOLS, "make_bench_input.py"), inputs["200 MB"], "--bytes", str(2e8 / scale)],
                       check=True, stderr=subprocess.DEVNULL)
        template = next(os.path.join(TEMPLATE, name) for name in os.listdir(TEMPLATE) if "_rank_0_" in name)
        subprocess.run([sys.executable, os.path.join(TOOLS, "make_job.py"), template, inputs["64 ranks"], "64"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        write_rows(inputs["100,000 rows"], 100_000 // scale)
        reports = []
        for name, path in inputs.items():
            reports.append(os.path.join(folder, name))
            subprocess.run([tlparse, path, "-o", reports[-1]], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        environment = dict(os.environ, TLPARSE=tlparse, VIEWER_MODULES=modules, CHROMIUM=chromium, TRACEKIT_SOURCE=ROOT,
                           VIEWER_OUT=folder)
        subprocess.run(["node", os.path.join(ROOT, "tests", "viewer", "bench.mjs"), *reports], check=True, env=environment)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
