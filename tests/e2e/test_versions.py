#!/usr/bin/env python3
"""Databases of earlier versions, one for each released schema version (fixtures/databases/schema_<version>.db.gz): every
command refuses them with one line that says what to do, and changes nothing."""

import glob
import gzip
import os
import re
import unittest

import harness

DATABASES = os.path.join(harness.ROOT, "fixtures", "databases")
ANSWERS = (["sql", "SELECT 1"], ["history"], ["recompiles"], ["provenance"], ["ranks"], ["cache"], ["collectives"], ["execution"],
           ["import-log"], ["check", "--no-failures"])


def databases():
    return {int(re.search(r"schema_(\d+)\.db\.gz$", path).group(1)): path for path in glob.glob(os.path.join(DATABASES, "*"))}


class Versions(harness.EndToEnd):
    def unpacked(self, version):
        with gzip.open(databases()[version]) as file:
            return self.write(f"schema_{version}.db", file.read())

    def current(self):
        self.tlparse(harness.bundled("simple"), "-o", "now", "--db-only")
        return harness.rows(self.path("now", "trace.db"), "PRAGMA user_version")[0][0]

    def test_every_earlier_version_has_its_database(self):
        current = self.current()
        self.assertEqual(sorted(databases()), list(range(2, current)), "keep a database of the version before this one")
        for version in databases():
            self.assertEqual(harness.rows(self.unpacked(version), "PRAGMA user_version"), [[version]])

    def test_earlier_versions_are_refused_with_the_command_that_helps(self):
        for version in databases():
            path = self.unpacked(version)
            with open(path, "rb") as file:
                before = file.read()
            calls = [[command, path, *rest] for command, *rest in ANSWERS]
            calls.append([harness.bundled("simple"), "--run", "more", "--db", path, "--db-only"])
            for arguments in calls:
                with self.subTest(version=version, command=arguments[0]):
                    done = self.tlparse(*arguments, expect=2)
                    self.assert_one_line_of_complaint(done)
                    self.assertIn(f"schema version {version}", done.stderr)
                    self.assertIn("tlparse LOGS -o DIRECTORY --overwrite", done.stderr)
                    with open(path, "rb") as file:
                        self.assertEqual(file.read(), before)

    def test_serve_refuses_a_database_that_lacks_a_table(self):
        """Of this version, but written before the table was added: the command that helps adds it."""
        self.current()
        path = self.path("now", "trace.db")
        connection = harness.sqlite3.connect(path)
        connection.execute("DROP TABLE run_digest")
        connection.commit()
        connection.close()
        done = self.tlparse("serve", path, "--port", "0", expect=2)
        self.assert_one_line_of_complaint(done)
        self.assertIn("lacks run_digest.", done.stderr)
        self.assertIn(f"tlparse LOGS --db {path} --db-only", done.stderr)
        self.tlparse(harness.bundled("simple"), "--db", path, "--db-only")
        self.assertEqual(harness.rows(path, "SELECT count(*) FROM run_digest"), [[0]])

    def test_an_answer_says_that_a_view_is_of_an_earlier_version(self):
        self.current()
        path = self.path("now", "trace.db")
        connection = harness.sqlite3.connect(path)
        view, = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'torch_log_recompile'").fetchone()
        connection.execute("DROP VIEW torch_log_recompile")
        connection.execute(view.replace(" AS function_line", " AS place"))
        connection.commit()
        connection.close()
        done = self.tlparse("recompiles", path, expect=2)
        self.assert_one_line_of_complaint(done)
        self.assertIn("was written by an earlier tlparse and lacks torch_log_recompile.function_line: ", done.stderr)
        self.tlparse(harness.bundled("simple"), "--db", path, "--db-only")
        self.tlparse("recompiles", path)

    def test_a_newer_version_is_refused(self):
        self.current()
        path = self.path("now", "trace.db")
        connection = harness.sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 99")
        connection.commit()
        connection.close()
        done = self.tlparse("history", path, expect=2)
        self.assert_one_line_of_complaint(done)
        self.assertIn("a newer tlparse (schema version 99", done.stderr)


if __name__ == "__main__":
    unittest.main()
