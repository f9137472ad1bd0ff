#!/usr/bin/env python3
"""Every bundled (and extra) real log: report and database, compared with an independent count."""

import os
import unittest

import harness


class RealLogs(harness.EndToEnd):
    def extra(self, log):
        done = self.tlparse(log, "-o", "out", "--overwrite")
        self.assertEqual(done.stderr, "")
        self.check(self.path("out", "trace.db"), log)
        for name in ("index.html", "raw.jsonl", "compile_directory.json", "chromium_events.json",
                     "failures_and_restarts.html"):
            self.assertTrue(os.path.getsize(self.path("out", name)) > 0, name)

    def time_is_calibrated_and_never_goes_back(self):
        database = self.path("out", "trace.db")
        basis = harness.rows(
            database, "SELECT DISTINCT p.time_basis FROM process p JOIN record r "
            "ON r.process_id = p.id WHERE r.kind = 'chromium_event'")
        self.assertIn(basis, ([["chromium_event"]], []))
        self.assertEqual(harness.rows(
            database, "SELECT count(*) FROM (SELECT time_us < lag(time_us) OVER (PARTITION "
            "BY process_id ORDER BY line) AS back FROM record) WHERE back"), [[0]])

    def bundled(self, log):
        self.extra(log)
        self.time_is_calibrated_and_never_goes_back()


harness.one_test_each(RealLogs, RealLogs.bundled, harness.bundled_logs())
harness.one_test_each(RealLogs, RealLogs.extra, harness.extra_logs())


if __name__ == "__main__":
    unittest.main()
