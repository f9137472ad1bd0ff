#!/usr/bin/env python3
"""--run NAME --db FILE: several runs in one database, the same log again, a log that grew."""

import json
import os
import unittest

import harness

COUNTS = ("record", "compile", "attempt", "graph", "graph_text", "cache_event", "guard",
          "graph_break", "recompile", "failure", "chromium_event", "compilation_metric", "kernel",
          "kernel_node", "node_mapping", "collective", "op_runtime", "tensor_meta", "import_log")


class Append(harness.EndToEnd):
    def ingest(self, run, *logs, database="all.db"):
        self.tlparse(*logs, "--run", run, "--db", database, "--db-only")
        return self.path(database)

    def counts(self, database):
        return {table: harness.rows(database, f"SELECT count(*) FROM {table}") for table in COUNTS}

    def contents(self, database):
        """The rows of the public tables and views, without the ids, which depend on the order of the ingests."""
        found = {}
        for table in COUNTS:
            columns = [name for name, in harness.rows(database, f"SELECT name FROM pragma_table_info('{table}')")
                       if name != "id" and not name.endswith("_id")]
            found[table] = sorted(map(repr, harness.rows(database, f"SELECT {', '.join(columns)} FROM {table}")))
        return found

    def test_runs_side_by_side(self):
        logs = [harness.bundled(name) for name in ("simple", "mlp_train", "mlp_train_2_6")]
        for log in logs:
            database = self.ingest(os.path.basename(log), log)
        self.assertEqual(harness.rows(database, "SELECT count(*) FROM run"), [[3]])
        for log in logs:
            self.check(database, log, run=os.path.basename(log))
        single = [self.counts(self.ingest("x", log, database=f"{index}.db"))
                  for index, log in enumerate(logs)]
        self.assertEqual(self.counts(database), {
            table: [[sum(counts[table][0][0] for counts in single)]] for table in COUNTS})

    def test_answers_take_all_runs_or_one(self):
        for name in ("recompiles_2_6", "mlp_train_2_6"):
            log = harness.log_bytes(harness.bundled(name))
            database = self.ingest(name, self.write("job.log", log + b"from elsewhere\n"))
        for answer in ("history", "recompiles", "provenance", "import-log"):
            def rows(*options):
                answered = self.tlparse(answer, database, "--json", *options).stdout
                return next(iter(json.loads(answered).values()))
            ours, others = rows("--run", "recompiles_2_6"), rows("--run", "mlp_train_2_6")
            self.assertGreater(len(ours) + len(others), 0, answer)
            self.assertLessEqual({row["run"] for row in ours}, {"recompiles_2_6"}, answer)
            self.assertCountEqual(map(json.dumps, rows()), map(json.dumps, ours + others))
            self.assertRegex(self.tlparse(answer, database).stdout, r"\Arun +")
            self.assertIn("there is: recompiles_2_6, mlp_train_2_6",
                          self.tlparse(answer, database, "--run", "none", expect=2).stderr)

    def homes(self, database):
        """By view and table: the lines of the records that its rows lead to, with the other columns
        that hold no id."""
        connection = harness.connect(database)
        found = {}
        names = [row[0] for row in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'view' ORDER BY 1")]
        for name in names:
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')]
            if "record_id" not in columns:
                continue
            kept = [f'v."{column}"' for column in columns
                    if column != "id" and not column.endswith(("_id", "_record"))]
            rows = connection.execute(
                f'SELECT r.line, {", ".join(kept)} FROM "{name}" v LEFT JOIN record_row r '
                "ON r.id = v.record_id") if kept else []
            found[name] = sorted(map(repr, rows))
        connection.close()
        return found

    def test_a_log_that_grew_equals_a_fresh_ingest(self):
        whole = harness.log_bytes(harness.bundled("cache_warm_provenance"))
        self.write("job.log", whole[:len(whole) * 9 // 10])
        self.ingest("job", "job.log")
        self.write("job.log", whole)
        os.utime(self.path("job.log"), (1795249801, 1795249801))
        grown = self.homes(self.ingest("job", "job.log"))
        fresh = self.homes(self.ingest("job", "job.log", database="fresh.db"))
        self.assertGreater(len(fresh["kernel_node"]), 0)
        self.assertEqual([], [row for row in grown["kernel_node"] if row.startswith("(None")])
        for name, rows in fresh.items():
            self.assertEqual(grown[name], rows, name)

    def test_same_bytes_change_nothing(self):
        logs = [harness.bundled("diverge_config_2_6", rank) for rank in range(2)]
        database = self.ingest("job", *logs)
        before = harness.dump(database)
        for again in (logs, logs[1:], logs[:1]):
            self.ingest("job", *again)
            self.assertEqual(harness.dump(database), before)

    def test_one_more_log_of_the_same_run(self):
        logs = [harness.bundled("diverge_config_2_6", rank) for rank in range(3)]
        self.ingest("job", *logs[:2])
        database = self.ingest("job", logs[2])
        self.assertEqual(harness.rows(database, "SELECT count(*) FROM run"), [[1]])
        self.check(database, *logs)
        self.assertEqual(self.contents(database), self.contents(self.ingest("job", *logs, database="at_once.db")))

    def test_log_that_grew_replaces_its_rows(self):
        whole = harness.log_bytes(harness.bundled("tlparse_meta"))
        other = harness.bundled("mlp_train")
        self.ingest("other", other)
        for part in (len(whole) // 3, len(whole) * 2 // 3, len(whole)):
            log = self.write("growing.log", whole[:part])
            database = self.ingest("job", log)
            self.check(database, log, run="job")
            self.check(database, other, run="other")
            self.assertEqual(harness.rows(database, "SELECT count(*) FROM log_file"), [[2]])
        self.ingest("other", other, database="fresh.db")
        fresh = self.ingest("job", log, database="fresh.db")
        self.assertEqual(self.contents(database), self.contents(fresh))

    def test_without_run_the_path_is_the_name(self):
        log = self.write("some.log", harness.log_bytes(harness.bundled("simple")))
        self.tlparse("some.log", "--db", "all.db", "--db-only")
        self.assertEqual(harness.rows(self.path("all.db"), "SELECT name FROM run"), [["some.log"]])
        self.check(self.path("all.db"), log)

    def test_foreign_database_is_left_alone(self):
        for name, data in (("text.db", b"precious text"), ("empty_sqlite.db", None)):
            path = self.path(name)
            if data is None:
                connection = harness.sqlite3.connect(path)
                connection.execute("CREATE TABLE mine (precious)")
                connection.commit()
                connection.close()
            else:
                self.write(name, data)
            with open(path, "rb") as file:
                before = file.read()
            with self.subTest(name):
                done = self.tlparse(harness.bundled("simple"), "--run", "x", "--db", name,
                                    "--db-only", expect=2)
                self.assert_one_line_of_complaint(done)
                with open(path, "rb") as file:
                    self.assertEqual(file.read(), before)


if __name__ == "__main__":
    unittest.main()
