#!/usr/bin/env python3
"""tlparse watch -: logs from standard input."""

import os
import subprocess
import time
import unittest

import harness
import watching


class StandardInput(watching.Watching):
    """tlparse watch -."""

    def start_feed(self, *arguments):
        output = open(self.path("watch.out"), "ab")
        self.addCleanup(output.close)
        process = subprocess.Popen([harness.TLPARSE, "watch", "-", "--db", "w.db", *arguments], cwd=self.folder,
                                   stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT)
        self.running.append(process)
        self.addCleanup(process.stdin.close)
        return process

    def feed(self, process, *parts):
        for part in parts:
            process.stdin.write(part)
        process.stdin.flush()

    def logs_of_database(self):
        return {path: (rank, count) for path, rank, count in harness.rows(
            self.path("w.db"), "SELECT f.path, (SELECT min(p.rank) FROM process p WHERE p.log_file_id = f.id), f.record_count "
            "FROM log_file f")}

    def test_one_log(self):
        """No header: one log. Its last record counts although nothing follows; the end of the input is the end."""
        data = next(iter(self.ranks(1).values()))
        process = self.start_feed()
        self.feed(process, data[:len(data) // 2 + 7])
        self.wait_for("some rows", lambda: harness.rows(self.path("w.db"), "SELECT record_count > 0 FROM log_file") == [[1]])
        self.feed(process, data[len(data) // 2 + 7:])
        self.wait_for_records(self.records(data))
        process.stdin.close()
        self.assertIn(process.wait(watching.LIMIT_S), (0, 1), self.output()[-2000:])
        self.assertEqual({path: count for path, (_, count) in self.logs_of_database().items()}, {"-": self.records(data)})

    def test_headers(self):
        """The output of a real tail of logs that grow."""
        logs = self.ranks(3)
        for name, data in logs.items():
            self.append(name, data[:len(data) // 3])
        tail = subprocess.Popen(["tail", "-n", "+1", "-s", "0.1", "-f", *(f"logs/{name}" for name in logs)], cwd=self.folder,
                                stdout=subprocess.PIPE)
        self.running.append(tail)
        self.addCleanup(tail.stdout.close)
        process = subprocess.Popen([harness.TLPARSE, "watch", "-", "--db", "w.db"], cwd=self.folder, stdin=tail.stdout,
                                   stdout=subprocess.DEVNULL)
        self.running.append(process)
        for part in (1, 2):
            for name, data in logs.items():  # cut within lines
                self.append(name, data[part * len(data) // 3:(part + 1) * len(data) // 3])
            time.sleep(0.3)
        self.wait_for_records(sum(map(self.records, logs.values())))
        tail.terminate()
        tail.wait(watching.LIMIT_S)
        self.assertIn(process.wait(watching.LIMIT_S), (0, 1))
        self.assertEqual({path: count for path, (_, count) in self.logs_of_database().items()},
                         {f"-/logs/{name}": self.records(data) for name, data in logs.items()})
        damage = harness.rows(self.path("w.db"), "SELECT code, message FROM import_log WHERE severity = 'error'")
        self.assertEqual(damage, [])
        for name in logs:
            size = harness.rows(self.path("w.db"), "SELECT size_bytes FROM log_file WHERE path = ?", f"-/logs/{name}")
            self.assertEqual(size, [[len(logs[name])]])

    def test_names_are_names(self):
        """Nothing of such a name is opened, made or changed."""
        data = next(iter(self.ranks(1).values()))
        self.append("secret.log", data)
        names = [self.path("logs", "secret.log"), "../logs/secret.log", "../../made", self.path("made"), "-", "\x1b[2J", "a'; DROP TABLE run",
                 "x" * 4000, "\xff".encode("latin-1").decode("latin-1")]
        process = self.start_feed()
        for name in names:
            self.feed(process, b"\n==> " + name.encode() + b" <==\n", data[:data.find(b"\nV") + 1])
        self.feed(process, b"\n==> " + b"y" * 5000 + b" <==\n", b"\n==>  <==\n")  # no header
        process.stdin.close()
        self.assertIn(process.wait(watching.LIMIT_S), (0, 1), self.output()[-2000:])
        counts = self.logs_of_database()
        self.assertEqual(set(counts), {"-/" + name for name in names})
        self.assertEqual({count for _, count in counts.values()}, {1})
        self.assertEqual(sorted(os.listdir(self.folder)), ["logs", "w.db", "watch.out"])
        self.assertNotIn("\x1b", self.output())
        with open(self.path("logs", "secret.log"), "rb") as file:
            self.assertEqual(file.read(), data)

    def test_no_standard_input(self):
        """A descriptor that is closed is not taken for a file that is opened later."""
        done = subprocess.run(f"'{harness.TLPARSE}' watch - --db w.db <&- >&- 2>err", shell=True, cwd=self.folder, check=False,
                              timeout=watching.LIMIT_S)
        self.assertEqual(done.returncode, 0)
        with open(self.path("err"), encoding="utf-8") as file:
            self.assertIn("no log has come", file.read())
        self.assertEqual(harness.rows(self.path("w.db"), "PRAGMA integrity_check"), [["ok"]])

    def test_once(self):
        done = self.tlparse("watch", "-", "--once", "--db", "w.db", expect=2)
        self.assertIn("--until-idle", done.stderr)


if __name__ == "__main__":
    unittest.main()
