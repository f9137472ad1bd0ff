#!/usr/bin/env python3
"""tlparse watch: logs that grow, are rewritten or removed; in every case the database equals a fresh ingest."""

import gzip
import os
import shutil
import signal
import subprocess
import time
import unittest

import harness
import watching


class Watch(watching.Watching):
    def test_grown_in_pieces(self):
        """Cut at any byte, in an empty directory at first."""
        logs = self.ranks()
        process = self.start("--db", "w.db", "--json")
        self.wait_for("the database", lambda: harness.rows(self.path("w.db"), "SELECT count(*) FROM run") == [[1]])
        done = dict.fromkeys(logs, 0)
        while any(done[name] < len(data) for name, data in logs.items()):
            for name, data in logs.items():
                size = self.random.choice((1, 50, 5000, 200000, len(data) // 6))
                self.append(name, data[done[name]:done[name] + size])
                done[name] += size
            time.sleep(0.05)
        total = sum(map(self.records, logs.values()))
        self.wait_for_records(total)  # the last records included, which nothing follows
        self.end(process)
        self.assert_fresh()
        events = self.events()
        self.assertEqual({event["rank"] for event in events if event["event"] == "status"}, set(range(3)))
        self.assertIn('{"event":"end"', self.output())

    def test_without_inotify(self):
        """The kernel gives no inotify: the files are looked at again and again."""
        none = ("unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_inotify_instances && exec "$0" "$@"')
        if not shutil.which("unshare") or subprocess.run([*none, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("no user namespaces here")
        (one, first), (two, second) = self.ranks(2).items()
        process = self.start("--db", "w.db", prefix=none)
        self.append(one, first[:len(first) // 2])
        self.wait_for("some rows", lambda: harness.rows(self.path("w.db"), "SELECT record_count > 0 FROM log_file") == [[1]])
        self.append(one, first[len(first) // 2:])
        self.append(two, second)
        self.wait_for_records(self.records(first) + self.records(second))
        self.end(process)
        self.assert_fresh()

    def test_once(self):
        logs = self.ranks(2)
        for name, data in logs.items():
            self.append(name, data[:len(data) // 2])
        self.tlparse("watch", "logs", "--once", "--db", "w.db")
        self.assert_fresh()
        for name, data in logs.items():
            self.append(name, data[len(data) // 2:])
        shown = self.tlparse("watch", "logs", "--once", "--db", "w.db", "--world-size", "4").stdout
        self.assertIn("ranks 2,3: no log yet", shown)
        self.assert_fresh()
        self.tlparse("logs", "--db", "w.db", "--db-only")  # nothing is new
        self.assert_fresh()

    def test_once_of_a_job_that_has_just_begun(self):
        self.append(next(iter(self.ranks(1))), b"")
        done = self.tlparse("watch", "logs", "--once", "--db", "w.db")
        self.assertIn("no record yet", done.stdout)
        self.assertEqual(done.stderr, "tlparse: the logs are empty\n")

    def test_output_directory(self):
        for name, data in self.ranks(2).items():
            self.append(name, data)
        self.tlparse("watch", "logs", "--once", "-o", "out")
        for name in ("index.html", "trace.db", "rank_0/compile_directory.json"):
            self.assertTrue(os.path.exists(self.path("out", name)), name)
        self.assertIn("--overwrite", self.tlparse("watch", "logs", "--once", "-o", "out", expect=2).stderr)

    def test_compressed(self):
        """A compressed log that comes in pieces."""
        name, data = next(iter(self.ranks(1).items()))
        packed = gzip.compress(data)
        process = self.start("--db", "w.db")
        for begin in range(0, len(packed), len(packed) // 5 + 1):
            self.append(name + ".gz", packed[begin:begin + len(packed) // 5 + 1])
            time.sleep(0.4)
        self.wait_for_records(self.records(data))
        self.end(process)
        self.assert_fresh()

    def test_rewritten_rotated_removed_late(self):
        logs = list(self.ranks(4).items())
        (one, first), (two, second), (three, third), (four, fourth) = logs
        process = self.start("--db", "w.db")
        self.append(one, first[:len(first) // 2])
        self.append(two, second)
        self.append(three, third[:len(third) // 2])
        self.wait_for_records(self.records(second), path="%" + two)
        self.wait_for("rank 0", lambda: harness.rows(
            self.path("w.db"), "SELECT record_count > 5 FROM log_file WHERE path LIKE ?", "%" + one) == [[1]])
        # Truncated and written again with something else
        with open(self.path("logs", one), "wb") as file:
            file.write(fourth[:len(fourth) // 3])
        # Replaced by another file
        with open(self.path("new"), "wb") as file:
            file.write(third)
        os.replace(self.path("new"), self.path("logs", three))
        # Rotated: the old file has another name, a new one its name
        os.rename(self.path("logs", two), self.path("logs", "dedicated_log_torch_trace_rank_7_abcdefgh.log"))
        self.append(two, fourth)
        self.wait_for_records(self.records(fourth[:fourth.rfind(b"\nV", 0, len(fourth) // 3) + 1]), path="%" + one)
        self.wait_for_records(self.records(third), path="%" + three)
        self.wait_for_records(self.records(fourth), path="%" + two)
        self.wait_for_records(self.records(second), path="%rank_7_%")
        self.end(process)
        self.assert_fresh()

    def test_rewritten_in_place(self):
        """Other bytes in the middle, the same size, the same beginning and end."""
        name, data = next(iter(self.ranks(1).items()))
        self.append(name, data)
        process = self.start("--db", "w.db")
        self.wait_for_records(self.records(data))
        place = data.find(b"\n\t", len(data) // 2) + 2
        other = data[:place] + (b"x" if data[place:place + 1] != b"x" else b"y") + data[place + 1:]
        with open(self.path("logs", name), "r+b") as file:
            file.write(other)
        self.wait_for("the damage", lambda: harness.rows(
            self.path("w.db"), "SELECT count(*) FROM import_log WHERE code = 'payload_mismatch'") == [[1]])
        self.end(process)
        self.assert_fresh()

    def test_truncated(self):
        """Its rows go although nothing is written to it again."""
        (one, first), (two, second) = self.ranks(2).items()
        self.append(one, first)
        self.append(two, second)
        process = self.start("--db", "w.db")
        self.wait_for_records(self.records(first) + self.records(second))
        os.truncate(self.path("logs", two), 0)
        self.wait_for_records(self.records(first))
        self.end(process)
        self.assert_fresh()

    def test_renamed(self):
        """A log that gets another name is no second log, and grows on; another may get its name."""
        (one, first), (_, second) = self.ranks(2).items()
        half = len(first) // 2
        self.append(one, first[:half])
        process = self.start("--db", "w.db")
        self.wait_for("rank 0", lambda: harness.rows(self.path("w.db"), "SELECT record_count > 5 FROM log_file") == [[1]])
        os.rename(self.path("logs", one), self.path("logs", one + ".1"))
        self.append(one + ".1", first[half:])
        self.wait_for_records(self.records(first), path="%.1")
        self.assertEqual(len(harness.rows(self.path("w.db"), "SELECT path FROM log_file")), 1)
        self.append(one, second)
        self.wait_for_records(self.records(first) + self.records(second))
        self.assertEqual(harness.rows(self.path("w.db"), "SELECT count(*) FROM import_log WHERE code = 'removed_file'"), [[0]])
        self.end(process)
        self.assert_fresh()

    def test_equal_log_at_the_end(self):
        """A log that comes when the watch is about to end, with the bytes of another."""
        name, data = next(iter(self.ranks(1).items()))
        self.append(name, data)
        process = self.start("--db", "w.db")
        self.wait_for_records(self.records(data))
        process.send_signal(signal.SIGSTOP)
        self.append("copy.log", data)
        process.send_signal(signal.SIGINT)
        self.end(process, signal.SIGCONT)
        self.assert_fresh()

    def test_unreadable(self):
        """Logs that cannot be read, at first or from some time on: what was read of them stays, and the others are ingested."""
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("needs root, and setpriv")
        (late, first), (two, second), (lost, third) = self.ranks(3).items()
        for folder in (self.folder, self.path("logs")):
            os.chmod(folder, 0o777)
        late += ".gz"
        self.append(late, gzip.compress(first))
        os.chmod(self.path("logs", late), 0)
        self.append(two, second)
        whole = third.rfind(b"\nV", 0, len(third) // 2) + 1
        self.append(lost, third[:whole])
        process = self.start("--db", "w.db", prefix=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"))
        self.wait_for_records(self.records(second) + self.records(third[:whole]))
        os.chmod(self.path("logs", lost), 0)
        self.append(lost, third[whole:])
        os.chmod(self.path("logs", late), 0o644)
        self.wait_for_records(self.records(first), path="%" + late)
        self.end(process)
        self.assertEqual(harness.rows(self.path("w.db"), "SELECT record_count FROM log_file WHERE path LIKE ?", "%" + lost),
                         [[self.records(third[:whole])]])
        skipped = harness.rows(self.path("w.db"), "SELECT severity, code, path, message FROM import_log WHERE path LIKE ?", f"%{lost}%")
        self.assertEqual(skipped, [["error", "unread_input", f"logs/{lost}", "it cannot be read: Permission denied"]])

    def test_one_writer(self):
        """While a log is followed, no other tlparse writes into the database; it says why."""
        (one, first), (two, second) = self.ranks(2).items()
        self.append(one, first)
        process = self.start("--db", "w.db")
        self.wait_for_records(self.records(first))
        for command in (("watch", "logs", "--once"), ("logs", "--db-only")):
            done = self.tlparse(*command, "--db", "w.db", expect=2)
            self.assert_one_line_of_complaint(done)
            self.assertIn("another tlparse is writing it", done.stderr)
        self.append(two, second)
        self.wait_for_records(self.records(first) + self.records(second))
        self.end(process)
        self.assert_fresh()

    def test_read_at_the_end(self):
        """A program that reads for long sees one state; if it reads at the end, the write-ahead log stays, and that is said."""
        (one, first), (two, second) = self.ranks(2).items()
        self.append(one, first)
        process = self.start("--db", "w.db")
        self.wait_for_records(self.records(first))
        reader = harness.sqlite3.connect(self.path("w.db"), isolation_level=None)
        self.addCleanup(reader.close)
        reader.execute("BEGIN")
        counts = "SELECT sum(record_count) FROM log_file"
        self.assertEqual(reader.execute(counts).fetchone(), (self.records(first),))
        self.append(two, second)
        self.wait_for_records(self.records(first) + self.records(second))
        self.end(process)
        self.assertEqual(reader.execute(counts).fetchone(), (self.records(first),))
        self.assertIn("until it closes it, 'w.db-wal' is a part of the database", self.output())
        reader.execute("COMMIT")
        reader.close()
        self.assert_fresh()

    def test_ended_before_its_first_step(self):
        """What is there by then is ingested."""
        for name, data in self.ranks(2).items():
            self.append(name, data)
        for delay_s in (0.005, 0.01, 0.02, 0.04):
            process = self.start("--db", "w.db")
            time.sleep(delay_s)
            process.send_signal(signal.SIGINT)
            if process.wait(watching.LIMIT_S) == 0:  # not before it takes the signal
                self.assert_fresh()
            for name in os.listdir(self.folder):
                if name.startswith("w.db"):
                    os.remove(self.path(name))

    def test_database_removed(self):
        name, data = next(iter(self.ranks(1).items()))
        self.append(name, data)
        process = self.start("--db", "w.db")
        self.wait_for_records(self.records(data))
        os.remove(self.path("w.db"))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(watching.LIMIT_S), 2)
        self.assertIn("'w.db' was removed while it was written", self.output())

    def test_removed(self):
        (one, first), (two, second) = self.ranks(2).items()
        self.append(one, first)
        self.append(two, second)
        process = self.start("--db", "w.db")
        self.wait_for_records(self.records(first) + self.records(second))
        os.remove(self.path("logs", two))
        self.wait_for("the row of the import log", lambda: harness.rows(
            self.path("w.db"), "SELECT count(*) FROM import_log WHERE code = 'removed_file'") == [[1]])
        self.end(process)
        self.assertEqual(harness.rows(self.path("w.db"), "SELECT record_count FROM log_file WHERE path LIKE ?", "%" + two),
                         [[self.records(second)]])
        message = harness.rows(self.path("w.db"), "SELECT message FROM import_log WHERE code = 'removed_file'")[0][0]
        self.assertRegex(message, r"removed by \d{4}-\d\d-\d\dT")

    def compress(self, name, data=b""):
        """As logrotate does it, after a last record; the bytes of the log are in <name>.gz then."""
        self.append(name, data)
        with open(self.path("logs", name), "rb") as file, gzip.open(self.path("logs", name + ".gz"), "wb") as to:
            to.write(file.read())
        os.remove(self.path("logs", name))

    def test_compressed_and_removed(self):
        """The same log under another name; what was added last is only in the compressed one. Nothing is counted twice."""
        (one, first), (two, second) = self.ranks(2).items()
        half = first.rfind(b"\nV", 0, len(first) // 2) + 1
        self.append(one, first[:half])
        self.append(two, second)
        process = self.start("--db", "w.db")
        self.wait_for_records(self.records(first[:half]) + self.records(second))
        self.compress(one, first[half:])
        self.compress(two)
        paths = "SELECT path, record_count FROM log_file ORDER BY path"
        expected = [[f"logs/{one}.gz", self.records(first)], [f"logs/{two}.gz", self.records(second)]]
        self.wait_for("one row for each log", lambda: harness.rows(self.path("w.db"), paths) == expected)
        self.end(process)
        self.assert_fresh()
        self.assertEqual(harness.rows(self.path("w.db"), paths), expected)

    def test_compressed_between_two_watches(self):
        (one, first), (two, second) = self.ranks(2).items()
        self.append(one, first)
        self.append(two, second)
        self.tlparse("watch", "logs", "--once", "--db", "w.db")
        self.compress(one)
        os.remove(self.path("logs", two))  # nowhere else: its rows stay
        self.tlparse("watch", "logs", "--once", "--db", "w.db")
        self.assertEqual(harness.rows(self.path("w.db"), "SELECT path, record_count FROM log_file ORDER BY path"),
                         [[f"logs/{one}.gz", self.records(first)], [f"logs/{two}", self.records(second)]])

    def test_locked(self):
        """Another program holds SQLite's lock for longer than SQLite waits: it is reported, nothing is lost."""
        (one, first), (two, second) = self.ranks(2).items()
        self.append(one, first)
        process = self.start("--db", "w.db")
        self.wait_for_records(self.records(first))
        other = harness.sqlite3.connect(self.path("w.db"), isolation_level=None)
        self.addCleanup(other.close)
        self.wait_for("the lock", lambda: other.execute("BEGIN IMMEDIATE"))
        self.append(two, second)
        text = "another program has locked the database 'w.db'"
        self.wait_for(text, lambda: text in self.output())
        time.sleep(9)
        self.assertIsNone(process.poll(), self.output())
        self.assertEqual(self.output().count(text), 1)
        other.execute("ROLLBACK")
        other.close()
        self.wait_for_records(self.records(first) + self.records(second))
        self.wait_for("the end of the lock", lambda: "is not locked any more" in self.output())
        self.end(process)
        self.assert_fresh()

    def test_stopped_while_locked(self):
        name, data = next(iter(self.ranks(1).items()))
        half = data.rfind(b"\nV", 0, len(data) // 2) + 1
        self.append(name, data[:half])
        process = self.start("--db", "w.db")
        self.wait_for_records(self.records(data[:half]))
        other = harness.sqlite3.connect(self.path("w.db"), isolation_level=None)
        self.addCleanup(other.close)
        self.wait_for("the lock", lambda: other.execute("BEGIN IMMEDIATE"))
        self.append(name, data[half:])
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(watching.LIMIT_S), 2)
        self.assertIn("another program has locked the database 'w.db'", self.output())
        other.execute("ROLLBACK")
        other.close()
        self.tlparse("watch", "logs", "--once", "--db", "w.db")
        self.assert_fresh()

    def test_half_a_record(self):
        name, data = next(iter(self.ranks(1).items()))
        cut = data.rfind(b"\n\t", 0, len(data) // 2) + 5  # within a payload
        self.append(name, data[:cut])
        process = self.start("--db", "w.db")
        whole = self.records(data[:data.rfind(b"\nV", 0, cut) + 1])
        self.wait_for_records(whole)
        self.append(name, data[cut:])
        self.wait_for_records(self.records(data))
        self.end(process)
        self.assert_fresh()

    def test_many(self):
        logs = self.ranks(64)
        process = self.start("--db", "w.db", "--until-idle", "4s")
        for part in range(4):
            for name, data in logs.items():
                self.append(name, data[part * len(data) // 4:(part + 1) * len(data) // 4])
            time.sleep(0.3)
        self.assertIn(process.wait(watching.LIMIT_S), (0, 1))
        self.assert_fresh()

    def test_name_of_a_refused_compile(self):
        """PyTorch writes no name for a compile that it refuses at the recompile limit: that of its frame is there while the log grows."""
        data = harness.log_bytes(harness.bundled("recompiles_2_6"))
        self.append("dedicated_log_torch_trace_abcdefgh.log", data)
        process = self.start("--db", "w.db")
        self.wait_for_records(self.records(data))
        names = "SELECT label, function, file, line FROM compile WHERE frame_id IS NOT NULL ORDER BY label"
        following = harness.rows(self.path("w.db"), names)
        self.end(process)
        self.assert_fresh()
        self.assertEqual(following, harness.rows(self.path("fresh.db"), names))
        self.assertNotIn(None, [function for _, function, _, _ in following])

    def test_mistakes(self):
        for arguments, text in ((["none"], "no such directory"), (["logs", "--alert", "nonsense", "--exec", "true"], "no finding"),
                                (["logs", "--alert", "stuck>x", "--exec", "true"], "seconds"),
                                (["logs", "--alert", "stuck"], "--exec"), (["logs", "--until-idle", "soon"], "seconds")):
            done = self.tlparse("watch", *arguments, "--db", "w.db", expect=2)
            self.assert_one_line_of_complaint(done)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main()
