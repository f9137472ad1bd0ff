#!/usr/bin/env python3
"""Kills the ingest at random moments: the old database or none is left, never half of one."""

import os
import random
import resource
import shutil
import signal
import subprocess
import time
import unittest

import harness
import make_bench_input

TRIES = int(os.environ.get("TRACEKIT_KILLS", "12"))


class Killed(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        self.random = random.Random(7)
        self.log, = make_bench_input.make(self.path("logs"), 20000000, 1, True)

    def run_and_kill(self, arguments, longest_s):
        """Starts an ingest and kills it after a random while; whether it had ended by then."""
        process = subprocess.Popen([harness.TLPARSE, *arguments], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(self.random.uniform(0, longest_s))
        ended = process.poll() is not None
        process.send_signal(signal.SIGKILL)
        process.wait()
        return ended

    def duration(self, arguments):
        started = time.monotonic()
        self.tlparse(*arguments)
        return time.monotonic() - started

    def test_fresh_database(self):
        arguments = [self.log, "--run", "job", "--db", "new.db", "--db-only"]
        duration = self.duration(arguments)
        unfinished = 0
        for _ in range(TRIES):
            for name in os.listdir(self.folder):
                if name.startswith("new.db"):
                    os.remove(self.path(name))
            ended = self.run_and_kill(arguments, duration)
            unfinished += not ended
            if os.path.exists(self.path("new.db")):  # then all of it
                self.check(self.path("new.db"), self.log)
            elif ended:
                self.fail("the ingest ended without a database")
        self.assertGreater(unfinished, 0, "every try came too late: the test shows nothing")
        # What a killed ingest left behind does not stand in the way of the next.
        self.tlparse(*arguments)
        self.check(self.path("new.db"), self.log)

    def test_ended_by_a_signal_that_can_be_caught(self):
        arguments = [self.log, "-o", "out", "--overwrite"]
        duration = self.duration(arguments)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) * 2:
            shutil.rmtree(self.path("out"), ignore_errors=True)
            process = subprocess.Popen([harness.TLPARSE, *arguments], cwd=self.folder,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(self.random.uniform(0.02, duration / 2))
            process.send_signal(number)
            self.assertIn(process.wait(), (-number, 0))
            # No temporary database is left, neither beside the output nor in it.
            self.assertLessEqual(set(os.listdir(self.folder)), {"logs", "out"})
            self.assertEqual([name for name in harness.tree(self.folder) if ".tmp" in name], [])

    def test_file_size_limit(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20))

        for arguments in ([self.log, "-o", "out"], [self.log, "--db", "new.db", "--db-only"]):
            done = subprocess.run([harness.TLPARSE, *arguments], cwd=self.folder, preexec_fn=limit,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn("cannot write", done.stderr)
            self.assertEqual(os.listdir(self.folder), ["logs"])

    def test_database_with_another_run(self):
        old_log = harness.bundled("mlp_train")
        self.tlparse(old_log, "--run", "old", "--db", "old.db", "--db-only")
        before = harness.dump(self.path("old.db"))
        arguments = [self.log, "--run", "job", "--db", "all.db", "--db-only"]
        shutil.copy(self.path("old.db"), self.path("all.db"))
        duration = self.duration(arguments)
        for _ in range(TRIES):
            for name in os.listdir(self.folder):
                if name.startswith("all.db"):
                    os.remove(self.path(name))
            shutil.copy(self.path("old.db"), self.path("all.db"))
            self.run_and_kill(arguments, duration)
            # Opened for writing once: rolls back what a journal says, if the ingest used one.
            connection = harness.sqlite3.connect(self.path("all.db"))
            runs = sorted(connection.execute("SELECT name FROM run"))
            connection.close()
            if runs == [("old",)]:
                self.assertEqual(harness.dump(self.path("all.db")), before)
                self.check(self.path("all.db"), old_log)
            else:
                self.assertEqual(runs, [("job",), ("old",)])
                self.check(self.path("all.db"), old_log, self.log)

    def test_output_directory(self):
        arguments = [self.log, "-o", "out", "--overwrite"]
        duration = self.duration(arguments)
        for _ in range(TRIES):
            self.run_and_kill(arguments, duration)
            database = self.path("out", "trace.db")
            if os.path.exists(database):
                self.check(database, self.log)
        self.tlparse(*arguments)
        self.check(self.path("out", "trace.db"), self.log)


if __name__ == "__main__":
    unittest.main()
