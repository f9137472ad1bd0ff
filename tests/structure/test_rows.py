#!/usr/bin/env python3
"""How sources ask the database: rows by name, facts of enumerations by column, queries in .sql files."""

import os
import re
import unittest

from test_structure import ROOT, SOURCES, SQL, below, read


class Rows(unittest.TestCase):
    """Rows are read by name; facts of an enumeration are columns of its lookup table."""

    BY_NUMBER = re.compile(r"(?<!\)\.)(?:\.|->)(?:Int|Text|Real|IsNull|Optional(?:Int|Text|Real))\(\d+\)")
    LIST = re.compile(r"\bIN \(\s*((?:'\w+'|\d+)(?:,\s*(?:'\w+'|\d+))*)\s*\)")

    def sources(self, *endings):
        return [path for path in below(SOURCES, *endings) if not path.startswith(os.path.join(SOURCES, "store"))]

    def by_number(self, text):
        # The writer of JSON has an Int as well: .Key("version").Int(1)
        return [line for line in text.splitlines() if self.BY_NUMBER.search(line) and ".Key(" not in line]

    def test_columns_are_read_by_name(self):
        self.assertEqual([], ["%s: %s" % (os.path.relpath(path, ROOT), line.strip())
                              for path in self.sources(".cc", ".h") for line in self.by_number(read(path))])
        self.assertTrue(self.by_number("    one.id = rows.Int(0);"), "it finds none")
        self.assertTrue(self.by_number("    if (!rows_->IsNull(3)) return;"), "it finds none")

    def enumerations(self):
        """Of each lookup table with facts: the names, and the column that references it."""
        tables = []
        for path in below(SQL, ".sql"):
            for name, columns, values in re.findall(r"(?s)CREATE TABLE (\w+) \(((?:(?!CREATE TABLE).)*?)\n\) STRICT;\nINSERT INTO \1 VALUES (.*?);\n", read(path)):
                if re.search(r"^\s+(?:is|has)_\w+ INTEGER", columns, re.MULTILINE):
                    tables.append((name, set(re.findall(r"\(\d+, '(\w+)'", values))))
        return tables

    def listed(self, text, tables):
        found = []
        for match in self.LIST.finditer(text):
            values = re.findall(r"'(\w+)'", match.group(1))
            before = text[:match.start()].rstrip()
            if not values and re.search(r"\b(?:\w+\.)?(?:state|kind)$", before) or \
                    values and any(set(values) <= names for _, names in tables):
                found.append(match.group(0))
        return found

    def test_what_is_damage_is_a_column(self):
        """import_code.is_damage: warnings that say so as errors do are listed by no query."""
        infos = read(os.path.join(SOURCES, "log", "import_code.cc")).split("{C::")
        codes = {re.search(r'"(\w+)"', info).group(1) for info in infos if re.search(r",\s*kDamage\}", info)}
        self.assertLessEqual({"unhashed_payload", "missing_metrics"}, codes)
        self.assertEqual([], ["%s: %s" % (os.path.relpath(path, ROOT), code) for path in self.sources(".cc", ".h", ".sql") + list(below(SQL, ".sql"))
                              for found in self.LIST.findall(re.sub(r"\"\n\s*\"", "", read(path))) for code in codes if "'%s'" % code in found])

    def test_commands_hold_no_sql(self):
        """A query stands in an .sql file; help texts may name SELECT."""
        sql = re.compile(r"\"[^\"]*\bSELECT\b[^\"]*\bFROM \w|\bQuery(?:Int|Text)\(|Prepare\(\s*(?:\"|fmt)")
        cli = os.path.join(SOURCES, "cli")
        self.assertEqual([], ["%s: %s" % (os.path.relpath(path, ROOT), found.group(0)) for path in below(cli, ".cc", ".h")
                              for found in sql.finditer(re.sub(r"\"\n\s*\"", "", read(path)))])
        self.assertTrue(sql.search('QueryText("SELECT name FROM run")') and sql.search('"SELECT DISTINCT rank FROM process"'), "it finds none")

    def test_facts_of_an_enumeration_are_columns(self):
        tables = self.enumerations()
        self.assertLessEqual({"cache_state", "profile_kind", "compiled_slice_kind"}, {name for name, _ in tables})
        texts = list(self.sources(".cc", ".h", ".sql")) + list(below(SQL, ".sql")) + list(below(os.path.join(ROOT, "viewer", "src"), ".ts", ".tsx"))
        self.assertEqual([], ["%s: %s" % (os.path.relpath(path, ROOT), one) for path in texts
                              for one in self.listed(re.sub(r"(?m)--.*$|\"\n\s*\"", "", read(path)), tables)])
        self.assertTrue(self.listed("WHERE e.state IN (0, 1)", tables), "it finds no numbers")
        self.assertTrue(self.listed("WHERE kind IN ('kineto', 'nsys')", tables), "it finds no names")


if __name__ == "__main__":
    unittest.main()
