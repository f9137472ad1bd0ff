#!/usr/bin/env python3
"""The example programs, from their run to the answers: what they plant must be found, and nothing else be odd.

usage: test_examples.py SOURCE_DIRECTORY TLPARSE COLLECTIVES_EXAMPLE [unittest arguments]
"""
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

SOURCE, TLPARSE, COLLECTIVES = sys.argv[1:4]
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith(("LIBTRACE_", "TORCH_", "RANK"))} | {"OMP_NUM_THREADS": "1"}


class Example(unittest.TestCase):
    program = None

    @classmethod
    def setUpClass(cls):
        if cls.program is None:
            raise unittest.SkipTest("the base class")
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.trace = pathlib.Path(cls.temporary.name) / "trace"
        result = subprocess.run([cls.program, str(cls.trace)], env=ENVIRONMENT, capture_output=True, text=True,
                                timeout=240)
        assert result.returncode == 0, result.stdout + result.stderr
        cls.output = result.stdout
        database = pathlib.Path(cls.temporary.name) / "trace.db"
        logs = sorted(map(str, cls.trace.glob("*.log")))
        result = subprocess.run([TLPARSE, *logs, "--run", "example", "--db", str(database), "--db-only", "--strict"],
                                capture_output=True, text=True, timeout=240)
        assert result.returncode == 0, result.stdout + result.stderr
        cls.database = sqlite3.connect(database)
        cls.addClassCleanup(cls.database.close)

    def rows(self, query):
        return [tuple(row) for row in self.database.execute(query)]

    def payloads(self, name):
        return [json.loads(content) for (content,) in self.rows(
            f"SELECT p.content FROM record r JOIN payload p ON p.hash = r.payload_hash WHERE r.name = '{name}'"
            " ORDER BY r.id")]

    def test_nothing_is_odd_or_unknown(self):
        self.assertEqual(self.rows("SELECT severity, code, message FROM import_log WHERE severity <> 'info'"), [])
        self.assertEqual(self.rows("SELECT code, message FROM import_log WHERE code LIKE 'unknown%'"), [])
        self.assertEqual(self.rows("SELECT count(*) FROM record WHERE kind IS NULL"), [(0,)])
        self.assertEqual(self.rows("SELECT count(*) FROM record WHERE payload_state NOT IN ('ok', 'absent')"), [(0,)])

    def test_everything_fits_its_schema(self):
        schemas = pathlib.Path(self.temporary.name) / "schemas"
        for directory in ("libtrace", "libtrace_torch"):
            shutil.copytree(pathlib.Path(SOURCE) / "schemas/json" / directory, schemas, dirs_exist_ok=True)
        result = subprocess.run([sys.executable, str(pathlib.Path(SOURCE) / "tests/libtrace/check_schemas.py"),
                                 str(schemas), str(self.trace)], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


class Collectives(Example):
    program = COLLECTIVES

    def test_ranks_agree_on_the_weights(self):
        sums = {line.split("weights sum to ")[1].split(",")[0] for line in self.output.splitlines()}
        self.assertEqual(len(sums), 1, self.output)

    def test_shape_only_rank_2_recompiled(self):
        self.assertEqual(self.rows("SELECT rank, function FROM compile WHERE frame_compile_id = 1"), [(2, "layer")])
        reasons = self.rows("SELECT reason FROM recompile")
        self.assertEqual(len(reasons), 1)
        self.assertIn("tensor 'x' size mismatch at index 0. expected 32, actual 24", reasons[0][0])

    def test_cache_only_rank_2_missed_and_why(self):
        self.assertEqual(self.rows("SELECT rank, state FROM cache_event ORDER BY rank"),
                         [(0, "hit"), (1, "hit"), (2, "miss"), (3, "hit")])
        differing = self.rows("SELECT name FROM cache_component WHERE name <> '' GROUP BY name"
                              " HAVING count(DISTINCT hash) > 1")
        self.assertEqual(differing, [("options[matmul_precision]",)])

    def test_order_only_rank_2_differs(self):
        orders = {}
        for rank, op in self.rows("SELECT rank, op FROM collective WHERE source = 'schedule' ORDER BY rank, ordinal"):
            orders.setdefault(rank, []).append(op.split(".")[3])
        self.assertEqual(orders, {0: ["all_reduce_", "broadcast_"], 1: ["all_reduce_", "broadcast_"],
                                  2: ["broadcast_", "all_reduce_"], 3: ["all_reduce_", "broadcast_"]})

    def test_the_log_has_every_collective(self):
        logs = self.payloads("libtrace_collective_log")
        self.assertEqual(len(logs), 4)
        for log in logs:
            self.assertEqual(sorted(entry["op"] for entry in log),
                             ["all_reduce"] * 3 + ["barrier"] + ["broadcast"] * 3)
            for group in ("data_parallel", "statistics"):
                numbers = [entry["sequence_number"] for entry in log if entry["process_group"] == group]
                self.assertEqual(numbers, list(range(len(numbers))))
            self.assertTrue(all(entry["duration_ns"] > 0 for entry in log))
            reduces = [entry for entry in log if entry["op"] == "all_reduce"]
            self.assertTrue(all(entry["input_shapes"] == [[68]] and entry["dtype"] == "float32" and
                                entry["reduce_op"] == "sum" for entry in reduces))
        self.assertEqual(sum(log[0]["op"] == "broadcast" for log in logs), 1)  # only the odd rank


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
