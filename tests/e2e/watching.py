"""Writes logs into a directory that tlparse watches; for the tests of `tlparse watch`."""

import json
import os
import random
import re
import signal
import subprocess
import time

import harness
import same_rows

LIMIT_S = float(os.environ.get("TRACEKIT_LIMIT_S", "240"))  # for whatever is waited for: no test depends on speed


class Watching(harness.EndToEnd):
    """Writes logs into a directory that tlparse watches."""

    def setUp(self):
        super().setUp()
        self.random = random.Random(11)
        os.mkdir(self.path("logs"))
        self.running = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
                process.wait()

    def start(self, *arguments, prefix=()):
        output = open(self.path("watch.out"), "ab")
        self.addCleanup(output.close)
        process = subprocess.Popen([*prefix, harness.TLPARSE, "watch", "logs", *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, env={**os.environ, "TLPARSE_WATCH_RATE": "10"})
        self.running.append(process)
        return process

    def output(self):
        with open(self.path("watch.out"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def events(self):
        return [json.loads(line) for line in self.output().splitlines() if line.startswith("{") and line.endswith("}")]

    def findings(self, kind, state="open"):
        return [event["finding"] for event in self.events()
                if event["event"] == "finding" and event["state"] == state and event["finding"]["kind"] == kind]

    def wait_for(self, what, condition):
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            try:
                if condition():
                    return
            except (harness.sqlite3.OperationalError, harness.sqlite3.DatabaseError, IndexError):
                pass
            time.sleep(0.1)
        self.fail(f"{what}: not within {LIMIT_S} s\n{self.output()[-2000:]}")

    def wait_for_records(self, count, database="w.db", path="%"):
        sql = "SELECT sum(record_count) FROM log_file WHERE path LIKE ?"
        self.wait_for(f"{count} records", lambda: harness.rows(self.path(database), sql, path)[0][0] == count)

    def end(self, process, number=signal.SIGINT):
        process.send_signal(number)
        self.assertEqual(process.wait(LIMIT_S), 0, self.output()[-2000:])

    def append(self, name, data):
        with open(self.path("logs", name), "ab") as file:
            file.write(data)

    def assert_fresh(self, database="w.db"):
        """One file, indexes included, with the rows of a fresh ingest."""
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(database) and name != database], [])
        if os.path.exists(self.path("fresh.db")):
            os.remove(self.path("fresh.db"))
        self.tlparse("logs", "--db", "fresh.db", "--db-only")
        self.assertEqual(same_rows.differences(self.path(database), self.path("fresh.db")), [])
        indexes = "SELECT name FROM sqlite_schema WHERE type = 'index' ORDER BY 1"
        self.assertEqual(harness.rows(self.path(database), indexes), harness.rows(self.path("fresh.db"), indexes))
        self.assertEqual(harness.rows(self.path(database), "PRAGMA integrity_check"), [["ok"]])

    def ranks(self, count=4):
        """Logs of a job, by name."""
        return {f"dedicated_log_torch_trace_rank_{rank}_abcdefgh.log":
                harness.log_bytes(harness.bundled("diverge_config_2_6", rank % 3)) for rank in range(count)}

    def records(self, data):
        with open(self.path("count.log"), "wb") as file:
            file.write(data)
        self.tlparse("count.log", "--db", "count.db", "--db-only")
        count = harness.rows(self.path("count.db"), "SELECT record_count FROM log_file")[0][0]
        os.remove(self.path("count.db"))
        return count


def timed_records(data):
    """(seconds within its day, bytes) of each record."""
    starts = [0] + [match.start() + 1 for match in re.finditer(rb"\nV\d{4} ", data)]
    for begin, end in zip(starts, starts[1:] + [len(data)]):
        hours, minutes, seconds = data[begin + 6:begin + 21].split(b":")
        yield 3600 * int(hours) + 60 * int(minutes) + float(seconds), data[begin:end]
