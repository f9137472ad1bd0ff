#!/usr/bin/env python3
"""Profiles into rows: counted by another program, in every form and with every damage."""

import glob
import gzip
import json
import os
import re
import unittest

import profiles
from profiles import harness

CPU_KERNEL = re.compile(r"(graph_\d+_)?cpp_\w+$")


def counted(path):
    """What the tables should hold of a profile, by name of the table."""
    events = profiles.trace(path)["traceEvents"]
    cpu = profiles.slices(events, "cpu_op")
    annotations = profiles.slices(events, "user_annotation")
    device_annotations = profiles.slices(events, "gpu_user_annotation")

    def is_call(event):
        return event["name"].startswith("## Call CompiledFxGraph ")

    def is_region(event):
        return event["name"].startswith("Torch-Compiled Region: ")
    functions = [e for e in cpu if e["name"] in ("CompiledFunction", "CompiledFunctionBackward")]
    kernels = [e for e in cpu if CPU_KERNEL.match(e["name"])]
    slices = [e for e in cpu + annotations if is_call(e) or is_region(e)]
    device_calls = [e for e in device_annotations if is_call(e)]
    return {
        "compiled_slice_row": len(slices) + len(functions) + len(device_calls),
        "kernel_run_row WHERE device IS NULL AND op_run_id IS NULL": len(kernels),
        "kernel_run_row WHERE device IS NOT NULL": len(profiles.slices(events, "kernel")),
        "device_copy_row": len(profiles.slices(events, "gpu_memcpy", "gpu_memset")),
        "annotation_row": sum(not is_call(e) and not is_region(e) for e in annotations) +
        len(device_annotations) - len(device_calls),
        "op_run_row": len(cpu) - len(kernels) - sum(is_call(e) or is_region(e) for e in cpu),
    }


class Reading(harness.EndToEnd):
    def ingest(self, *arguments):
        self.tlparse(*arguments, "--db", "x.db", "--db-only")
        return self.path("x.db")

    def rows(self, sql):
        return harness.rows(self.path("x.db"), sql)

    def compare(self, path):
        self.ingest(path)
        found = {table: self.rows(f"SELECT count(*) FROM {table}")[0][0] for table in counted(path)}
        self.assertEqual(found, counted(path))
        self.assertEqual(self.rows("SELECT event_count FROM profile"),
                         [[len(profiles.trace(path)["traceEvents"])]])
        os.unlink(self.path("x.db"))

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_every_recording(self):
        paths = profiles.profiles_below(profiles.RUNS)
        self.assertGreater(len(paths), 10)
        for path in paths:
            with self.subTest(path):
                self.compare(path)

    @unittest.skipUnless(os.path.isdir(profiles.GPU), "no public GPU profiles here")
    def test_every_gpu_profile(self):
        for path in profiles.profiles_below(profiles.GPU):
            with self.subTest(path):
                self.compare(path)

    def small(self, **changes):
        trace = {"schemaVersion": 1, "baseTimeNanoseconds": 1790857026000000000, "traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 7, "tid": 7, "ts": 4517749258573.122, "dur": 2.5,
             "args": {"External id": 1}},
            {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 4517749258580.001, "dur": 1,
             "args": {"External id": 1, "correlation": 3, "grid": [1, 2, 3]}}]}
        trace.update(changes)
        return trace

    def test_times_are_exact_wherever_the_base_stands(self):
        first = self.small()
        events = first.pop("traceEvents")
        last = {"traceEvents": events, **first}
        first["traceEvents"] = events
        for trace in (first, last):
            self.ingest(self.write("p", json.dumps(trace).encode()))
            self.assertEqual(self.rows("SELECT start_ns, duration_ns FROM op_run_row"),
                             [[1790857026000000000 + 4517749258573122, 2500]])
            self.assertEqual(self.rows("SELECT start_us, end_us FROM profile"),
                             [[(1790857026000000000 + 4517749258573122) // 1000,
                               (1790857026000000000 + 4517749258581001) // 1000]])
            os.unlink(self.path("x.db"))

    def test_a_profile_without_a_log_has_no_findings_and_no_collectives(self):
        trace = self.small()
        trace["traceEvents"].append({"ph": "X", "cat": "cpu_op", "name": "c10d::allreduce_", "pid": 7, "tid": 7, "ts": 4517749258573, "dur": 1})
        self.ingest(self.write("p", json.dumps(trace).encode()))
        self.assertIn("0 findings", self.tlparse("findings", "x.db").stdout)
        self.assertIn("no log", self.tlparse("collectives", "x.db").stdout)
        self.assertEqual(self.rows("SELECT join_key, join_note FROM collective_run"), [[None, "it ran outside any graph call"]])

    def test_forms_of_a_profile_that_say_the_same(self):
        """Other orders, whitespace and encodings of numbers: the rows are the same."""
        trace = self.small(baseTimeNanoseconds=1_700_000_000_000_000_000)
        events = trace.pop("traceEvents")
        in_text = [{key: str(value) if key in ("ts", "dur", "pid", "tid") else value for key, value in event.items()} for event in events]
        forms = {
            "last": json.dumps(dict(trace, traceEvents=events)), "first": json.dumps(dict({"traceEvents": events}, **trace)),
            "indented": json.dumps(dict(trace, traceEvents=events), indent=2).replace("\n", "\r\n"),
            "with a mark": "\ufeff" + json.dumps(dict(trace, traceEvents=events)), "with a unit": json.dumps(dict(trace, displayTimeUnit="ns", traceEvents=events)),
            "backwards": json.dumps(dict(trace, traceEvents=events[::-1])), "numbers as text": json.dumps(dict(trace, traceEvents=in_text)),
            "base as text": json.dumps(dict(trace, baseTimeNanoseconds=str(trace["baseTimeNanoseconds"]), traceEvents=events)),
            "without a version": json.dumps(dict({key: value for key, value in trace.items() if key != "schemaVersion"}, traceEvents=events))}
        sql = "SELECT name, start_ns, duration_ns FROM op_run ORDER BY start_ns, name"
        found = {}
        for name, text in forms.items():
            self.ingest(self.write("p.json", text.encode()))
            found[name] = (self.rows(sql), self.rows("SELECT start_us, end_us FROM profile"))
            os.unlink(self.path("x.db"))
        self.assertTrue(found["last"][0])
        self.assertEqual({name: rows for name, rows in found.items() if rows != found["last"]}, {})

    def test_without_a_base_times_are_taken_for_epoch(self):
        trace = self.small()
        del trace["baseTimeNanoseconds"]
        trace["traceEvents"][0]["ts"] = 1790857026000000.5
        self.ingest(self.write("p", json.dumps(trace).encode()))
        self.assertEqual(self.rows("SELECT start_ns FROM op_run_row"), [[1790857026000000500]])
        self.assertEqual(self.rows("SELECT count(*) FROM import_log WHERE code = 'assumed_clock'"), [[1]])

    def test_other_chrome_traces_are_skipped_with_a_row(self):
        events = [{"ph": "X", "cat": "gpu", "name": "x", "ts": 1, "dur": 1, "pid": 1, "tid": 1}]
        self.write("job/chrome.json", json.dumps({"traceEvents": events}).encode())
        self.write("job/p.json", json.dumps(self.small()).encode())
        self.ingest(self.path("job"))
        self.assertEqual(self.rows("SELECT count(*) FROM profile"), [[1]])
        skipped = self.rows("SELECT path FROM import_log WHERE code = 'skipped_file'")
        self.assertEqual(len(skipped), 1)
        self.assertIn("chrome.json", skipped[0][0])

    def test_json_that_only_uses_the_words_of_a_profile_is_none(self):
        self.write("job/manifest.json", b'{"schemaVersion": 2, "mediaType": "x"}')
        self.write("job/words.json", b'{"traceEvents": "see below", "schemaVersion": 1}')
        self.write("job/empty.json", b'{"schemaVersion": 1, "traceEvents": []}')
        self.write("job/cut.json", b'{"schemaVersion": 1, "deviceProperties": [')
        self.ingest(self.path("job"))
        self.assertEqual([os.path.basename(path) for path, in self.rows("SELECT path FROM profile ORDER BY 1")], ["cut.json", "empty.json"])
        self.assertEqual(self.rows("SELECT count(*) FROM import_log WHERE code = 'skipped_file'"), [[2]])

    def test_the_window_spans_events_that_are_not_kept(self):
        trace = {"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": [
            {"ph": "X", "cat": "python_function", "name": "a.py(1): f", "pid": 7, "tid": 7, "ts": 100, "dur": 1},
            {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 7, "tid": 7, "ts": 150, "dur": 10},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 7, "tid": 7, "ts": 170, "dur": 30}]}
        self.ingest(self.write("p", json.dumps(trace).encode()))
        self.assertEqual(self.rows("SELECT start_us, end_us, kept_count FROM profile"), [[100, 200, 1]])

    def test_directories_of_a_tlparse_are_not_entered(self):
        for name in (".tlparse-output", "compile_directory.json"):
            self.write(f"job/{name[1:4]}/{name}", b"{}")
            self.write(f"job/{name[1:4]}/p.json", json.dumps(self.small()).encode())
        self.write("job/p.json", json.dumps(self.small()).encode())
        self.ingest(self.path("job"))
        self.assertEqual(self.rows("SELECT count(*) FROM profile"), [[1]])
        self.assertEqual(self.rows("SELECT count(*) FROM import_log WHERE code = 'skipped_file'"), [[2]])

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_a_wrong_checksum_loses_nothing(self):
        data = bytearray(gzip.compress(profiles.data(profiles.recorded("p_mlp_train", "steps.pt.trace.json.zst"))))
        data[-6] ^= 0x10
        self.write("p.json.gz", bytes(data))
        said = self.tlparse("p.json.gz", "--db", "x.db", "--db-only").stderr + self.tlparse("cost", "x.db").stdout
        self.assertEqual(2, said.count("the checksum of its gzip data does not fit; all of it was decoded and is kept, and some of it may be wrong"))
        self.assertNotIn("not all of", said)

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_one_axis_for_compiles_and_what_ran(self):
        folder = profiles.recorded("p_ddp")
        for flags, has_profile in (((), False), (("--with-profile",), True)):
            self.tlparse(folder, "-o", "out", "--overwrite", *flags)
            with open(self.path("out/rank_0/chromium_events.json"), encoding="utf-8") as file:
                events = json.load(file)
            calls = [event for event in events if event.get("cat") == "graph_call"]
            self.assertEqual(bool(calls), has_profile)
        trace = profiles.trace(os.path.join(folder, "steps.rank0.pt.trace.json.zst"))
        recorded = [e for e in profiles.slices(trace["traceEvents"], "cpu_op", "user_annotation") if e["name"].startswith("## Call")]
        self.assertEqual(len(calls), len(recorded))
        base = trace["baseTimeNanoseconds"] / 1e3
        for call, event in zip(sorted(calls, key=lambda e: e["ts"]), sorted(recorded, key=lambda e: e["ts"])):
            self.assertAlmostEqual(call["ts"], base + event["ts"], delta=1)
            self.assertAlmostEqual(call["dur"], event["dur"], delta=0.001)
        with open(self.path("out/chromium_events.json"), encoding="utf-8") as file:
            both = json.load(file)
        self.assertEqual({event["pid"] for event in both if event.get("cat") == "graph_call"}, {0, 1})

    def test_a_timeline_of_profiles_without_a_log(self):
        trace = self.small()
        self.write("p.json", json.dumps(trace).encode())
        self.tlparse(self.path("p.json"), "-o", "out")
        self.assertFalse(os.path.exists(self.path("out/chromium_events.json")))
        # The plain index is index.html where tlparse was built without the page.
        index = self.path("out/files.html" if os.path.exists(self.path("out/files.html")) else "out/index.html")
        with open(index, encoding="utf-8") as file:
            self.assertNotIn("chromium_events.json", file.read())
        self.tlparse(self.path("p.json"), "-o", "out", "--overwrite", "--with-profile")
        with open(self.path("out/chromium_events.json"), encoding="utf-8") as file:
            events = [event for event in json.load(file) if event["ph"] == "X"]
        expected = [[event["name"], event["dur"]] for event in trace["traceEvents"] if event.get("cat") in ("cpu_op", "user_annotation", "kernel")]
        self.assertEqual(sorted([event["name"], event["dur"]] for event in events), sorted(expected))
        with open(index, encoding="utf-8") as file:
            self.assertIn("chromium_events.json", file.read())
        refused = self.tlparse(self.path("p.json"), "--db", "x.db", "-o", "out", expect=None)
        self.assertIn("--db-only writes the database alone", refused.stderr)
        # Beside a log of another process, too.
        with open(harness.bundled("simple"), "rb") as log:
            self.write("dedicated_log_torch_trace_abcdefgh.log", log.read())
        self.tlparse(self.path("p.json"), self.path("dedicated_log_torch_trace_abcdefgh.log"), "-o", "both", "--with-profile")
        with open(self.path("both/chromium_events.json"), encoding="utf-8") as file:
            found = [[event["name"], event["dur"]] for event in json.load(file) if event.get("cat") in ("cpu_op", "user_annotation", "kernel")]
        self.assertEqual(sorted(found), sorted(expected))

    def test_only(self):
        self.write("job/p.json", json.dumps(self.small()).encode())
        with open(harness.bundled("simple"), "rb") as log:
            self.write("job/dedicated_log_torch_trace_abcdefgh.log", log.read())
        for only, logs, found in (("logs", 1, 0), ("profiles", 0, 1)):
            self.ingest(self.path("job"), "--only", only)
            self.assertEqual(self.rows("SELECT (SELECT count(*) FROM log_file), (SELECT count(*) FROM profile)"),
                             [[logs, found]])
            os.unlink(self.path("x.db"))
        self.tlparse(self.path("job"), "--only", "dumps", expect=2)

    def test_a_profile_that_is_cut_keeps_what_came_before(self):
        whole = json.dumps(self.small())
        for size in range(20, len(whole), 7):
            path = self.write("p.json", whole[:size].encode())
            done = self.tlparse(path, "--db", "x.db", "--db-only", expect=None)
            self.assertEqual(done.returncode, 0, whole[:size])
            self.assertEqual(self.rows("SELECT severity FROM import_log WHERE code = 'cut_profile'"), [["error"]])
            os.unlink(self.path("x.db"))

    def test_damaged_events_are_rows_and_the_others_are_kept(self):
        bad = ['{"ph": "X", "cat": "cpu_op" "x"}', '3', '"x"', '{"ph": "X", "cat": "cpu_op", "name": "n", "ts": "x"}',
               '{"ph": "X", "cat": "cpu_op", "ts": 1}', '{"ph": "X", "cat": "kernel", "name": "k", "ts": 1e18}']
        trace = self.small()
        good = ",".join(json.dumps(event) for event in trace["traceEvents"])
        text = '{"schemaVersion": 1, "traceEvents": [' + ",".join(bad) + "," + good + "]}"
        self.ingest(self.write("p.json", text.encode()))
        self.assertEqual(self.rows("SELECT count(*) FROM op_run"), [[1]])
        self.assertEqual(self.rows("SELECT count(*) FROM kernel_run WHERE name = 'k'"), [[1]])
        self.assertEqual(self.rows("SELECT count(*) FROM import_log WHERE code = 'bad_profile_event' AND text IS NOT NULL"),
                         [[len(bad)]])

    def test_a_flipped_byte_costs_one_event(self):
        data = profiles.data(profiles.recorded("p_mlp_train", "steps.pt.trace.json.zst"))
        events = json.loads(data)["traceEvents"]
        begins = [match.start() for match in re.finditer(rb'\{\s*"ph"', data)]
        self.assertEqual(len(begins), len(events))
        for what, flipped in ((b'"name"', b"#name\""), (b'"cat": "', b'"cat": #'), (b'"args": {', b'"args": y'), (b',\n    "pid"', b'}\n    "pid"'), (b'"ph"', b'"\x01h"')):
            slices = [i for i, event in enumerate(events) if event["ph"] == "X" and "args" in event and i + 1 < len(events)]
            for index in (slices[0], slices[len(slices) // 2], slices[-2]):
                with self.subTest(what=what, index=index):
                    at = data.index(what, begins[index])
                    self.assertLess(at, begins[index + 1])
                    self.write("flip.json", data[:at] + flipped + data[at + len(what):])
                    if os.path.exists(self.path("x.db")):
                        os.unlink(self.path("x.db"))
                    done = self.tlparse(self.path("flip.json"), "--db", "x.db", "--db-only")
                    self.assertIn("1 event was left out in all", done.stderr)
                    self.assertEqual(self.rows("SELECT event_count FROM profile"), [[len(events)]])
                    self.assertEqual(self.rows("SELECT byte_offset FROM import_log WHERE code = 'bad_profile_event' AND byte_offset IS NOT NULL"), [[begins[index]]])
                    self.assertIn(f"flip.json, byte {begins[index]}", self.tlparse("import-log", "x.db").stdout)

    def test_damage_of_the_compressed_data_is_called_that(self):
        data = bytearray(gzip.compress(profiles.data(profiles.recorded("p_mlp_train", "steps.pt.trace.json.zst"))))
        data[len(data) // 2] ^= 8
        self.write("flip.json.gz", bytes(data))
        done = self.tlparse(self.path("flip.json.gz"), "--db", "x.db", "--db-only")
        self.assertIn("damaged data", done.stderr)
        self.assertEqual(self.rows("SELECT count(*) FROM import_log WHERE message GLOB '*JSON*'"), [[0]])
        self.assertEqual(self.rows("SELECT count(*) > 1 FROM import_log WHERE code = 'damaged_input'"), [[1]])

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_a_compressed_file_of_which_nothing_can_be_read_is_not_called_empty(self):
        for name, size in (("steps.pt.trace.json.zst", 200), ("x", 40)):  # within the first block, which cannot be decoded then
            with open(profiles.recorded("p_mlp_train", "steps.pt.trace.json.zst"), "rb") as file:
                self.write(os.path.join("job", name), file.read()[:size])
        self.write(os.path.join("job", "empty.json"), b"")
        self.write(os.path.join("job", "p.json"), json.dumps(self.small()).encode())
        done = self.tlparse(self.path("job"), "--db", "x.db", "--db-only")
        self.assertEqual(2, done.stderr.count("nothing of it could be read"), done.stderr)
        self.assertEqual([["error", "steps.pt.trace.json.zst: its zstd data is cut or damaged: nothing of it could be read"],
                          ["error", "x: its zstd data is cut or damaged: nothing of it could be read"]],
                         self.rows("SELECT severity, substr(path, instr(path, 'job/') + 4) || ': ' || message FROM import_log WHERE code = 'damaged_input' ORDER BY 2"))
        self.assertEqual([["empty.json: it is empty"]],
                         self.rows("SELECT substr(path, instr(path, 'job/') + 4) || ': ' || message FROM import_log WHERE code = 'skipped_file'"))
        os.unlink(self.path("job", "p.json"))
        done = self.tlparse(self.path("job"), "--db", "y.db", "--db-only", expect=2)
        self.assertRegex(done.stderr, r"nothing in '\S+job' can be read: \S+: its zstd data is cut or damaged: nothing of it could be read; copy it again")

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_a_profile_that_names_no_process_is_said_to(self):
        log = glob.glob(profiles.recorded("p_mlp_train", "*.log.zst"))[0]
        self.ingest(log, self.write("p.json", b'{"traceEvents": [{"name": "k", "cat": "kernel", "ph": "X", "ts": 1e15, "dur": 2}]}'))
        self.assertEqual([["the file names neither its process nor a rank"]], self.rows("SELECT process_note FROM profile"))

    def test_many_damaged_events_do_not_cost_the_square(self):
        # Each of them opens a bracket that nothing closes: what follows is looked at again and again, up to a limit.
        self.write("open.json", b'{"schemaVersion": 1, "traceEvents": [' + b'{"ph" ' * 500_000)
        self.tlparse(self.path("open.json"), "--db", "x.db", "--db-only")
        self.assertLess(self.rows("SELECT event_count FROM profile")[0][0], 500_000)
        self.assertEqual(self.rows("SELECT count(*) FROM import_log WHERE code = 'cut_profile'"), [[1]])

    def test_events_of_unknown_categories_are_counted(self):
        trace = self.small()
        trace["traceEvents"] += [dict(trace["traceEvents"][0], cat="quantum_op")] * 3
        self.ingest(self.write("p.json", json.dumps(trace).encode()))
        self.assertEqual(self.rows("SELECT message FROM import_log WHERE code = 'unknown_profile_event'"), [["3 events of category 'quantum_op', 7.500 us in all"]])

    def test_an_event_that_is_too_large(self):
        trace = self.small()
        trace["traceEvents"].insert(0, dict(trace["traceEvents"][0], name="x" * (20 << 20)))
        self.ingest(self.write("p.json", json.dumps(trace).encode()))
        self.assertEqual(self.rows("SELECT count(*) FROM import_log WHERE code = 'profile_event_too_large'"), [[1]])
        self.assertEqual(self.rows("SELECT count(*) FROM op_run"), [[1]])

    def test_times_out_of_range(self):
        good = self.small()["traceEvents"][0]
        bad = [dict(good, ts=9.2e15), dict(good, ts=-9.2e15), dict(good, dur=9.2e15), dict(good, dur=-1), dict(good, dur=-9.2e15)]
        for base in (2 ** 63 - 1, -2 ** 63, 10 ** 30, 0):
            text = json.dumps({"schemaVersion": 1, "traceEvents": bad + [good], "baseTimeNanoseconds": base})
            self.ingest(self.write("p.json", text.encode()))
            self.assertEqual(self.rows("SELECT count(*) FROM op_run"), [[1]])
            self.assertEqual(self.rows("SELECT count(*) FROM import_log WHERE code = 'bad_profile_event' AND text IS NOT NULL"), [[len(bad)]])
            os.unlink(self.path("x.db"))

    def test_hostile_names(self):
        names = ["<script>", "'; DROP TABLE run; --", "a\u0000b", "\ud800", "x" * 200000, ""]
        events = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": -2 ** 63, "ts": i, "dur": 1}
                  for i, name in enumerate(names)]
        self.ingest(self.write("p.json", json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()))
        self.assertEqual(self.rows("SELECT count(*) FROM op_run_row")[0][0] +
                         self.rows("SELECT count(*) FROM import_log WHERE code = 'bad_profile_event' AND text IS NOT NULL")[0][0],
                         len(names))
        self.assertEqual(self.rows("PRAGMA integrity_check"), [["ok"]])

    def test_python_frames(self):
        cached = "/tmp/c/jn/c" + "jn" + "a" * 49 + ".py"
        frames = [{"ph": "X", "cat": "python_function", "name": "f", "pid": 1, "tid": 1, "ts": 5, "dur": 1, "args": args}
                  for args in ({"CallFrom": cached + ":12"}, {"CallFrom": "/home/u/a.py:3"}, {}, {"Python id": 3})]
        path = self.write("p.json", json.dumps(self.small(traceEvents=frames)).encode())
        self.ingest(path)
        self.assertEqual(self.rows("SELECT file, line FROM python_frame"), [[cached, 12]])
        self.assertEqual(self.rows("SELECT message FROM import_log WHERE code = 'profile_events_left_out'"),
                         [["3 events: python_function, 3.000 us in all"]])
        os.unlink(self.path("x.db"))
        self.ingest(path, "--keep-python-frames")
        self.assertEqual(self.rows("SELECT count(*), count(file) FROM python_frame"), [[4, 2]])

    def test_added_again_and_changed(self):
        path = self.write("p.json", json.dumps(self.small()).encode())
        self.tlparse(path, "--db", "x.db", "--db-only", "--run", "r")
        before = harness.dump(self.path("x.db"))
        self.tlparse(path, "--db", "x.db", "--db-only", "--run", "r")
        self.assertEqual(harness.dump(self.path("x.db")), before)
        trace = self.small()
        trace["traceEvents"].append(dict(trace["traceEvents"][0], name="aten::mul"))
        self.write("p.json", json.dumps(trace).encode())
        self.tlparse(path, "--db", "x.db", "--db-only", "--run", "r")
        self.assertEqual(self.rows("SELECT name FROM op_run ORDER BY 1"), [["aten::add"], ["aten::mul"]])
        self.assertEqual(self.rows("SELECT count(*) FROM profile"), [[1]])
        self.assertEqual(self.rows("PRAGMA foreign_key_check"), [])

    def test_files_that_are_left_out_are_told_once(self):
        self.write("job/p.json", json.dumps(self.small()).encode())
        self.write("job/empty", b"")
        self.write("job/other.json", b'{"traceEvents": [{"name": "x", "ph": "X", "ts": 1, "cat": "y"}]}')
        for _ in range(3):
            self.tlparse("job", "--db", "x.db", "--db-only", "--run", "r")
            self.assertEqual([["empty"], ["other"]],
                             self.rows("SELECT substr(path, 5, 5) FROM import_log WHERE code = 'skipped_file' ORDER BY 1"))

    def test_a_report_of_a_profile_alone(self):
        self.tlparse(self.write("p.json", json.dumps(self.small()).encode()), "-o", "out")
        self.assertTrue(os.path.getsize(self.path("out", "index.html")) > 0)


if __name__ == "__main__":
    unittest.main()
