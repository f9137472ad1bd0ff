#!/usr/bin/env python3
"""The example programs, from their run to the answers: the planted problems must be found, and nothing else.

usage: test_examples.py SOURCE_DIRECTORY TLPARSE FOLDER_OF_EXAMPLES [unittest arguments]
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

SOURCE, TLPARSE, EXAMPLES = sys.argv[1:4]
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith(("LIBTRACE_", "TORCH_", "RANK"))} | {"OMP_NUM_THREADS": "1"}


class Example(unittest.TestCase):
    name = None

    @classmethod
    def setUpClass(cls):
        if cls.name is None:
            raise unittest.SkipTest("the base class")
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.trace = pathlib.Path(cls.temporary.name) / "trace"
        result = subprocess.run([f"{EXAMPLES}/libtrace_example_{cls.name}", str(cls.trace)], env=ENVIRONMENT, capture_output=True, text=True,
                                timeout=800)
        assert result.returncode == 0, result.stdout + result.stderr
        cls.output = result.stdout
        database = pathlib.Path(cls.temporary.name) / "trace.db"
        logs = sorted(map(str, cls.trace.glob("*.log")))
        result = subprocess.run([TLPARSE, *logs, "--run", "example", "--db", str(database), "--db-only", "--strict"],
                                capture_output=True, text=True, timeout=240)
        assert result.returncode == 0, result.stdout + result.stderr
        cls.database_path = database
        cls.database = sqlite3.connect(database)
        cls.addClassCleanup(cls.database.close)

    def rows(self, query):
        return [tuple(row) for row in self.database.execute(query)]

    def payloads(self, name):
        return [json.loads(content) for (content,) in self.rows(
            f"SELECT p.content FROM record r JOIN payload p ON p.hash = r.payload_hash WHERE r.name = '{name}'"
            " ORDER BY r.id")]

    def answer(self, command):
        return subprocess.run([TLPARSE, command, str(self.database_path)], capture_output=True, text=True,
                              check=True).stdout

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


class TorchScript(Example):
    name = "torchscript"

    def test_compiles(self):
        self.assertCountEqual(  # the order of two processes is that of their files' random names
            self.rows("SELECT function, label, status FROM compile WHERE function IN ('train', 'serve')"),
            [("train", "1/0", "ok"), ("train", "1/1", "ok"), ("train", "1/2", "failed"),
             ("serve", "2/0", "ok"), ("serve", "1/0", "ok")])

    def test_recompiles_name_the_size(self):
        reasons = [reason for (reason,) in self.rows("SELECT reason FROM recompile ORDER BY rowid")]
        self.assertIn("tensor 'x' size mismatch at index 0. expected 64, actual 128", " ".join(reasons))
        self.assertIn("tensor 'x' size mismatch at index 1. expected 16, actual 15", " ".join(reasons))

    def test_the_failure_is_there(self):
        failures = self.rows("SELECT reason FROM failure WHERE kind = 'failure' OR reason LIKE '%shapes%'")
        self.assertEqual(len(failures), 1)
        self.assertIn("shapes cannot be multiplied (64x15 and 16x32)", failures[0][0])

    def test_second_process_is_served_from_the_cache(self):
        self.assertCountEqual(self.rows("SELECT layer, state FROM cache_event"),
                              [("libtrace_torchscript", "miss"), ("libtrace_torchscript", "hit")])
        self.assertEqual(self.rows("SELECT count(DISTINCT key) FROM cache_event"), [(1,)])
        lines = self.output.splitlines()
        answers = {line.split("y[0] = ")[1] for line in lines if "y[0] = " in line}
        self.assertEqual(len(answers), 1, self.output)  # the cached model computes the same

    def lines_of_products(self, function):
        text = (pathlib.Path(SOURCE) / "libtrace/examples/torchscript.cc").read_text().split("\n")
        rows = self.rows("SELECT s.file, s.line, s.code FROM kernel k JOIN kernel_source s ON s.kernel_id = k.id"
                         " JOIN compile c ON c.id = k.compile_id"
                         f" WHERE k.name = 'aten::mm' AND c.function = '{function}'")
        lines = [text[line - 1] for _, line, _ in rows]
        self.assertEqual({file for file, _, _ in rows}, {"torchscript.cc"})
        self.assertTrue(any("torch.mm(x, self.weight1)" in line for line in lines), lines)
        self.assertTrue(any("torch.mm(h, self.weight2)" in line for line in lines), lines)
        return lines

    def test_provenance_ends_at_the_line(self):
        lines = self.lines_of_products("train")
        self.assertTrue(any("self.hidden(x)" in line for line in lines), lines)  # the caller of the first
        self.lines_of_products("serve")  # in the second process the module is from an archive
        self.assertTrue(self.rows("SELECT 1 FROM node_mapping LIMIT 1"))

    def test_fused_groups_have_members_lines_and_code(self):
        rows = self.rows("SELECT DISTINCT c.function, k.name, s.line FROM kernel k JOIN compile c ON c.id = k.compile_id"
                         " JOIN kernel_source s ON s.kernel_id = k.id WHERE k.name LIKE 'fused_add_relu%'")
        text = (pathlib.Path(SOURCE) / "libtrace/examples/torchscript.cc").read_text().split("\n")
        self.assertEqual({(function, name) for function, name, _ in rows}, {("serve", "fused_add_relu")})
        lines = " ".join(text[line - 1] for _, _, line in rows)
        self.assertIn("+ self.bias1", lines)
        self.assertIn("torch.relu(h)", lines)
        codes = [code for (code,) in self.rows("SELECT p.content FROM record r JOIN payload p ON p.hash = r.payload_hash"
                                               " WHERE r.metadata ->> 'name' = 'libtrace_torchscript_kernels'")]
        self.assertEqual(len(codes), 2)
        self.assertTrue(all("// fused_add_relu:2\n" in code for code in codes))

    def test_observed_ops_have_their_node(self):
        nodes = {op["name"]: op.get("node") for measured in self.payloads("libtrace_measured_runtime")
                 for op in measured["ops"] if op["name"] == "fused_add_relu"}
        self.assertEqual(len(nodes), 1)
        self.assertTrue(all(nodes.values()), nodes)

    def test_ops_have_tensors_and_times(self):
        self.assertIn(("aten::mm", "[64, 32]"), [(op, json.dumps(json.loads(shape))) for op, shape in self.rows(
            "SELECT op, shape FROM tensor_meta WHERE op LIKE 'aten::mm%'")])
        self.assertEqual(self.rows("SELECT count(*) FROM op_runtime WHERE estimated_ns <= 0"), [(0,)])
        for measured in self.payloads("libtrace_measured_runtime"):
            for op in measured["ops"]:
                self.assertLessEqual(op["min_ns"], op["max_ns"])
                self.assertGreater(op["max_ns"], 0)

    def test_execution_order(self):
        labels = [label for (label,) in self.rows(
            "SELECT c.label FROM graph_execution g JOIN compile c ON c.id = g.compile_id"
            " WHERE c.function = 'train' ORDER BY g.ordinal")]
        self.assertEqual(labels, ["1/0"] * 6 + ["1/1"] * 3)


class Collectives(Example):
    name = "collectives"

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

    def test_tlparse_names_rank_2_and_the_order(self):
        answer = self.answer("collectives")
        self.assertRegex(answer, r"ranks 0,1,3: 2 collectives")
        self.assertRegex(answer, r"(?s)rank 2: 2 collectives.*order in 2/0 synchronise.*broadcast_.*all_reduce_")
        self.assertIn("options[matmul_precision]: highest → high", self.answer("cache"))

    def test_collectives_lead_to_the_lines_that_issue_them(self):
        text = (pathlib.Path(SOURCE) / "libtrace/examples/collectives.cc").read_text().split("\n")
        rows = self.rows("SELECT DISTINCT k.name, s.line, s.code FROM kernel k JOIN kernel_source s ON s.kernel_id = k.id"
                         " WHERE k.name IN ('all_reduce', 'broadcast')")
        self.assertEqual(len(rows), 2)
        for _, line, code in rows:
            self.assertIn(code, text[line - 1])

    def test_the_log_has_every_collective(self):
        rows = self.rows("SELECT rank, group_name, op, input_shapes, dtype, reduce_op, sequence_number, collective_seq_id, duration_ns"
                         " FROM issued_collective ORDER BY rank, record_id")
        for rank in range(4):
            log = [row[1:] for row in rows if row[0] == rank]
            self.assertEqual(sorted(entry[1] for entry in log), ["all_reduce"] * 3 + ["barrier"] + ["broadcast"] * 3)
            for group in ("data_parallel", "statistics"):
                numbers = [entry[5] for entry in log if entry[0] == group]
                self.assertEqual(numbers, list(range(len(numbers))))
            self.assertTrue(all(entry[6] == entry[5] + 1 and entry[7] > 0 for entry in log))
            self.assertEqual({entry[2:5] for entry in log if entry[1] == "all_reduce"}, {("[[68]]", "float32", "sum")})
            self.assertEqual(log[0][1], "broadcast" if rank == 2 else "all_reduce")  # only the odd rank


class Aoti(Example):
    name = "aoti"

    @classmethod
    def setUpClass(cls):
        if subprocess.run(["python3", "-c", "import torch._inductor"], capture_output=True).returncode != 0:
            raise unittest.SkipTest("PyTorch, which compiles the package, is not installed")
        super().setUpClass()

    def test_compiles_and_the_damaged_package(self):
        self.assertCountEqual(self.rows("SELECT function, label, status FROM compile"),
                              [("classifier", "0/0", "ok"), ("damaged", "1/0", "failed"), ("classifier", "0/0", "ok")])
        self.assertEqual(self.rows("SELECT count(*) FROM failure"), [(1,)])

    def test_second_process_is_served_from_the_cache(self):
        self.assertCountEqual(
            self.rows("SELECT layer, state, p.content ->> 'answered_by' FROM cache_event e JOIN record r ON r.id = e.record_id"
                      " JOIN payload p ON p.hash = r.payload_hash"),
            [("libtrace_aotinductor", "miss", None), ("libtrace_aotinductor", "hit", "local"),
             ("libtrace_aotinductor", "hit", "memory")])
        self.assertCountEqual([load["state"] for load in self.payloads("libtrace_model_load")],
                              ["compiled", "cache_hit", "memory_hit"])
        lines = [line for line in self.output.splitlines() if "y[0][0] = " in line]
        self.assertEqual([line.split("package from the ")[1].split(",")[0] for line in lines], ["compiler", "cache"])
        self.assertEqual(len({line.split("y[0][0] = ")[1] for line in lines}), 1, lines)

    def test_the_package_is_described(self):
        packages = self.payloads("libtrace_package")
        self.assertEqual(len(packages), 2)
        for package in packages:
            self.assertEqual(package["kind"], "aotinductor")
            self.assertTrue(any(file["name"].endswith(".so") for file in package["files"]))
            self.assertEqual(package["metadata"]["AOTI_DEVICE_KEY"], "cpu")

    def test_kernels_are_seen_running_and_in_the_code(self):
        for measured in self.payloads("libtrace_measured_runtime"):
            names = [op["name"] for op in measured["ops"]]
            kernels = [name for name in names if "cpp_fused_" in name]
            self.assertEqual(len(kernels), 2, names)
        sources = [file for package in self.payloads("libtrace_package") for file in package["files"]
                   if file["name"].endswith(".cpp")]
        self.assertGreaterEqual(len(sources), 2)
        self.assertEqual(self.rows("SELECT count(*) FROM record WHERE kind = 'graph_dump' AND payload_state = 'ok'"), [(len(sources),)])
        # One graph per package that was loaded: its main code is the graph's, the file of the kernels belongs to it.
        self.assertEqual(self.rows("SELECT g.ordinal, count(*) FROM graph g JOIN output_code o ON o.graph_id = g.id GROUP BY g.id"),
                         [(0, len(sources) // 2)] * 2)
        self.assertEqual(self.rows("SELECT count(*) FROM graph WHERE code_record_id IS NULL"), [(0,)])

    def test_kernels_have_the_tensors_that_the_code_gives_them(self):
        lists = self.payloads("inductor_runtime_and_tensor_meta")
        self.assertEqual(len(lists), 2)
        has_calls = any(package["kernels"] for package in self.payloads("libtrace_package"))
        for ops in lists:
            self.assertTrue(all(op["estimated_runtime_ns"] > 0 for op in ops["ops"]), ops)
            shapes = {op["name"]: [tensor["shape"] for tensor in op["outputs"]] for op in ops["ops"]}
            fused = sorted(name for name in shapes if name.startswith("cpp_fused_"))
            self.assertEqual(len(fused), 2, shapes)
            self.assertEqual(shapes[fused[0]][-1], [4, 8])  # the softmax gives the result
            self.assertEqual(shapes[fused[1]], [[4, 32], [8]])
            if has_calls:  # two calls of one op, each with its own tensors
                self.assertEqual(shapes["aoti_torch_cpu_addmm_out"], [[4, 32]])
                self.assertEqual(shapes["aoti_torch_cpu_addmm_out_1"], [[4, 8]])
        if has_calls:
            self.assertEqual(self.rows("SELECT DISTINCT k.n, o.n FROM (SELECT graph_id, count(*) AS n FROM kernel GROUP BY 1) k JOIN"
                                       " (SELECT graph_id, count(*) AS n FROM op_runtime GROUP BY 1, record_id) o USING (graph_id)"), [(4, 4)])

    def test_provenance_ends_at_the_line(self):
        if not any(package["kernels"] for package in self.payloads("libtrace_package")):
            self.skipTest("packages of this PyTorch have no kernel information")
        text = (pathlib.Path(SOURCE) / "libtrace/examples/aoti_export.py").read_text().split("\n")
        rows = self.rows("SELECT DISTINCT s.line FROM kernel k JOIN kernel_source s ON s.kernel_id = k.id"
                         " WHERE k.name LIKE 'cpp_fused_%relu%' AND s.file LIKE '%aoti_export.py'")
        lines = " ".join(text[line - 1] for (line,) in rows)
        self.assertIn("torch.relu(self.hidden(x))", lines)
        self.assertIn("torch.sigmoid(h)", lines)
        self.assertTrue(self.rows("SELECT 1 FROM kernel_node WHERE post_grad_node = 'relu'"))

    def test_weights(self):
        for load in self.payloads("libtrace_model_load"):
            if load["weights"]:  # 2.8 and newer tell
                self.assertEqual({weight["name"]: weight["shape"] for weight in load["weights"]}["hidden.weight"], [32, 16])
                self.assertEqual(load["weight_size_bytes"], sum(weight["size_bytes"] for weight in load["weights"]))

    def test_execution_order(self):
        self.assertEqual(self.rows("SELECT label, count(*) FROM graph_execution GROUP BY 1"), [("0/0", 7)])

    def test_digests_of_both_processes_are_equal(self):
        runs = {}
        for process, call, kind, name, digest in self.rows("SELECT r.process_id, d.call, d.kind, d.name, d.hash FROM run_digest d"
                                                           " JOIN record_row r ON r.id = d.record_id"):
            runs.setdefault(process, set()).add((call, kind, name, digest))
        self.assertEqual(len(runs), 2)
        first, second = runs.values()
        self.assertEqual(first, second)
        self.assertEqual({call for call, *_ in first}, {0, 2})
        self.assertEqual({(kind, name) for _, kind, name, _ in first if kind == "output"}, {("output", "0")})
        self.assertTrue(any(kind == "kernel" and name.startswith("model/inductor_aot_") for _, kind, name, _ in first), first)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
