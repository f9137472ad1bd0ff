#!/usr/bin/env python3
"""Every query of schemas/README.md runs in the sqlite3 client, and every public view is named there."""

import os
import re
import subprocess
import unittest

import harness

README = os.path.join(harness.ROOT, "schemas", "README.md")


def queries():
    with open(README, encoding="utf-8") as file:
        blocks = re.findall(r"```sql\n(.*?)```", file.read(), re.DOTALL)
    return [query.strip() for block in blocks for query in block.split(";\n") if query.strip()]


class SchemaExamples(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        logs = [harness.bundled(name) for name in ("tlparse_meta", "recompiles_2_6", "failures", "dtrace", "diverge_order", "killed",
                                                   "libtrace_aoti", "libtrace_collectives", "libtrace_torchscript")]
        logs.append(harness.bundled("libtrace_collectives", 2))  # the rank that is different
        runs = [os.path.join(harness.ROOT, "fixtures", "runs", name) for name in ("fr_late", "p_aoti", "p_torch_logs")]
        self.tlparse(*logs, *runs, "-o", "out", "--db-only")
        self.database = self.path("out", "trace.db")

    def test_queries_run_in_the_client(self):
        empty = []
        for query in queries():
            with self.subTest(query):
                done = subprocess.run(["sqlite3", "-bail", self.database], input=(query + ";\n").encode(), capture_output=True,
                                      check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                if not done.stdout:
                    empty.append(query)
        # Divergences need several ranks; these logs hold nothing unknown, are not of vLLM, and come from machines without a GPU;
        # tests/inputs zips the members of a package, and makes the files of tritonparse.
        allowed = ("divergence", "component_set_id = 1", "unknown_artifact", "gpu_activity", "vllm_piece", "package_member", "package_model ",
                   "package_model\n", "triton_compilation", "triton_launch")
        self.assertEqual([query for query in empty if not any(word in query for word in allowed)], [])

    def test_public_views_are_documented(self):
        with open(README, encoding="utf-8") as file:
            text = file.read()
        missing = [name for name, in harness.rows(
            self.database, "SELECT name FROM sqlite_master WHERE type = 'view'") if f"`{name}`" not in text]
        self.assertEqual(missing, [])

    def test_public_names_and_values_are_described(self):
        with open(README, encoding="utf-8") as file:
            named = {name for line in file if line.startswith("| `") for name in re.findall(r"`(\w+)`", line.split("|")[1])}
        described = {name for name, in harness.rows(self.database, "SELECT name FROM schema_doc WHERE column = ''")}
        self.assertEqual(sorted(named - described), [])
        self.assertEqual(harness.rows(self.database, "SELECT count(*) FROM schema_doc WHERE name NOT IN (SELECT name FROM sqlite_schema) "
                                      "OR column <> '' AND NOT EXISTS (SELECT 1 FROM pragma_table_info(schema_doc.name) c "
                                      "WHERE c.name = schema_doc.column)"), [[0]])
        for name, column, word in (("cache_event", "state", "guard_miss"), ("record", "payload_state", "cr_removed"),
                                   ("graph_call", "basis", "libtrace"), ("compile", "status", "unfinished"), ("cache_event", "key", "log")):
            with self.subTest(name=name, column=column):
                text = harness.rows(self.database, "SELECT text FROM schema_doc WHERE name = ? AND column = ?", name, column)
                self.assertIn(word, text[0][0])


if __name__ == "__main__":
    unittest.main()
