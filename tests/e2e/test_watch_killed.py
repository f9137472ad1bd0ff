#!/usr/bin/env python3
"""tlparse watch killed at any moment: what is left is sound, and gone on with it equals a fresh ingest."""

import os
import shutil
import subprocess
import time
import unittest

import harness
import watching

KILLS = int(os.environ.get("TRACEKIT_KILLS", "10"))


class Killed(watching.Watching):
    def test_killed(self):
        """Killed at random moments, mostly while logs grow: what is left is sound, and gone on with it equals a fresh ingest."""
        logs = self.ranks(3)
        done = dict.fromkeys(logs, 0)
        for _ in range(KILLS):
            if all(done[name] == len(data) for name, data in logs.items()):  # from the beginning
                self.remove_all()
                done = dict.fromkeys(logs, 0)
            process = self.start("--db", "w.db")
            until = time.monotonic() + self.random.uniform(0.02, 2.5)
            while time.monotonic() < until:
                for name, data in logs.items():
                    size = self.random.randrange(1 + len(data) // 100)
                    self.append(name, data[done[name]:done[name] + size])
                    done[name] = min(done[name] + size, len(data))
                time.sleep(0.05)
            process.kill()
            process.wait()
            if os.path.exists(self.path("w.db")):
                self.assert_sound_and_fresh_when_continued()
        self.tlparse("watch", "logs", "--once", "--db", "w.db")
        self.assert_fresh()

    def remove_all(self):
        for name in os.listdir(self.path("logs")):
            os.remove(self.path("logs", name))
        for name in os.listdir(self.folder):
            if name.startswith("w.db"):
                os.remove(self.path(name))

    def assert_sound_and_fresh_when_continued(self):
        """Of copies of the database, so that w.db stays as it was left."""
        for suffix in ("", "-wal", "-shm", "-journal"):
            if os.path.exists(self.path("w.db" + suffix)):
                shutil.copy(self.path("w.db" + suffix), self.path("copy.db" + suffix))
        connection = harness.sqlite3.connect(self.path("copy.db"))
        self.assertEqual(list(connection.execute("PRAGMA integrity_check")), [("ok",)])
        connection.close()
        self.tlparse("watch", "logs", "--once", "--db", "copy.db")
        self.assert_fresh("copy.db")
        os.remove(self.path("copy.db"))

    def test_killed_and_ingested(self):
        """What a killed watch left, `tlparse --db` goes on with."""
        for name, data in self.ranks(2).items():
            self.append(name, data)
        process = self.start("--db", "w.db")
        self.wait_for("some rows", lambda: harness.rows(self.path("w.db"), "SELECT count(*) > 0 FROM log_file") == [[1]])
        process.kill()
        process.wait()
        self.tlparse("logs", "--db", "w.db", "--db-only")
        self.assert_fresh()

    def test_unfinished_databases(self):
        """The file of a process that was killed while it made its database goes; that of one that lives, and others' files, stay."""
        name, data = next(iter(self.ranks(1).items()))
        self.append(name, data)
        kept = ("w.db.notes.tmp", "w.db.12.tmp.txt", "other.db.12.tmp", "w.db.12.db.tmp", "out.notes.db.1.tmp")
        for command, killed in ((("watch", "logs", "--once", "--db", "w.db"), "w.db.{}.tmp"),
                                (("logs", "--db", "w.db", "--db-only"), "w.db.{}.tmp"),
                                (("logs", "-o", "out", "--overwrite"), "out.{0}.db.{0}.tmp")):
            with self.subTest(command=command):
                for one in kept:
                    self.write(one, b"x")
                if os.path.exists(self.path("w.db")):
                    os.remove(self.path("w.db"))
                living = subprocess.Popen([harness.TLPARSE, "-", *command[1:]] if command[0] == "logs" else
                                          [harness.TLPARSE, "-", "--db", "w.db", "--db-only"], cwd=self.folder, stdin=subprocess.PIPE,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self.running.append(living)
                self.addCleanup(living.stdin.close)
                its = killed.format(living.pid)
                self.wait_for("the database of one that waits for its input", lambda one=its: os.path.exists(self.path(one)))
                self.write(killed.format(3999999), b"")
                self.tlparse(*command)
                self.assertTrue(os.path.exists(self.path(its)))
                self.assertFalse(os.path.exists(self.path(killed.format(3999999))))
                living.kill()
                living.wait()
                self.tlparse(*command[:-1], *(["--db-only", "--overwrite"] if command[-1] == "--overwrite" else command[-1:]))
                self.assertFalse(os.path.exists(self.path(its)))
                self.assertEqual([one for one in kept if not os.path.exists(self.path(one))], [])


if __name__ == "__main__":
    unittest.main()
