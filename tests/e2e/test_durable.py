#!/usr/bin/env python3
"""Power failures: data reaches the disk before a name points to it, and the name after it.

Environment: TRACE_SYNCS_LIBRARY is the library of trace_syncs.cc.
"""

import os
import subprocess
import unittest

import harness


class Durable(harness.EndToEnd):
    def calls(self, *arguments):
        """The syncs, renames and unlinks of a run, in order, paths relative to the test's directory."""
        trace = self.path("calls.txt")
        environment = dict(os.environ, LD_PRELOAD=os.environ["TRACE_SYNCS_LIBRARY"],
                           TRACE_SYNCS=trace)
        subprocess.run([harness.TLPARSE, *arguments], cwd=self.folder, check=True, timeout=280,
                       env=environment, capture_output=True)
        with open(trace, encoding="utf-8") as file:
            calls = [line.split() for line in file]
        os.remove(trace)
        top = os.path.realpath(self.folder)
        return [(call, *(os.path.normpath(os.path.relpath(os.path.join(top, path), top))
                         for path in paths)) for call, *paths in calls]

    def assert_durable(self, calls, destination):
        """Each rename on the way to `destination`: the file is synced before, the directories after."""
        renames = [index for index, call in enumerate(calls) if call[0] == "rename"]
        self.assertTrue(renames, calls)
        self.assertEqual(calls[renames[-1]][2], destination)
        for index in renames:
            _, source, target = calls[index]
            self.assertIn(("fsync", source), calls[:index], f"{source} was not synced")
            after = calls[index + 1:]
            for directory in {os.path.dirname(source) or ".", os.path.dirname(target) or "."}:
                self.assertIn(("fsync", directory), after, f"{directory} was not synced")

    def test_new_output_directory(self):
        calls = self.calls(harness.bundled("graph_breaks_2_6"), "-o", "out")
        self.assert_durable(calls, os.path.join("out", "trace.db"))

    def test_new_database(self):
        calls = self.calls(harness.bundled("graph_breaks_2_6"), "--db", "new.db", "--db-only")
        self.assert_durable(calls, "new.db")

    def test_append(self):
        self.tlparse(harness.bundled("graph_breaks_2_6"), "--db", "runs.db", "--run", "a", "--db-only")
        calls = self.calls(harness.bundled("recompiles_2_6"), "--db", "runs.db", "--run", "b",
                           "--db-only")
        # SQLite's rollback journal with synchronous=FULL: the journal is complete on the disk, then
        # the database is, then the journal goes. FULL syncs the journal twice, its header apart.
        end = calls.index(("unlink", "runs.db-journal"))
        before = calls[:end]
        database = max(i for i, call in enumerate(before) if call == ("fsync", "runs.db"))
        self.assertGreaterEqual(before[:database].count(("fsync", "runs.db-journal")), 2, calls)


if __name__ == "__main__":
    unittest.main()
