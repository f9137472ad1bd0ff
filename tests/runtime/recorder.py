"""Ingests recorded flight-recorder dumps for the tests, and reads logs without any of ours."""

import glob
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUNS = os.path.join(ROOT, "fixtures", "runs")
TLPARSE = os.environ["TLPARSE"]


def log_lines(path):
    data = subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True).stdout if path.endswith(".zst") else open(path, "rb").read()
    return data.decode("utf-8", "replace").split("\n")


def output_codes(path):
    """The files of generated code that a log names, with their text by lines: read without any of ours."""
    lines, codes, at = log_lines(path), {}, 0
    while at < len(lines):
        match = re.match(r"[VIWEC]\d{4} \S+ +\d+ .+?:\d+\] (\{.*)$", lines[at])
        at += 1
        if not match:
            continue
        payload = []
        while at < len(lines) and lines[at].startswith("\t"):
            payload.append(lines[at][1:])
            at += 1
        envelope = json.loads(match.group(1))
        if "inductor_output_code" in envelope:
            codes[envelope["inductor_output_code"].get("file_path") or envelope["inductor_output_code"]["filename"]] = payload
    return codes


class RecorderTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.scratch)

    def ingest(self, *inputs, code=0, name="t.db"):
        database = self.path_of_last = os.path.join(self.scratch, name)
        done = subprocess.run([TLPARSE, *inputs, "--db", database, "--run", "r", "-o", os.path.join(self.scratch, name + ".out"), "--overwrite"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(code, done.returncode, done.stderr + done.stdout)
        return database

    def rows(self, database, sql, *parameters):
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        self.addCleanup(connection.close)
        return [list(row) for row in connection.execute(sql, parameters)]

    def text(self, *arguments):
        done = subprocess.run([TLPARSE, *arguments], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "100"})
        return done.stdout

    def issued(self, database):
        done = subprocess.run([TLPARSE, "collectives", database, "--json"], capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout)["issued"]

    def part(self, scenario, pattern, logs=True):
        """A folder with some of a scenario's dumps, and its logs."""
        folder = os.path.join(self.scratch, "part" + str(len(os.listdir(self.scratch))))
        os.mkdir(folder)
        names = glob.glob(os.path.join(RUNS, scenario, pattern)) + (glob.glob(os.path.join(RUNS, scenario, "*.log.zst")) if logs else [])
        self.assertTrue(names)
        for path in names:
            shutil.copy(path, folder)
        return folder
