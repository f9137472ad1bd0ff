#!/usr/bin/env python3
"""What the generator of query structs refuses, and that it names the place."""

import argparse
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SCHEMA = None, []


def generate(text):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "some.sql")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return subprocess.run([PROGRAM, folder, folder, *SCHEMA, "--", path], capture_output=True, text=True, check=False)


class Refused(unittest.TestCase):
    def refuses(self, text, *words):
        done = generate(text)
        self.assertEqual(1, done.returncode, text)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_what_sqlite_refuses(self):
        self.refuses("-- query One\nSELECT id FROM nowhere;\n", "some.sql:1: One: no such table: nowhere")
        self.refuses("\n-- query One\nSELECT idd FROM run;\n", "some.sql:2: One: no such column: idd")

    def test_expressions_without_type(self):
        self.refuses("-- query One\nSELECT count(*) AS runs, max(id) AS last FROM run;\n", "need a /*TYPE*/: runs last")
        self.refuses("-- query One\nSELECT count(*) AS runs /*NUMBER*/ FROM run;\n", "'NUMBER' is neither a type nor a lookup table")
        self.refuses("-- query One\nSELECT count(*) FROM run;\n", "column 'count(*)' needs a name")

    def test_parameters(self):
        self.refuses("-- query One(id INTEGER)\nSELECT id FROM run;\n", "does not use its parameter 'id'")
        self.refuses("-- query One\nSELECT id FROM run WHERE id = :id;\n", "uses a parameter that it does not declare")
        self.refuses("-- query One(id)\nSELECT id FROM run WHERE id = :id;\n", "'id' is no parameter")
        self.refuses("-- query One(only SQL)\nSELECT id FROM run;\n", "does not use its parameter {only}")

    def test_names_and_ends(self):
        self.refuses("-- query One\nSELECT id FROM run;\n\n-- query One\nSELECT id FROM run;\n", "some.sql:4: One: another query of that name")
        self.refuses("-- query One\nSELECT id, id FROM run;\n", "two columns 'id'")
        self.refuses("-- query One\nSELECT id FROM run\n", "no ';' at its end")
        self.refuses("SELECT 1;\n", "not within a query")
        self.refuses("-- query One\nSELECT id FROM run; SELECT\n1 AS one /*INTEGER*/;\n", "more than one statement")

    def test_it_takes_a_good_one(self):
        done = generate("-- query One\nSELECT id, name FROM run;\n")
        self.assertEqual((0, ""), (done.returncode, done.stderr))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--schema", nargs="+", required=True)
    parsed = parser.parse_args()
    PROGRAM, SCHEMA = parsed.program, parsed.schema
    unittest.main(argv=sys.argv[:1])
