#!/usr/bin/env python3
"""tlparse watch: logs that grow, are rewritten or removed; in every case the database equals a fresh ingest."""

import gzip
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import harness
import same_rows

KILLS = int(os.environ.get("TRACEKIT_KILLS", "10"))
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
                                   stdout=output, stderr=subprocess.STDOUT)
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


class Watch(Watching):
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
        for name in os.listdir(self.folder):  # of one that was killed before the database was there
            if name.startswith("w.db.") and name.endswith(".tmp"):
                os.remove(self.path(name))
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

    def test_many(self):
        logs = self.ranks(64)
        process = self.start("--db", "w.db", "--until-idle", "4s")
        for part in range(4):
            for name, data in logs.items():
                self.append(name, data[part * len(data) // 4:(part + 1) * len(data) // 4])
            time.sleep(0.3)
        self.assertIn(process.wait(LIMIT_S), (0, 1))
        self.assert_fresh()

    def test_mistakes(self):
        for arguments, text in ((["none"], "no such directory"), (["logs", "--alert", "nonsense", "--exec", "true"], "no finding"),
                                (["logs", "--alert", "stuck>x", "--exec", "true"], "seconds"),
                                (["logs", "--alert", "stuck"], "--exec"), (["logs", "--until-idle", "soon"], "seconds")):
            done = self.tlparse("watch", *arguments, "--db", "w.db", expect=2)
            self.assert_one_line_of_complaint(done)
            self.assertIn(text, done.stderr)


class StandardInput(Watching):
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
        self.assertIn(process.wait(LIMIT_S), (0, 1), self.output()[-2000:])
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
        tail.wait(LIMIT_S)
        self.assertIn(process.wait(LIMIT_S), (0, 1))
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
        self.assertIn(process.wait(LIMIT_S), (0, 1), self.output()[-2000:])
        counts = self.logs_of_database()
        self.assertEqual(set(counts), {"-/" + name for name in names})
        self.assertEqual({count for _, count in counts.values()}, {1})
        self.assertEqual(sorted(os.listdir(self.folder)), ["logs", "w.db", "watch.out"])
        self.assertNotIn("\x1b", self.output())
        with open(self.path("logs", "secret.log"), "rb") as file:
            self.assertEqual(file.read(), data)

    def test_once(self):
        done = self.tlparse("watch", "-", "--once", "--db", "w.db", expect=2)
        self.assertIn("--until-idle", done.stderr)


class Ends(Watching):
    """How a watch ends, and what its lines say."""

    def put(self, scenario, count=1):
        for index in range(count):
            log = harness.bundled(scenario, index)
            self.append(os.path.basename(log).removesuffix(".zst").removesuffix(".gz"), harness.log_bytes(log))

    def open_severities(self):
        found = {}
        for event in self.events():
            if event["event"] == "finding":
                found[event["finding"]["id"]] = event["finding"]["severity"] if event["state"] == "open" else None
        return set(found.values())

    def test_until_idle(self):
        """1 with a finding of severity error that is open, 0 without one."""
        self.put("hang_in_compile", 4)
        self.assertEqual(self.start("--db", "w.db", "--json", "--until-idle", "2s").wait(LIMIT_S), 1)
        self.assertIn("error", self.open_severities())

    def test_until_idle_without_errors(self):
        self.put("tlparse_meta")
        self.assertEqual(self.start("--db", "w.db", "--json", "--until-idle", "2s").wait(LIMIT_S), 0)
        self.assertNotIn("error", self.open_severities())
        self.assertEqual(self.events()[-1]["event"], "end")

    def test_budget(self):
        self.put("recompiles_2_6")
        self.tlparse("watch", "logs", "--once", "--db", "w.db")
        self.tlparse("watch", "logs", "--once", "--db", "w.db", "--max-recompiles", "1000")
        over = self.tlparse("watch", "logs", "--once", "--db", "w.db", "--max-recompiles", "0", expect=1)
        self.assertIn("recompile", over.stdout)
        self.assertEqual(self.start("--db", "w.db", "--until-idle", "2s", "--max-recompiles", "0").wait(LIMIT_S), 1)

    def test_lines_have_the_schema(self):
        """Every kind of line, with findings as `tlparse findings` has them."""
        try:
            import jsonschema
        except ImportError:
            self.skipTest("there is no jsonschema")
        answers = os.path.join(harness.ROOT, "schemas", "json", "answers")
        with open(os.path.join(answers, "watch.schema.json"), encoding="utf-8") as file:
            line = jsonschema.Draft7Validator(json.load(file))
        with open(os.path.join(answers, "findings.schema.json"), encoding="utf-8") as file:
            schema = json.load(file)
        finding = jsonschema.Draft7Validator({"definitions": schema["definitions"], "$ref": "#/definitions/finding"})
        self.put("hang_in_compile", 4)
        self.assertEqual(self.start("--db", "w.db", "--json", "--until-idle", "2s").wait(LIMIT_S), 1)
        texts = self.output().splitlines()
        self.assertEqual({json.loads(text)["event"] for text in texts}, {"job", "status", "finding", "end"})
        for text in texts:
            line.validate(json.loads(text))
            if json.loads(text)["event"] == "finding":
                finding.validate(json.loads(text)["finding"])


def timed_records(data):
    """(seconds within its day, bytes) of each record."""
    starts = [0] + [match.start() + 1 for match in re.finditer(rb"\nV\d{4} ", data)]
    for begin, end in zip(starts, starts[1:] + [len(data)]):
        hours, minutes, seconds = data[begin + 6:begin + 21].split(b":")
        yield 3600 * int(hours) + 60 * int(minutes) + float(seconds), data[begin:end]


class Recorded(Watching):
    """Recorded jobs, where they are."""

    JOBS = os.path.join(os.path.dirname(harness.ROOT), "shared", "jobs")

    def job(self, name):
        folder = os.path.join(self.JOBS, name, "logs")
        if not os.path.isdir(folder):
            self.skipTest(f"{folder} is not there")
        return {file[:-4]: harness.log_bytes(os.path.join(folder, file)) for file in sorted(os.listdir(folder))}

    def test_growing(self):
        """Growth as recorded, 40 times as fast, cut at random places."""
        logs = self.job("growing")
        process = self.start("--db", "w.db", "--json")
        with open(os.path.join(self.JOBS, "growing", "arrival.jsonl"), encoding="utf-8") as file:
            arrivals = [json.loads(line) for line in file]
        began, first, done = time.monotonic(), arrivals[0]["t"], dict.fromkeys(logs, 0)
        for arrival in arrivals:
            time.sleep(max(0, (arrival["t"] - first) / 40 - (time.monotonic() - began)))
            name = arrival["file"]
            end = max(done[name], arrival["size"] - self.random.randrange(3000))
            self.append(name, logs[name][done[name]:end])
            done[name] = end
        for name, data in logs.items():
            self.append(name, data[done[name]:])
        self.wait_for_records(sum(map(self.records, logs.values())))
        self.end(process)
        self.assert_fresh()

    def test_hang(self):
        """The rank that hangs is named, and no other; a command hears of it."""
        logs = {}
        for index in range(4):
            log = harness.bundled("hang_in_compile", index)
            logs[os.path.basename(log).removesuffix(".zst").removesuffix(".gz")] = harness.log_bytes(log)
        process = self.start("--db", "w.db", "--json", "--alert", "stuck", "--exec", "cat > heard.json")
        self.wait_for("the database", lambda: harness.rows(self.path("w.db"), "SELECT count(*) FROM run") == [[1]])
        for name, data in logs.items():  # the records are old, but they come now
            self.append(name, data[:len(data) // 2])
        self.wait_for("some rows", lambda: harness.rows(self.path("w.db"), "SELECT count(*) FROM log_file") == [[4]])
        for name, data in logs.items():
            self.append(name, data[len(data) // 2:])
        self.wait_for("the finding", lambda: self.findings("stuck"))
        self.wait_for("the alert", lambda: os.path.exists(self.path("heard.json")) and os.path.getsize(self.path("heard.json")) > 0)
        self.end(process)
        opened = [event["finding"] for event in self.events() if event["event"] == "finding"]
        stuck = [finding for finding in opened if finding["kind"] == "stuck"]
        self.assertEqual([finding["ranks"] for finding in stuck], [[2]])
        self.assertIn("ranks 0,1,3 finished that compile", stuck[0]["title"])
        with open(self.path("heard.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["id"], stuck[0]["id"])
        self.assertEqual(len(self.findings("stopped_first")), len(self.findings("stopped_first", "settled")))

    def test_hang_replayed(self):
        """hang_in_compile, each record written at its time: nobody is called stuck while ranks compile, then only the one that hangs."""
        records = sorted(((when, name, record) for name, data in self.job("hang_in_compile").items()
                          for when, record in timed_records(data)), key=lambda one: one[0])
        process = self.start("--db", "w.db", "--json")
        self.wait_for("the database", lambda: harness.rows(self.path("w.db"), "SELECT count(*) FROM run") == [[1]])
        began = time.monotonic()
        for when, name, record in records:
            time.sleep(max(0, when - records[0][0] - (time.monotonic() - began)))
            self.append(name, record)
        quiet_since = time.monotonic()
        self.assertEqual(self.findings("stuck"), [])
        self.wait_for("the finding", lambda: self.findings("stuck"))
        print(f"named {time.monotonic() - quiet_since:.1f} s after the last record: {self.findings('stuck')[0]['title']}",
              file=sys.stderr)
        self.end(process)
        stuck = self.findings("stuck")
        self.assertEqual([finding["ranks"] for finding in stuck], [[2]])
        self.assertEqual(stuck[0]["compiles"], ["1/0"])
        self.assertRegex(stuck[0]["title"], r"^Rank 2 has been inside 1/0 grad_sync, in pass\.post_grad_passes\.post_grad_custom_post_"
                         r"pass for [\d.]+ s; ranks 0,1,3 finished that compile in [\d.]+ s at most$")
        self.assertIn("does not show whether the process hangs, is slow, or has died", stuck[0]["detail"])

    def test_ended_long_ago(self):
        """Old records in files that do not grow: shown as ended, until one grows."""
        logs = {}
        for index in range(4):
            log = harness.bundled("hang_in_compile", index)
            logs[os.path.basename(log).removesuffix(".zst").removesuffix(".gz")] = harness.log_bytes(log)
        for name, data in logs.items():
            self.append(name, data[:data.rfind(b"\nV", 0, len(data) - 1) + 1])
        shown = self.tlparse("watch", "logs", "--once", "--db", "once.db").stdout
        self.assertIn("the logs, or their last records, are an hour old or older", shown)
        self.assertIn("ended inside", shown)
        self.assertNotIn(" been inside ", shown)
        process = self.start("--db", "w.db", "--json")
        self.wait_for("the end of rank 2", lambda: self.findings("stopped_first"))
        self.assertEqual(self.findings("stuck"), [])
        for name, data in logs.items():
            self.append(name, data[data.rfind(b"\nV", 0, len(data) - 1) + 1:])
        self.wait_for("a rank that is stuck", lambda: self.findings("stuck"))
        self.assertEqual(len(self.findings("stopped_first", "settled")), len(self.findings("stopped_first")))
        self.assertEqual([event["state"] for event in self.events() if event["event"] == "job"], ["ended", "running"])
        self.end(process)


if __name__ == "__main__":
    unittest.main()
