"""Runs tlparse for the end-to-end tests, which know it by its command line and database alone.

Environment: TLPARSE names the program (ctest sets it); TRACEKIT_EXTRA_LOGS names directories
(separated by ':') of more logs to be read like the bundled ones.
"""

import glob
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))

import check_database  # noqa: E402
import trace_lines  # noqa: E402

TLPARSE = os.environ.get("TLPARSE", os.path.join(ROOT, "build", "bin", "tlparse"))


def bundled_logs():
    return sorted(glob.glob(os.path.join(ROOT, "fixtures", "logs", "*", "*")))


def extra_logs():
    directories = filter(None, os.environ.get("TRACEKIT_EXTRA_LOGS", "").split(":"))
    return sorted(path for directory in directories
                  for path in glob.glob(os.path.join(directory, "**", "*.log*"), recursive=True))


def end_command(process, folder):
    """A test that failed leaves no process of `tlparse run`: those of its command work in this folder."""
    if process.poll() is not None:
        return
    process.terminate()
    for entry in glob.glob("/proc/[0-9]*"):
        try:
            if os.readlink(entry + "/cwd") == folder and int(entry[6:]) != process.pid:
                os.kill(int(entry[6:]), signal.SIGKILL)
        except OSError:
            pass
    process.communicate(timeout=60)


def one_test_each(case, method, items):
    """A test of `case` for each item, `method` being called with it: run_part.py divides a suite by its tests."""
    for number, item in enumerate(items):
        def test(self, item=item):
            with self.subTest(item):
                method(self, item)
        setattr(case, f"test_{method.__name__}_{number:03}", test)


def bundled(scenario, index=0):
    """The index-th log of a bundled scenario."""
    return sorted(glob.glob(os.path.join(ROOT, "fixtures", "logs", scenario, "*")))[index]


def log_bytes(path):
    with trace_lines.open_log(path) as stream:
        return stream.read()


def connect(database):
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    return connection


def rows(database, sql, *parameters):
    connection = connect(database)
    try:
        return [list(row) for row in connection.execute(sql, parameters)]
    finally:
        connection.close()


def tables(database, *left_out):
    """{table: its rows in the order of the file}, with texts as bytes."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    connection.text_factory = bytes
    try:
        names = [row[0].decode() for row in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
            "ORDER BY 1")]
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall()
                for name in names if name not in left_out}
    finally:
        connection.close()


def dump(database):
    """Everything in the database, as text that is equal for equal content."""
    return {table: sorted(map(repr, rows)) for table, rows in tables(database).items()}


def tree(directory):
    """Relative paths of all files and links below a directory."""
    return sorted(os.path.relpath(os.path.join(folder, name), directory)
                  for folder, _, names in os.walk(directory) for name in names)


class EndToEnd(unittest.TestCase):
    """A test with a directory of its own, in which tlparse runs."""

    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        if not os.path.exists(TLPARSE):
            raise FileNotFoundError(f"{TLPARSE}: build it, or name it with TLPARSE")

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tracekit_e2e_")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, name, data):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def tlparse(self, *arguments, expect=0, stdin=None, limit_s=280):
        """Runs tlparse in the test's directory; returns the finished process (text streams)."""
        done = subprocess.run(
            [TLPARSE, *arguments], cwd=self.folder, capture_output=True, check=False, timeout=limit_s,
            **({"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}))
        done.stdout = done.stdout.decode("utf-8", "replace")
        done.stderr = done.stderr.decode("utf-8", "replace")
        if expect is not None:
            self.assertEqual(done.returncode, expect,
                             f"tlparse {' '.join(arguments)[:500]}\n{done.stdout}{done.stderr}")
        return done

    def check(self, database, *logs, run=None):
        """The database holds what the logs hold (see check_database.py, which prints why not)."""
        self.assertEqual(check_database.check(database, logs, run), 0, "differences above")

    def assert_one_line_of_complaint(self, done):
        """What a user sees of a mistake: one line, no stack trace."""
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertEqual(done.stdout, "")
