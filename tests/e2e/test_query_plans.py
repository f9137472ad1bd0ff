#!/usr/bin/env python3
"""How SQLite answers: hot questions and the queries of schemas/README.md that are given a key read by index."""

import re
import unittest

import harness
from test_schema_examples import queries

# Tables that grow with the log: where a query names a key, none of them is read as a whole.
LARGE = ("record_row", "compile_record_row", "chromium_event_row", "payload_row", "component_row", "component_set_row", "component_list_row", "component_run_row", "component_hash_row",
         "cache_key_row", "cache_key_set_row")
# Questions with a key, and the index that answers them.
HOT = {
    "SELECT * FROM record WHERE rank = 3": "process_by_rank",
    "SELECT * FROM record WHERE compile_id = 3": "r USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
    "SELECT * FROM record WHERE kind = 'artifact'": "b USING PRIMARY KEY (kind=?)",
    "SELECT * FROM record WHERE kind = 'artifact' AND name = 'x'": "b USING PRIMARY KEY (kind=?)",
    "SELECT * FROM record WHERE payload_hash = 'x'": "record_by_payload",
    "SELECT * FROM record WHERE id = 3": "r USING INTEGER PRIMARY KEY (rowid=?)",
    "SELECT * FROM compile_record WHERE kind = 'artifact' AND name = 'x'": "record_by_kind",
    "SELECT * FROM compile_record WHERE payload_id = (SELECT id FROM payload WHERE hash = 'x')": "record_by_payload",
    "SELECT * FROM compile_record WHERE compile_id = 3": "compile_id=",
    "SELECT * FROM chromium_event WHERE rank = 3": "process_by_rank",
    "SELECT * FROM collective WHERE rank = 3": "process_by_rank",
    "SELECT * FROM graph_execution WHERE rank = 3": "process_by_rank",
    "SELECT * FROM op_runtime WHERE rank = 3": "process_by_rank",
    "SELECT * FROM tensor_meta WHERE rank = 3": "process_by_rank",
    "SELECT * FROM compilation_metric WHERE rank = 3": "process_by_rank",
    "SELECT * FROM cache_event WHERE rank = 3": "process_by_rank",
    "SELECT * FROM cache_event WHERE compile_id = 3": "cache_event_by_compile",
    "SELECT * FROM compile_history WHERE rank = 3": "compile_by_rank",
    "SELECT * FROM cache_component WHERE key = 'x'": "cache_key_by_key",
    "SELECT * FROM issued_collective WHERE rank = 3": "process_by_rank",
}
KEY = re.compile(r"\bWHERE\b.*\b(compile_id|record_id|payload_id|key|hash|rank|kind|content_id|kernel_id|id) = ", re.DOTALL)


class Plans(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        self.tlparse(harness.bundled("tlparse_meta"), "-o", "out", "--db-only")
        self.database = self.path("out", "trace.db")
        tables = [name for name, in harness.rows(self.database, "SELECT name FROM sqlite_schema WHERE type = 'table'")]
        self.assertLessEqual(set(LARGE), set(tables))
        self.assertLessEqual({name for name in tables if re.match(r"(component|cache_key)_.*row$|.*record_row$", name)}, set(LARGE))

    def plan(self, query):
        return [detail for _, _, _, detail in harness.rows(self.database, "EXPLAIN QUERY PLAN " + query)]

    def scanned(self, query):
        """Large tables that the query reads as a whole. EXPLAIN names aliases; the program has the tables."""
        roots = {row[0]: row[1] for row in harness.rows(
            self.database, "SELECT rootpage, name FROM sqlite_schema WHERE type = 'table' AND name IN (%s)" % ", ".join(f"'{name}'" for name in LARGE))}
        opened, found = {}, set()
        for _, opcode, p1, p2, *_ in harness.rows(self.database, "EXPLAIN " + query):
            if opcode == "OpenRead":
                opened[p1] = roots.get(p2)
            elif opcode in ("Rewind", "Last") and opened.get(p1):
                found.add(opened[p1])
        return found

    def test_hot_questions_use_an_index(self):
        for query, step in HOT.items():
            with self.subTest(query):
                plan = self.plan(query)
                self.assertIn(step, " ".join(plan), plan)
                self.assertEqual(self.scanned(query), set(), plan)

    def test_what_an_index_finds_is_what_a_scan_finds(self):
        for column, of_row in (("compile_id", "compile_id"), ("kind", "(SELECT text FROM text_row WHERE id = kind_id)"),
                               ("payload_hash", "(SELECT hash FROM payload_row WHERE id = payload_id)")):
            scanned = dict(harness.rows(self.database, "SELECT %s, count(*) FROM record_row GROUP BY 1" % of_row))
            self.assertEqual(scanned, dict(harness.rows(self.database, "SELECT %s, count(*) FROM record GROUP BY 1" % column)))
            for value, count in list(scanned.items())[:50]:
                if value is not None:
                    self.assertEqual([[count]], harness.rows(self.database, "SELECT count(*) FROM record WHERE %s = %r" % (column, value)))

    def test_a_scan_is_seen(self):
        self.assertEqual(self.scanned("SELECT * FROM record WHERE line = 7"), {"record_row"})

    def test_examples_with_a_key_scan_no_large_table(self):
        with_key = [query for query in queries() if KEY.search(query)]
        self.assertGreater(len(with_key), 5)
        for query in with_key:
            with self.subTest(query):
                self.assertEqual(self.scanned(query), set(), self.plan(query))


if __name__ == "__main__":
    unittest.main()
