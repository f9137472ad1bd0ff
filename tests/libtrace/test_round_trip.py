#!/usr/bin/env python3
"""Everything that libtrace can emit, read back by tlparse --strict: the rows are what emit_everything.cc put in, and
the only warning is about the record that it lost on purpose.

usage: test_round_trip.py EMIT_EVERYTHING TLPARSE [unittest arguments]
"""
import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest

PROGRAM, TLPARSE = sys.argv[1:3]
ENVELOPE = ("rank", "compiled_autograd_id", "frame_id", "frame_compile_id", "attempt", "subgraph_name", "stack",
            "has_payload")


def emit(trace, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LIBTRACE_", "TORCH_", "RANK"))}
    subprocess.run([PROGRAM], env=environment | {"TORCH_TRACE": str(trace)} | variables, check=True, stderr=subprocess.DEVNULL, timeout=120)


class Limits(unittest.TestCase):
    def test_records_that_a_limit_leaves_out_are_counted_and_no_damage(self):
        with tempfile.TemporaryDirectory() as folder:
            database = os.path.join(folder, "trace.db")
            emit(os.path.join(folder, "trace"), LIBTRACE_LIMITS="libtrace_graph_execution=1/3")
            subprocess.run([TLPARSE, os.path.join(folder, "trace"), "--db", database, "--db-only"], capture_output=True, check=True, timeout=120)
            with contextlib.closing(sqlite3.connect(database)) as db:
                rows = db.execute("SELECT severity, message FROM import_log WHERE code = 'records_limited'").fetchall()
                self.assertEqual(rows, [("info", "2 records left out: a limit that the program or LIBTRACE_LIMITS sets")])
                self.assertEqual(db.execute("SELECT count(*) FROM record WHERE name = 'libtrace_graph_execution'").fetchone(), (2,))
                self.assertIn(("libtrace_graph_execution", 2), db.execute("SELECT name, record_count FROM lost_record").fetchall())


class RoundTrip(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        trace, database = pathlib.Path(temporary.name) / "trace", pathlib.Path(temporary.name) / "trace.db"
        emit(trace)
        logs = sorted(map(str, trace.glob("*.log")))
        result = subprocess.run([TLPARSE, *logs, "--run", "all", "--db", str(database), "--db-only", "--strict"],
                                capture_output=True, text=True, timeout=120)
        assert result.returncode == 1, result.stdout + result.stderr  # the record that is lost
        cls.database = sqlite3.connect(database)
        cls.addClassCleanup(cls.database.close)
        cls.emitted = set()  # names of artifacts, and keys of other records
        for log in logs:
            for line in pathlib.Path(log).read_text().splitlines():
                if line.startswith("V"):
                    envelope = json.loads(line.split("] ", 1)[1])
                    key = next(key for key in envelope if key not in ENVELOPE)
                    cls.emitted.add(envelope[key]["name"] if key == "artifact" else key)

    def check(self, query, *rows):
        self.assertEqual([tuple(row) for row in self.database.execute(query)], list(rows))

    def test_every_record_is_there_and_only_the_foreign_one_is_unknown(self):
        # A loss is reported with the record and the place that emitted it, here `…:<line>): `.
        self.check("SELECT severity, code, substr(message, 1, 48), substr(message, instr(message, '): ') + 3) FROM import_log"
                   " WHERE severity = 'warning'",
                   ("warning", "records_lost", "1 record lost, builder_failed: record `broken` (", "a builder threw; the record is lost and counted"))
        self.check("SELECT severity, code, message FROM import_log WHERE severity <> 'warning'",
                   ("info", "unknown_record_kind", "'user_record' (first of this file)"))
        stored = {name or kind for kind, name in self.database.execute("SELECT DISTINCT kind, name FROM record")}
        self.assertLessEqual(self.emitted, stored)
        self.assertGreater(len(self.emitted), 25)
        self.check("SELECT DISTINCT payload_state FROM record WHERE envelope ->> 'has_payload' IS NOT NULL", ("ok",))

    def test_digests(self):
        self.check("SELECT graph, call, kind, name, value, length(hash) FROM run_digest",
                   ("forward", 2, "kernel", "fused_mm", None, 51), ("forward", 2, "choice", "mm", "triton_mm_4", 51),
                   ("forward", 2, "output", "0", "float32[1]", 51))
        self.check("SELECT count(DISTINCT hash) FROM run_digest", (3,))

    def test_joint_graph_passes(self):
        self.check("SELECT pre_grad_pass_us, joint_graph_pass_us, post_grad_pass_us FROM compilation_metric"
                   " WHERE joint_graph_pass_us IS NOT NULL", (10, 20, 30))
        self.check("SELECT t.stage, p.content FROM graph_text t JOIN payload p ON p.hash = t.payload_hash"
                   " WHERE t.stage LIKE '%joint_graph' ORDER BY t.stage DESC",
                   ("before_joint_graph", "graph(x, y):\n  return x + y * 1\n"), ("after_joint_graph", "graph(x, y):\n  return x + y\n"))

    def test_compiles(self):
        self.check("SELECT function, label, status FROM compile WHERE is_synthetic = 0 ORDER BY label",
                   ("forward", "0/0", "ok"), ("forward", "0/1", "failed"))
        self.check("SELECT reason FROM recompile ORDER BY rowid",
                   ("0/0: input 0: size mismatch at index 0. expected 2, actual 3",), ("0/0: grad mode changed",))
        self.check("SELECT kind, type, reason, user_file, user_line FROM failure ORDER BY kind",
                   ("failure", "Unsupported", "an op without a kernel", "m.cc", 30),
                   ("restart", None, "graph break", None, None))
        self.check("SELECT attempt, restart_reason FROM attempt WHERE restart_reason <> ''", (1, "graph break"))
        self.check("SELECT kind FROM compilation_metric ORDER BY kind",
                   ("bwd_compilation_metrics",), ("compilation_metrics",), ("compilation_metrics",))

    def test_caches(self):
        self.check("SELECT layer, state, count(*) FROM cache_event GROUP BY 1, 2 ORDER BY 1, 2",
                   ("libtrace_bundle", "hit", 1), ("libtrace_bundle", "miss", 1), ("libtrace_graph", "bypass", 1),
                   ("libtrace_graph", "guard_miss", 1), ("libtrace_graph", "hit", 1), ("libtrace_graph", "miss", 1),
                   ("libtrace_graph_bundled", "hit", 1), ("libtrace_model", "guard_miss", 1),
                   ("libtrace_model", "hit", 1), ("libtrace_model", "miss", 1), ("libtrace_model", "remote_error", 1),
                   ("libtrace_nested", "miss", 2), ("libtrace_off", "disabled", 1))
        self.check("SELECT layer, state, wait_given_up FROM cache_event WHERE wait_given_up IS NOT NULL", ("libtrace_nested", "miss", "nested"))
        self.check("SELECT remote_error LIKE 'cannot connect to Redis at %' FROM cache_event WHERE remote_error IS NOT NULL", (1,))
        self.check("SELECT bypass_reason FROM cache_event WHERE state = 'bypass'", ("weights are not constant",))
        self.check("SELECT DISTINCT k.name, k.value FROM cache_component k JOIN cache_event e ON e.key = k.key"
                   " WHERE e.layer = 'libtrace_graph' AND e.state = 'hit'", ("graph", "x + y"))

    def test_runtime(self):
        self.check("SELECT ordinal, label FROM graph_execution ORDER BY ordinal",
                   (0, "0/1"), (1, "!2/0/0"), (2, "!3"), (3, None))
        self.check("SELECT ordinal, op FROM collective ORDER BY ordinal",
                   (0, "torch.ops._c10d_functional.all_reduce_.default"), (1, None))
        self.check("SELECT name, type, estimated_ns FROM op_runtime ORDER BY ordinal", ("op0", "compute", 125.5),
                   ("torch.ops._c10d_functional.all_reduce_.default", "collective", 0.0))
        self.check("SELECT op, ordinal, shape, stride, dtype FROM tensor_meta ORDER BY ordinal",
                   ("op0", 0, "[2,3]", "[3,1]", "float32"), ("op0", 1, "[]", "[]", None))

    def test_what_was_measured(self):
        self.check("SELECT i.sequence_number, i.op, i.group_name, i.input_shapes, i.dtype, i.duration_ns, c.label FROM issued_collective i"
                   " LEFT JOIN compile c ON c.id = i.compile_id ORDER BY i.ordinal",
                   (0, "all_reduce", "default_pg", "[[2,3]]", "float32", 2.5, "0/0"), (1, "barrier", "default_pg", "[]", None, 17.5, None))
        self.check("SELECT collective_seq_id, p2p_seq_id FROM issued_collective ORDER BY ordinal", (1, None), (2, None))
        self.check("SELECT ordinal, label, graph, duration_ns FROM graph_run ORDER BY ordinal",
                   (0, "0/1", "forward", 1500), (1, "!2/0/0", "", None), (2, "!3", "", None), (3, None, "", None))
        self.check("SELECT clock, name, node, count, total_ns, estimated_ns FROM measured_op ORDER BY ordinal",
                   ("cpu", "op0", "add", 3, 300.5, 125.5), ("cpu", "op1", None, 0, 0.0, None))
        self.check("SELECT a.kind, a.name, a.op, a.node, a.stream, a.duration_ns, l.lost_count FROM gpu_activity a"
                   " JOIN gpu_activity_log l ON l.record_id = a.record_id", ("kernel", "sgemm", "aten::mm", "mm", 7, 1200, 0))

    def test_models(self):
        self.check("SELECT model, kind, state, duration_ns, memory_after_bytes, weight_size_bytes FROM model_load",
                   ("resnet", "torchscript", "loaded", 1000000, 2000, 24))
        self.check("SELECT device_peak_before_bytes, device_peak_after_bytes FROM model_load", (100, 500))
        self.check("SELECT clone_size_bytes, excess_bytes, device_excess_bytes FROM model_load", (100, 984, 292))
        self.check("SELECT unread_files FROM model_package", ('["model/deflated.json"]',))
        self.check("SELECT error FROM collective_state WHERE error IS NOT NULL", ("refused",))
        self.check("SELECT end_reason, last_call_us IS NULL, noticed_us IS NOT NULL FROM gpu_activity_log ORDER BY record_id",
                   (None, 1, 0), ("not_recorded", 0, 1))
        self.check("SELECT kind, path, weight_size_bytes, metadata FROM model_package",
                   ("aotinductor", "model.pt2", 24, '{"AOTI_DEVICE_KEY":"cpu"}'))
        self.check("SELECT name, crc32 FROM package_file ORDER BY ordinal", ("data/model.so", 0xDEADBEEF), ("version", None))
        self.check("SELECT name, pre_grad_nodes, post_grad_nodes FROM package_kernel", ("fused:1", '["matmul"]', '["mm"]'))
        self.check("SELECT storage_id, name, count(*) FROM model_weight GROUP BY 1, 2 ORDER BY 1, 2", (1, "a", 2), (1, "b", 2), (2, "c", 2))
        self.check("SELECT b.action, b.entry_count, count(k.key) FROM cache_bundle b LEFT JOIN cache_bundle_key k"
                   " ON k.record_id = b.record_id GROUP BY b.record_id ORDER BY b.record_id", ("serialize", 2, 2), ("populate", 1, 1))

    def test_writer_and_losses(self):
        self.check("SELECT DISTINCT program, language FROM trace_writer", (pathlib.Path(PROGRAM).name, "C++"))
        # The reason begins with the record and the place that emitted it.
        self.check("SELECT kind, record_count, substr(reason, 1, 17), substr(reason, instr(reason, '): ') + 3) FROM trace_loss",
                   ("builder_failed", 1, "record `broken` (", "a builder threw; the record is lost and counted"))
        self.check("SELECT name, record_count FROM lost_record", ("broken", 1))

    def test_provenance(self):
        self.check("SELECT name, debug_handle FROM kernel", ("fused_mm", 1))
        self.check("SELECT post_grad_node FROM kernel_node", ("mm",))
        self.check("SELECT post_grad_node, pre_grad_node FROM node_mapping", ("mm", "matmul"))
        self.check("SELECT file, line, function, code FROM kernel_source", ("m.cc", 8, "f", "return x * y;"))

    def test_events_and_ranks(self):
        self.check("SELECT name, phase, count(*) FROM chromium_event GROUP BY 1, 2 ORDER BY 1",
                   ("after_loss", "i", 1), ("automatic_dynamic", "i", 1), ("in_child", "i", 1),
                   ("libtrace_compile", "X", 2), ("libtrace_graph_cache_miss", "i", 2),
                   ("libtrace_model_cache_miss", "i", 1), ("libtrace_nested_cache_miss", "i", 2), ("libtrace_off_cache_disabled", "i", 1))
        self.check("SELECT DISTINCT rank FROM process", (3,))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
