#!/usr/bin/env python3
"""Packages, kernel_information.json, tritonparse logs, texts of TORCH_LOGS and nsys exports end to end. Packages are zipped here from
recorded members; nsys exports and tritonparse logs are made here from the documented formats, by hand: none was recorded."""

import glob
import gzip
import json
import os
import re
import sqlite3
import unittest
import zipfile

import profiles
from profiles import RUNS


class InputTest(profiles.InputTest):
    def codes(self, database):
        return [code for code, in self.rows(database, "SELECT code FROM import_log WHERE severity <> 'info' ORDER BY id")]


class Packages(InputTest):
    MEMBERS = os.path.join(RUNS, "p_aoti", "compile")

    def package(self, model="gpt", name="model.pt2", change=lambda archive: None, compression=zipfile.ZIP_STORED):
        """A package with the recorded members; those that were not recorded (code) are listed with their true size, of zeros."""
        path = self.path(name)
        with zipfile.ZipFile(path, "w", compression) as archive:
            with open(os.path.join(self.MEMBERS, f"{model}.pt2.contents.txt"), encoding="utf-8") as file:
                for line in file:
                    size, member = line.split()
                    recorded = os.path.join(self.MEMBERS, f"{model}.pt2.{os.path.basename(member)}")
                    if os.path.exists(recorded):
                        archive.write(recorded, member)
                    else:
                        archive.writestr(member, bytes(int(size)))
            change(archive)
        return path

    def test_kernels_and_lines_of_a_package(self):
        database = self.ingest(self.package())
        with open(os.path.join(self.MEMBERS, "gpt.pt2.kernel_information.json"), encoding="utf-8") as file:
            information = json.load(file)
        expected = [[*key.rsplit(":", 1), facts] for key, facts in information.items()]
        kernels = self.rows(database, """SELECT name, debug_handle, semantic_key, input_shapes, input_dtypes, output_shape, output_dtype,
            pre_grad_nodes, post_grad_nodes, kernel_id FROM package_model_kernel ORDER BY ordinal""")
        self.assertEqual([[name, int(handle)] for name, handle, _ in expected], [row[:2] for row in kernels])
        for (_, _, facts), row in zip(expected, kernels):
            self.assertEqual(facts.get("extern_semantic_key"), row[2])
            for key, value in zip(("input_shapes", "input_dtypes", "output_shape"), row[3:6]):
                self.assertEqual(facts.get(key), value and json.loads(value))
            self.assertEqual(facts.get("output_dtype"), row[6])
            self.assertEqual(facts.get("pre_grad_nodes", []), json.loads(row[7] or "[]"))
            self.assertEqual(sorted(set(facts["post_grad_nodes"])), sorted(json.loads(row[8])))
            lines = self.rows(database, "SELECT file, line, function FROM kernel_source WHERE kernel_id = ? ORDER BY stack_ordinal, frame_ordinal", row[9])
            stacks = list(dict.fromkeys(facts["stack_traces"]))
            self.assertEqual([[f, int(n), g] for stack in stacks for f, n, g in re.findall(r'File "(.+?)", line (\d+), in (.+)', stack)], lines)
        self.assertEqual([["model", "cpu", "linux", "x86_64", None, 0, len(expected)]], self.rows(
            database, "SELECT name, device, platform, machine, compute_capability, is_standalone, kernel_count FROM package_model"))
        with zipfile.ZipFile(self.path("model.pt2")) as archive:
            self.assertEqual([[info.filename, info.file_size, info.CRC] for info in archive.infolist()],
                             self.rows(database, "SELECT name, size_bytes, crc32 FROM package_member ORDER BY ordinal"))
        self.assertEqual([], self.codes(database))

    def test_a_real_package_with_branches(self):
        """Made by tests/libtrace_torch/aoti_custom_ops.py with Debian sid's PyTorch 2.14.1: an op of line 22, and once in each branch of line 23."""
        database = self.ingest(os.path.join(profiles.harness.ROOT, "fixtures", "inputs", "branches_2_14", "branches.pt2"))
        self.assertEqual([[handle, 22 if handle == 2 else 23] for handle in (2, 4, 6)], self.rows(
            database, """SELECT m.debug_handle, s.line FROM package_model_kernel m JOIN kernel_source s ON s.kernel_id = m.kernel_id
            WHERE m.name = 'aoti_torch_cpu_twice' AND s.file LIKE '%aoti_custom_ops.py' ORDER BY m.ordinal"""))
        self.assertEqual([[7, 0]], self.rows(database, "SELECT kernel_count, is_standalone FROM package_model"))
        self.assertEqual([], self.codes(database))

    def test_runs_of_models_are_joined_with_the_log_of_their_compile(self):
        profile = os.path.join(RUNS, "p_aoti", "run", "steps.pt.trace.json.zst")
        log, = glob.glob(os.path.join(RUNS, "p_aoti", "compile", "*.log.zst"))
        for packages in ([], [self.package("mlp", "mlp.pt2"), self.package("gpt", "gpt.pt2")]):
            database = self.ingest(log, profile, *packages)
            # Three runs of each model: 5 and 10 kernels, each with its handle and the line of its call in the C++ code.
            self.assertEqual([["K5", 5, 3, 15], ["K5", 10, 3, 30]], self.rows(
                database, """SELECT g.join_key, count(DISTINCT r.kernel_id), count(DISTINCT g.id), count(*) FROM graph_call g JOIN kernel_run r ON
                r.graph_call_id = g.id JOIN kernel k ON k.id = r.kernel_id AND k.graph_id = g.graph_id WHERE g.basis = 'model' GROUP BY g.graph_id"""))
            text = profiles.data(log).decode()
            self.assertEqual([[text.count("[Provenance debug handles]")]], self.rows(database, "SELECT count(*) FROM kernel WHERE code_line IS NOT NULL"))
            answer = self.answer("cost", database, "--by", "graph")
            self.assertEqual([3, 3], [row["calls"] for row in answer["rows"]])
            self.assertGreater(answer["profiles"][0]["compiled_us"], 0.9 * answer["profiles"][0]["window_us"])

    def test_kernels_of_packages_without_a_log(self):
        profile = os.path.join(RUNS, "p_aoti", "run", "steps.pt.trace.json.zst")
        database = self.ingest(self.package("mlp", "mlp.pt2"), self.package("gpt", "gpt.pt2"), profile)
        order = {}
        for model in ("mlp", "gpt"):
            with open(os.path.join(self.MEMBERS, f"{model}.pt2.kernel_information.json"), encoding="utf-8") as file:
                order[model] = list(json.load(file))
        # Three calls of each package, whose kernels follow the handles in order.
        expected = 3 * (order["mlp"] + order["gpt"])
        found = self.rows(database, """SELECT k.name, k.debug_handle, r.name FROM kernel_run r JOIN kernel_row k ON k.id = r.kernel_id
            WHERE r.join_key = 'K5' ORDER BY r.start_ns""")
        self.assertEqual(45, len(found))
        self.assertEqual(sorted(expected), sorted(f"{name}:{handle}" for name, handle, _ in found))
        for name, _, ran in found:
            self.assertEqual(name, re.sub(r"^graph_[0-9]+_", "", ran))
        self.assertEqual([[0]], self.rows(database, """SELECT count(*) FROM kernel_run r WHERE r.kernel_id IS NOT NULL AND NOT EXISTS
            (SELECT 1 FROM kernel_source s WHERE s.kernel_id = r.kernel_id)"""))

    def test_a_single_kernel_information(self):
        database = self.ingest(os.path.join(self.MEMBERS, "mlp.pt2.kernel_information.json"))
        self.assertEqual([["kernel_information", 5, 5]], self.rows(database, "SELECT kind, event_count, kept_count FROM profile"))
        self.assertEqual([5], self.rows(database, "SELECT count(DISTINCT name || debug_handle) FROM package_model_kernel")[0])

    def test_packed_and_standalone(self):
        def sources_only(archive):
            archive.writestr("other/data/aotinductor/net/CMakeLists.txt", "project(net)")
            archive.writestr("other/data/aotinductor/net/net.cpp", "int main() {}")
        database = self.ingest(self.package(change=sources_only, compression=zipfile.ZIP_DEFLATED))
        self.assertEqual([["model", 0], ["net", 1]], self.rows(database, "SELECT name, is_standalone FROM package_model ORDER BY 1"))

    def test_hostile_packages(self):
        def bomb(archive):
            archive.writestr("a/data/aotinductor/big/kernel_information.json", b" " * (33 << 20))
            archive.writestr("../../etc/data/aotinductor/up/x_metadata.json", "{")
            archive.writestr("/" + "data/aotinductor/top/kernel_information.json", "[1, 2]")
            archive.writestr("a/data/aotinductor/\x1b[31m/kernel_information.json", '{"k:1": {"stack_traces": ["x"], "post_grad_nodes": [7, "n", "n"]}}')
        database = self.ingest(self.package(change=bomb, compression=zipfile.ZIP_DEFLATED))
        self.assertEqual([["\x1b[31m", 1], ["big", 0], ["model", 15 - 5], ["top", 0], ["up", 0]],
                         self.rows(database, "SELECT name, kernel_count FROM package_model ORDER BY name"))
        self.assertIn("bad_runtime_file", self.codes(database))
        self.assertEqual([], glob.glob(self.path("**", "etc"), recursive=True))

    def test_damaged_packages(self):
        with open(self.package(), "rb") as file:
            whole = file.read()
        for name, data in (("cut", whole[:len(whole) // 2]), ("tail", whole[:-30]),
                           ("count", whole[:-22] + whole[-22:-12].replace(whole[-14:-12], b"\xff\xff") + whole[-12:]),
                           ("middle", whole.replace(b'"stack_traces"', b'"stack_trades"', 3))):
            with open(self.path(name + ".pt2"), "wb") as file:
                file.write(data)
            database = self.ingest(self.path(name + ".pt2"), name=name + ".db")
            self.assertEqual([[1]], self.rows(database, "SELECT count(*) FROM profile"), name)
            self.assertNotEqual([], self.codes(database), name)

    def test_other_archives_are_skipped(self):
        with zipfile.ZipFile(self.path("weights.pt"), "w") as archive:
            archive.writestr("weights/data.pkl", b"\x80\x02}.")
        log = glob.glob(os.path.join(self.MEMBERS, "*.log.zst"))[0]
        database = self.ingest(log, self.path("weights.pt"))
        self.assertEqual([], self.rows(database, "SELECT * FROM package_model"))
        self.assertEqual([1], self.rows(database, "SELECT count(*) FROM import_log WHERE code = 'skipped_file' AND message LIKE '%without an AOTInductor model%'")[0])


class TorchLogs(InputTest):
    def test_lines_of_a_recording(self):
        database = self.ingest(os.path.join(RUNS, "p_torch_logs"))
        text = profiles.data(os.path.join(RUNS, "p_torch_logs", "torch_logs.txt.zst")).decode()
        counts = {}
        for line in text.splitlines():
            match = re.match(r"[VIWEC]\d{4} \S+ +(\d+) (\S+?):(\d+)\] (?:\[([\d/!]+)(?:_(\d+))?\] )?\[__(\w+)\]", line)
            if match:
                counts[match.group(6), match.group(4)] = counts.get((match.group(6), match.group(4)), 0) + 1
        self.assertEqual(sorted([artifact, label or "", count] for (artifact, label), count in counts.items()), sorted(self.rows(
            database, "SELECT artifact, coalesce(label, ''), count(*) FROM torch_log_line GROUP BY 1, 2")))
        self.assertEqual([[0]], self.rows(database, "SELECT count(*) FROM torch_log_line WHERE label IS NOT NULL AND compile_id IS NULL"))
        self.assertEqual([[0]], self.rows(database, "SELECT count(*) FROM torch_log_line l JOIN compile c ON c.id = l.compile_id WHERE c.label <> l.label"))
        refusals = self.rows(database, "SELECT first_node, second_node, reason FROM fusion_refusal ORDER BY line")
        self.assertEqual([list(found) for found in re.findall(r"\[__fusion\] cannot fuse (\S+) with (\S+): (.*)", text)], refusals)
        self.assertGreater(len(refusals), 2)

    def test_ranks_attempts_and_other_lines(self):
        with open(self.path("logs.txt"), "w", encoding="utf-8") as file:
            file.write("[rank1]:V1122 19:30:29.099000 26478 torch/a.py:12] [!1/0/0_2] [__cudagraphs] skipping cudagraphs due to é\n"
                       "something else\r\n\nV1122 19:30:29.099000 26478 torch/a.py:12] [0/0] no artifact\n"
                       "W1122 19:30:30.000000 26478 torch/b.py:3] [__perf_hints] \x1b[31mhint\x00\n")
        database = self.ingest(self.path("logs.txt"))
        self.assertEqual([[1, "V", "!1/0/0", 2, "cudagraphs", "skipping cudagraphs due to é", "torch/a.py", 12, 1],
                          [None, "W", None, None, "perf_hints", "\x1b[31mhint\ufffd", "torch/b.py", 3, 5]], self.rows(
                              database, "SELECT iif(line = 1, rank, NULL), level, label, attempt, artifact, text, source_file, source_line, line FROM torch_log_line ORDER BY line"))
        self.assertEqual([[3, 2]], self.rows(database, "SELECT line_count, line FROM import_log WHERE code = 'foreign_line'"))


class Tritonparse(InputTest):
    """Made by hand from the documented format."""
    COMPILATION = {"event_type": "compilation", "pid": 29856, "stack": [
        {"line": 3, "name": "<module>", "filename": "/home/u/train.py", "loc": "f(x)"},
        {"line": 370, "name": "run", "filename": "/usr/lib/python3/dist-packages/triton/runtime/jit.py", "loc": ""}],
        "timestamp": "2026-09-21T21:13:22.%fZ", "payload": {
            "metadata": {"hash": "751a", "name": "triton_poi_fused_0", "num_warps": 4, "num_stages": 1, "num_ctas": 1, "shared": 1024,
                         "cache_hit": True, "target": {"backend": "cuda", "arch": 90, "warp_size": 32}, "src_constants": {"(7,)": 1}},
            "pt_info": {"frame_id": 0, "frame_compile_id": 1, "attempt": 0}, "file_path": {}, "file_content": {"k.ttir": "module {}", "k.ptx": "//"},
            "python_source": {"file_path": "/tmp/torchinductor_u/mw/c.py", "start_line": 18, "end_line": 40, "code": "def k"}, "times": {"total": 5}}}
    LAUNCH = {"event_type": "launch", "pid": 29856, "name": "triton_poi_fused_0", "grid": [8, 1, 1], "stream": 7, "compilation_metadata": {"hash": "751a"},
              "extracted_args": {"in_ptr0": {"type": "tensor", "shape": [8], "dtype": "torch.float32", "data_ptr": "0x7f"}, "n": {"type": "int", "value": 8}}}

    def test_events(self):
        lines = [json.dumps(self.COMPILATION), json.dumps(self.LAUNCH), json.dumps(self.LAUNCH), json.dumps({"event_type": "launch_diff", "hash": "751a"})]
        data = ("\n".join(lines) + "\n").encode()
        for name, content in (("a_rank_3_pid_29856_.ndjson", data), ("b_rank_3_.ndjson.gz", gzip.compress(data[:999]) + gzip.compress(data[999:]))):
            database = self.ingest(self.write(name, content), name=name + ".db")
            self.assertEqual([[3, 1, 29856, "triton_poi_fused_0", "751a", "0/1", 0, 4, 1, 1, 1024, 1, "/tmp/torchinductor_u/mw/c.py", 18, 40,
                               "/home/u/train.py", 3, '{"ttir":9,"ptx":2}']], self.rows(
                                   database, """SELECT rank, line, pid, name, hash, label, attempt, num_warps, num_stages, num_ctas, shared_bytes, is_cache_hit,
                                   file, start_line, end_line, user_file, user_line, ir FROM triton_compilation"""))
            self.assertEqual([[2, "751a", "[8,1,1]", 7, '{"in_ptr0":{"type":"tensor","shape":[8],"dtype":"torch.float32"},"n":{"type":"int","value":8}}']], self.rows(
                database, "SELECT count(*), hash, grid, stream, arguments FROM triton_launch GROUP BY 2, 3, 4, 5"))
            self.assertEqual([[1]], self.rows(database, "SELECT count(*) FROM import_log WHERE code = 'unknown_profile_event'"))

    def test_the_compile_of_a_process(self):
        log = glob.glob(os.path.join(RUNS, "p_torch_logs", "*.log.zst"))[0]
        first = self.ingest(log, name="first.db")
        pid, label = self.rows(first, "SELECT p.pid, c.label FROM compile c JOIN process p ON p.id = c.process_id ORDER BY c.id DESC LIMIT 1")[0]
        event = json.loads(json.dumps(self.COMPILATION))
        event["pid"] = pid
        event["payload"]["pt_info"] = {"frame_id": int(label.split("/")[0]), "frame_compile_id": int(label.split("/")[1]), "attempt": 0}
        database = self.ingest(log, self.write("t.ndjson", json.dumps(event).encode() + b"\n"), name="both.db")
        self.assertEqual([[label]], self.rows(database, "SELECT c.label FROM triton_compilation t JOIN compile c ON c.id = t.compile_id"))

    def test_a_cut_last_line_and_damage(self):
        whole = json.dumps(self.COMPILATION).encode()
        database = self.ingest(self.write("cut.ndjson", whole + b"\n" + b"not json\n" + whole + b"\n" + whole[:300]))
        self.assertEqual([[2]], self.rows(database, "SELECT count(*) FROM triton_compilation"))
        self.assertEqual([["bad_profile_event", 2], ["cut_profile", 4]], self.rows(database, "SELECT code, line FROM import_log WHERE severity = 'error' ORDER BY line"))


class Nsys(InputTest):
    """Made by hand from the documented schema: no export was recorded."""
    def export(self, name="r.sqlite", without=()):
        path = self.path(name)
        connection = sqlite3.connect(path)
        statements = {
            "META_DATA_EXPORT": ["CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)", "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.28.1')"],
            "TARGET_INFO_SESSION_START_TIME": ["CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT)",
                                               "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1795375000000000000, '', '')"],
            "TARGET_INFO_SYSTEM_ENV": ["CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT)",
                                       "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, '', 'Hostname', 0, 'node7')"],
            "StringIds": ["CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)",
                          "INSERT INTO StringIds VALUES (1, 'triton_poi_fused_0'), (2, 'cuLaunchKernel'), (3, '## Call CompiledFxGraph fabc ##')"],
            "CUPTI_ACTIVITY_KIND_KERNEL": [
                "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, "
                "globalPid INTEGER, demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER)",
                f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (2000, 5000, 0, 1, 7, 11, {4242 << 24}, 1, 1, 8, 1, 1, 128, 1, 1)"],
            "CUPTI_ACTIVITY_KIND_MEMCPY": [
                "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER)",
                f"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (6000, 6500, 0, 7, 12, {4242 << 24}, 4096, 1)"],
            "CUPTI_ACTIVITY_KIND_RUNTIME": [
                "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER)",
                f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1500, 1600, 0, {4242 << 24 | 4243}, 11, 2, 0), (1700, 1800, 0, {4242 << 24 | 4243}, 99, 2, 0)"],
            "NVTX_EVENTS": [
                "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, globalTid INTEGER)",
                f"INSERT INTO NVTX_EVENTS VALUES (1000, 5500, 59, NULL, 3, {4242 << 24 | 4243}), (900, 9000, 59, 'ProfilerStep#4', NULL, {4242 << 24 | 4243}), "
                f"(1200, 1300, 59, 'aten::mm, seq = 12, op_id = 3', NULL, {4242 << 24 | 4243}), (950, NULL, 34, 'a mark', NULL, {4242 << 24 | 4243})"]}
        for table, sqls in statements.items():
            if table in without:
                continue
            for sql in sqls:
                connection.execute(sql)
        connection.commit()
        connection.close()
        return path

    def test_rows(self):
        database = self.ingest(self.export())
        self.assertEqual([["nsys", 4242, "node7", "3.28.1", 1795375000000000, 1795375000000009]], self.rows(
            database, "SELECT kind, pid, host, format_version, start_us, end_us FROM profile"))
        self.assertEqual([["triton_poi_fused_0", 0, 7, 1795375000000002000, 3000, "[8, 1, 1]", "[128, 1, 1]"]], self.rows(
            database, "SELECT name, device, stream, start_ns, duration_ns, grid, block FROM kernel_run"))
        self.assertEqual([["memcpy", "memcpy HtoD", 4096]], self.rows(database, "SELECT kind, name, size_bytes FROM device_copy"))
        self.assertEqual([["aten::mm", 12, 100]], self.rows(database, "SELECT name, sequence_number, duration_ns FROM op_run"))
        self.assertEqual([["ProfilerStep#4", 4]], self.rows(database, "SELECT name, step FROM annotation"))
        self.assertEqual([[0, "fabc", 4500]], self.rows(
            database, "SELECT s.kind, t.text, s.duration_ns FROM compiled_slice_row s JOIN text_row t ON t.id = s.name_id"))
        self.assertEqual([[11]], self.rows(database, "SELECT correlation FROM device_launch_row"))

    def test_what_is_not_read_is_counted(self):
        path = self.export()
        connection = sqlite3.connect(path)
        for table, columns in (("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "start, end"), ("CUPTI_ACTIVITY_KIND_NEW_THING", "x, y"), ("CUPTI_ACTIVITY_KIND_EMPTY", "x, y")):
            connection.execute(f"CREATE TABLE {table} ({columns})")
        connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (1, 2), (3, 4), (9, 8), (1, 'x')")
        connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_NEW_THING VALUES (1, 2)")
        connection.commit()
        connection.close()
        self.assertEqual([["profile_events_left_out", "1 row left out of CUPTI_ACTIVITY_KIND_RUNTIME: calls that queued nothing that is in the file, 0.100 us in all"],
                          ["profile_events_left_out", "4 rows left out of CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: waits of the CPU or of a stream for others, 0.002 us in all"],
                          ["unknown_profile_event", "1 row left out of CUPTI_ACTIVITY_KIND_NEW_THING: a table that is not read"]],
                         self.rows(self.ingest(path), "SELECT code, message FROM import_log WHERE message LIKE '%CUPTI%' ORDER BY code, message"))

    def test_graphs_that_were_traced_as_a_whole(self):
        path = self.export()
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, "
                           "correlationId INTEGER, globalPid INTEGER, graphId INTEGER, graphExecId INTEGER)")
        connection.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (5000, 5400, 0, 1, 7, 99, {4242 << 24}, 109, 110), (0, 0, 0, 1, 7, 98, {4242 << 24}, 109, 110)")
        connection.commit()
        connection.close()
        database = self.ingest(path)
        # Each is tied to the call that launched it; both calls are inside the graph call.
        self.assertEqual([["triton_poi_fused_0", 3000, 1500], ["CUDA graph 109", 400, 1700]], self.rows(
            database, "SELECT r.name, r.duration_ns, l.enqueued_ns % 1000000 FROM kernel_run r JOIN kernel_run_link_row l ON l.kernel_run_id = r.id ORDER BY r.start_ns"))
        self.assertEqual([[2]], self.rows(database, "SELECT count(graph_call_id) FROM kernel_run"))
        self.assertEqual([["1 row left out of CUPTI_ACTIVITY_KIND_GRAPH_TRACE: without a start or an end"]], self.rows(
            database, "SELECT message FROM import_log WHERE message LIKE '%CUPTI%'"))

    def test_a_compressed_export(self):
        connection = sqlite3.connect(self.export())
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT start + 10 * value, end + 10 * value, deviceId, contextId, streamId, NULL, globalPid, "
                           "demangledName, shortName, gridX, gridY, gridZ, blockX, blockY, blockZ FROM CUPTI_ACTIVITY_KIND_KERNEL, (WITH RECURSIVE n(value) AS "
                           "(SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 300000) SELECT value FROM n)")
        connection.commit()
        connection.close()
        with open(self.path("r.sqlite"), "rb") as file:
            data = file.read()
        self.assertGreater(len(data), 8 << 20)
        plain = self.ingest(self.path("r.sqlite"), name="plain.db")
        packed = self.ingest(self.write("packed/r.sqlite.gz", gzip.compress(data, 1)), name="gz.db")
        sql = "SELECT count(*), sum(duration_ns), min(start_ns), max(start_ns), count(DISTINCT name) FROM kernel_run"
        self.assertEqual(300001, self.rows(plain, sql)[0][0])
        self.assertEqual(self.rows(plain, sql), self.rows(packed, sql))
        self.assertEqual(self.rows(plain, "SELECT size_bytes, content_hash, event_count FROM profile"),
                         self.rows(packed, "SELECT size_bytes, content_hash, event_count FROM profile"))
        self.assertEqual([], self.codes(packed))
        # What is cut off is said, and what came before it is kept.
        cut = self.ingest(self.write("cut/r.sqlite.gz", gzip.compress(data, 1)[:-200_000]), name="cut.db")
        self.assertEqual({"damaged_input", "bad_runtime_file"}, set(self.codes(cut)))
        self.assertGreater(self.rows(cut, "SELECT kept_count FROM profile")[0][0], 1000)
        cut = self.ingest(self.write("cut/r.sqlite", data[:len(data) // 2]), name="half.db")
        self.assertEqual(["bad_runtime_file"], self.codes(cut))
        self.assertGreater(self.rows(cut, "SELECT kept_count FROM profile")[0][0], 1000)

    def test_several_processes_are_several_profiles(self):
        path = self.export()
        connection = sqlite3.connect(path)
        # The same correlation numbers in a second process; a copy that names no process.
        connection.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (12000, 19000, 1, 1, 9, 11, {5252 << 24}, 1, 1, 8, 1, 1, 128, 1, 1)")
        connection.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (11500, 11600, 0, {5252 << 24 | 5253}, 11, 2, 0)")
        connection.execute(f"INSERT INTO NVTX_EVENTS VALUES (11000, 21000, 59, 'ProfilerStep#9', NULL, {5252 << 24 | 5253})")
        connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (6000, 6400, 0, 7, NULL, NULL, 8, 1)")
        connection.commit()
        connection.close()
        logs = self.path("logs")
        os.mkdir(logs)
        for rank, pid in enumerate((4242, 5252)):
            with open(os.path.join(logs, f"dedicated_log_torch_trace_rank_{rank}_abcdefgh.log"), "w", encoding="utf-8") as file:
                file.write('V1122 20:46:23.000000 %d torch/_dynamo/convert_frame.py:1] {"dynamo_start": {"stack": []}, "rank": %d, "frame_id": 0, '
                           '"frame_compile_id": 0, "attempt": 0}\n' % (pid, rank))
        for _ in range(2):  # the same bytes add nothing
            self.database = self.path("several.db")
            self.tlparse(logs, path, "--db", self.database, "--run", "r", "--db-only")
            self.assertEqual([[path + "#no pid", None, None, 1], [path + "#pid 4242", 4242, 0, 6], [path + "#pid 5252", 5252, 1, 3]], self.rows(
                self.database, "SELECT path, pid, rank, kept_count FROM profile ORDER BY path"))
            self.assertEqual([[4242, 3000, 500], [5252, 7000, 500]], self.rows(
                self.database, "SELECT p.pid, r.duration_ns, r.start_ns - l.enqueued_ns FROM kernel_run r JOIN profile p ON p.id = r.profile_id "
                "JOIN kernel_run_link_row l ON l.kernel_run_id = r.id ORDER BY p.pid"))
            self.assertEqual([["ProfilerStep#4", 0], ["ProfilerStep#9", 1]], self.rows(self.database, "SELECT name, rank FROM annotation ORDER BY name"))
            self.assertEqual([], self.codes(self.database))
        # What has changed replaces all of it.
        connection = sqlite3.connect(path)
        connection.execute(f"DELETE FROM NVTX_EVENTS WHERE globalTid >> 24 = 5252")
        connection.commit()
        connection.close()
        self.tlparse(path, "--db", self.database, "--run", "r", "--db-only")
        self.assertEqual([[None, 1], [4242, 6], [5252, 2]], self.rows(self.database, "SELECT pid, kept_count FROM profile ORDER BY pid"))

    def test_every_table_may_be_missing(self):
        for table in ("TARGET_INFO_SESSION_START_TIME", "TARGET_INFO_SYSTEM_ENV", "StringIds", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
                      "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
            database = self.ingest(self.export(table + ".sqlite", without=(table,)), name=table + ".db")
            self.assertEqual([[1]], self.rows(database, "SELECT count(*) FROM profile"), table)
            self.assertEqual([], self.codes(database), table)

    def test_a_damaged_export(self):
        with open(self.export(), "rb") as file:
            data = bytearray(file.read())
        data[8192:] = b"\xff" * (len(data) - 8192)
        with open(self.path("damaged.sqlite"), "wb") as file:
            file.write(data)
        database = self.ingest(self.path("damaged.sqlite"), name="damaged.db")
        self.assertEqual(["bad_runtime_file"], self.codes(database))


if __name__ == "__main__":
    unittest.main()
