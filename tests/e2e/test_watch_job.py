#!/usr/bin/env python3
"""tlparse watch of a job: how a watch ends, what its lines say, and recorded jobs."""

import json
import os
import re
import sys
import time
import unittest

import harness
import watching


class Ends(watching.Watching):
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
        self.assertEqual(self.start("--db", "w.db", "--json", "--until-idle", "2s").wait(watching.LIMIT_S), 1)
        self.assertIn("error", self.open_severities())

    def test_until_idle_without_errors(self):
        self.put("tlparse_meta")
        self.assertEqual(self.start("--db", "w.db", "--json", "--until-idle", "2s").wait(watching.LIMIT_S), 0)
        self.assertNotIn("error", self.open_severities())
        self.assertEqual(self.events()[-1]["event"], "end")

    def test_budget(self):
        self.put("recompiles_2_6")
        self.tlparse("watch", "logs", "--once", "--db", "w.db")
        self.tlparse("watch", "logs", "--once", "--db", "w.db", "--max-recompiles", "1000")
        over = self.tlparse("watch", "logs", "--once", "--db", "w.db", "--max-recompiles", "0", expect=1)
        self.assertIn("recompile", over.stdout)
        self.assertEqual(self.start("--db", "w.db", "--until-idle", "2s", "--max-recompiles", "0").wait(watching.LIMIT_S), 1)

    def test_changed_findings(self):
        """A finding that concerns other ranks than before is shown again; each id is open once at a time."""
        logs = {}
        for index in range(4):
            log = harness.bundled("hang_in_compile", index)
            logs[os.path.basename(log).removesuffix(".zst").removesuffix(".gz")] = harness.log_bytes(log)
        hanging, = (name for name in logs if "rank_2" in name)
        process = self.start("--db", "w.db", "--json")
        plain = self.start("--db", "v.db")
        self.wait_for("the databases", lambda: [harness.rows(self.path(name), "SELECT count(*) FROM run") for name in ("v.db", "w.db")]
                      == [[[1]], [[1]]])
        for name, data in logs.items():
            self.append(name, data)
        self.wait_for("the rank that hangs", lambda: [2] in [finding["ranks"] for finding in self.findings("stuck")])
        self.append(hanging.replace("rank_2", "rank_4"), logs[hanging].replace(b'"rank": 2', b'"rank": 4'))
        self.wait_for("the other one", lambda: [2, 4] in [finding["ranks"] for finding in self.findings("stuck", "changed")])
        self.wait_for("its line", lambda: re.search(r"\d changed: error: Ranks 2,4 have been inside 1/0 grad_sync", self.output()))
        self.end(process)
        self.end(plain)
        standing = set()
        for event in self.events():
            if event["event"] == "finding":
                self.assertEqual(event["state"] == "open", event["finding"]["id"] not in standing, event)
                (standing.discard if event["state"] == "settled" else standing.add)(event["finding"]["id"])

    def status_lines(self):
        """The latest lines of state, without their times."""
        lines = [line.partition(" ")[2] for line in self.output().splitlines()]
        return [line for line in lines if re.match(r"(\d+ ranks|ranks?|\d+ process)", line)]

    def test_removed_log(self):
        """Of a log that is gone nobody can say whether its rank is stuck; the others are judged."""
        logs = {}
        for index in range(4):
            log = harness.bundled("hang_in_compile", index)
            logs[os.path.basename(log).removesuffix(".zst").removesuffix(".gz")] = harness.log_bytes(log)
        hanging, = (name for name in logs if "rank_2" in name)
        logs[hanging.replace("rank_2", "rank_4")] = logs[hanging].replace(b'"rank": 2', b'"rank": 4')
        process = self.start("--db", "w.db", "--json")
        plain = self.start("--db", "v.db")
        self.wait_for("the database", lambda: harness.rows(self.path("w.db"), "SELECT count(*) FROM run") == [[1]])
        for name, data in logs.items():
            self.append(name, data)
        self.wait_for("some rows", lambda: harness.rows(self.path("w.db"), "SELECT count(*) FROM log_file") == [[5]])
        self.wait_for("some rows", lambda: harness.rows(self.path("v.db"), "SELECT count(*) FROM log_file") == [[5]])
        os.remove(self.path("logs", hanging))
        text = "rank 2: the log was removed, shown as of its last record"
        self.wait_for(text, lambda: text in self.status_lines())
        self.wait_for("the other that hangs", lambda: [4] in [finding["ranks"] for finding in self.findings("stuck")])
        self.end(process)
        self.end(plain)
        self.assertEqual([finding for finding in self.findings("stuck") if finding["ranks"] != [4]], self.findings("stuck", "settled"))

    def test_rank_with_two_logs(self):
        """One rank, however many logs it has; groups of one size are in order of their ranks."""
        data = harness.log_bytes(harness.bundled("hang_in_compile"))
        half = data[:data.rfind(b"\nV", 0, len(data) // 2) + 1]
        for suffix in ("log", "log.1"):
            self.append("dedicated_log_torch_trace_rank_0_abcdefgh." + suffix, half)
        other = harness.log_bytes(harness.bundled("hang_in_compile", 1))
        process = self.start("--db", "w.db")
        self.append("dedicated_log_torch_trace_rank_1_abcdefgh.log", other)
        self.wait_for("the state", lambda: len(self.status_lines()) >= 2)
        self.end(process)
        lines = self.status_lines()[-2:]
        self.assertRegex(lines[0], r"^rank 0: ")
        self.assertRegex(lines[1], r"^rank 1: ")

    def test_launch_that_runs_has_no_end(self):
        """An earlier launch ended; how long the one that runs compiles is not known yet."""
        logs = []
        for index in range(12):
            log = harness.bundled("restart_elastic", index)
            data = harness.log_bytes(log)
            logs.append((next(watching.timed_records(data))[0], os.path.basename(log).removesuffix(".zst").removesuffix(".gz"), data))
        logs.sort()
        process = self.start("--db", "w.db", "--json")
        self.wait_for("the database", lambda: harness.rows(self.path("w.db"), "SELECT count(*) FROM run") == [[1]])
        for _, name, data in logs[:8]:  # two launches of four ranks
            self.append(name, data)
        self.wait_for("the finding", lambda: self.findings("restarted"))
        self.end(process)
        title = self.findings("restarted")[0]["title"]
        self.assertRegex(title, r"^Launch 1 of 2 \(\d\d:\d\d:\d\d to \d\d:\d\d:\d\d UTC\) ended earlier on some ranks: Rank 2's log ends after 0/0 forward")
        self.assertNotIn("compile time instead", self.output())
        after = self.tlparse("findings", "w.db").stdout
        self.assertIn("ended earlier on some ranks", " ".join(after.split()))

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
        self.assertEqual(self.start("--db", "w.db", "--json", "--until-idle", "2s").wait(watching.LIMIT_S), 1)
        texts = self.output().splitlines()
        self.assertEqual({json.loads(text)["event"] for text in texts}, {"job", "status", "finding", "end"})
        for text in texts:
            line.validate(json.loads(text))
            if json.loads(text)["event"] == "finding":
                finding.validate(json.loads(text)["finding"])


class Recorded(watching.Watching):
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
                          for when, record in watching.timed_records(data)), key=lambda one: one[0])
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
        self.assertRegex(stuck[0]["title"], r"^Rank 2 has been inside 1/0 grad_sync for [\d.]+ s, last in pass\.post_grad_passes\."
                         r"post_grad_custom_post_pass; ranks 0,1,3 finished that compile in [\d.]+ s at most$")
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
