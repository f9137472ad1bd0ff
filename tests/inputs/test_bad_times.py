#!/usr/bin/env python3
"""Impossible times in every kind of input: none of them becomes a negative or infinite time, each kind is a row of import_log with a
count, and what stands beside them is kept."""

import json
import math
import os
import pickle
import sqlite3
import unittest

import profiles
from profiles import harness

TIMES = ("_ns", "_us", "_ms")
# Differences and clocks, where a negative number is right.
SIGNED = {"clock_offset_us"}


class BadTimes(harness.EndToEnd):
    def rows(self, sql):
        return harness.rows(self.path("x.db"), sql)

    def ingest(self, name, data):
        self.write(name, data)
        if os.path.exists(self.path("x.db")):
            os.unlink(self.path("x.db"))
        self.tlparse(self.path(name), "--db", "x.db", "--db-only")
        self.assert_times_are_possible()

    def assert_times_are_possible(self):
        """In every table and view of measured things, and in every sum of cost."""
        connection = sqlite3.connect(f"file:{self.path('x.db')}?mode=ro", uri=True)
        self.addCleanup(connection.close)
        tables = [name for name, in connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'")]
        checked = 0
        for table in tables:
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            times = [name for name in columns if name.endswith(TIMES) and name not in SIGNED]
            for row in connection.execute(f"SELECT {', '.join(times)} FROM \"{table}\"") if times else ():
                for name, value in zip(times, row):
                    checked += value is not None
                    if value is not None:
                        self.assertTrue(math.isfinite(value) and value >= 0, f"{table}.{name} = {value}")
        return checked

    def counts(self, code):
        return [message for message, in self.rows(f"SELECT message FROM import_log WHERE code = '{code}' AND text IS NULL ORDER BY id")]

    def test_profile(self):
        good = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5.5, "dur": 2.25, "args": {"device": 0, "stream": 7}}
        without = {key: value for key, value in good.items() if key != "dur"}
        untimed = {key: value for key, value in good.items() if key != "ts"}
        bad = [json.dumps(event) for event in (
            dict(good, dur=-1), dict(good, dur="NaN"), dict(good, dur=None), dict(good, dur=[3]), dict(good, dur=2 ** 64), dict(good, ts=2 ** 64),
            dict(good, ts="Infinity"), dict(good, ts=-1e300), untimed)]
        bad += [json.dumps(dict(good, dur=0)).replace('"dur": 0', f'"dur": {value}') for value in ("1e300", "1e400", "-1e300", "NaN", "1.2.3", "--5")]
        events = bad + [json.dumps(good), json.dumps(without)]
        self.ingest("p.json", ('{"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [' + ",".join(events) + "]}").encode())
        self.assertEqual(self.rows("SELECT start_ns - 1700000000000000000, duration_ns FROM kernel_run ORDER BY id"), [[5500, 2250], [5500, 0]])
        self.assertEqual(self.counts("bad_profile_event"), [f"{len(bad)} events were left out in all", "1 slice has no duration (dur) in the file: 0 is stored"])
        self.assertEqual(self.rows("SELECT event_count, kept_count FROM profile"), [[len(bad) + 2, 2]])
        cost = json.loads(self.tlparse("cost", "x.db", "--by", "kernel", "--json").stdout)
        self.assertEqual([(row["calls"], row["share_us"]) for row in cost["rows"]], [(2, 2.25)])

    def test_durations_whose_sum_exceeds_64_bits(self):
        # Each is possible alone, below three days.
        event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2 ** 48 // 1000, "args": {"device": 0, "stream": 7}}
        text = json.dumps(event)
        count = 2 ** 15 + 10
        for name in ("a.json", "b.json"):
            self.write(name, ('{"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": [' + ",".join([text] * count) + "]}").encode())
        self.tlparse(self.path("a.json"), self.path("b.json"), "--db", "x.db", "--db-only")
        self.assert_times_are_possible()
        kept, = self.rows("SELECT count(*), sum(duration_ns / 1e3) FROM kernel_run WHERE profile_id = 1")
        self.assertEqual(self.counts("bad_profile_event"), [f"{count - kept[0]} events were left out in all"] * 2)
        for by in ("line", "kernel", "node", "graph", "op"):
            self.tlparse("cost", "x.db", "--by", by)
        self.assertEqual(self.rows("SELECT sum(inclusive_us) > 0 FROM kernel_cost"), [[1]])

    def nsys(self, kernels, epoch=1795375000000000000):
        path = self.path("r.sqlite")
        if os.path.exists(path):
            os.unlink(path)
        connection = sqlite3.connect(path)
        connection.executescript(f"""
            CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT); INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.28.1');
            CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER); INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES ({epoch});
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES (1, 'k'), (2, 'cuLaunchKernel');
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, shortName INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, bytes INTEGER, copyKind INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
            CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER);
            INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (20, 10, 0, 7, 1, 4, 1);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (20, 10, 1, 1, 2);
            INSERT INTO NVTX_EVENTS VALUES (20, 10, 59, 'a', 1), (20, NULL, 34, 'mark', 1), (20, NULL, 59, 'open', 1);""")
        connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, 1, 1)", kernels)
        connection.commit()
        connection.close()
        with open(path, "rb") as file:
            return file.read()

    def test_nsys_export(self):
        largest, smallest = 2 ** 63 - 1, -2 ** 63
        self.ingest("r.sqlite", self.nsys([(100, 350), (350, 100), (largest, smallest), (smallest, largest), (0, largest), (5, None), (1e300, 7), ("x", 7)]))
        self.assertEqual(self.rows("SELECT start_ns - 1795375000000000000, duration_ns FROM kernel_run"), [[100, 250]])
        self.assertEqual(self.rows("SELECT count(*) FROM device_copy UNION ALL SELECT count(*) FROM annotation"), [[0], [0]])
        self.assertEqual(self.counts("bad_profile_event"), [
            f"{count} left out of {table}: an end before the start, or a time out of range" for count, table in (
                ("4 rows", "CUPTI_ACTIVITY_KIND_KERNEL"), ("1 row", "CUPTI_ACTIVITY_KIND_MEMCPY"), ("1 row", "CUPTI_ACTIVITY_KIND_RUNTIME"), ("1 row", "NVTX_EVENTS"))])
        self.assertEqual(self.counts("profile_events_left_out"), [
            "1 row left out of NVTX_EVENTS: marks, or without a text", "3 rows left out of CUPTI_ACTIVITY_KIND_KERNEL: without a start or an end",
            "1 row left out of NVTX_EVENTS: without a start or an end"])
        self.ingest("r.sqlite", self.nsys([(100, 350)], epoch=largest))
        self.assertEqual(self.rows("SELECT start_ns, duration_ns FROM kernel_run"), [[100, 250]])
        self.assertEqual(self.rows("SELECT count(*) FROM import_log WHERE code = 'assumed_clock'"), [[1]])

    def test_recorder_dump(self):
        base = 1795375000000000000
        good = {"process_group": ("0", "default"), "profiling_name": "nccl:all_reduce", "time_created_ns": base, "time_discovered_started_ns": base + 5,
                "time_discovered_completed_ns": base + 9, "duration_ms": 0.5, "timeout_ms": 1000, "is_p2p": False, "state": "completed"}
        changes = [{}, {"time_discovered_completed_ns": base - 1}, {"time_created_ns": -5}, {"time_created_ns": 2 ** 63 - 1}, {"time_created_ns": 2 ** 70},
                   {"duration_ms": float("nan")}, {"duration_ms": float("inf")}, {"duration_ms": -1.0}, {"duration_ms": 1e300}, {"timeout_ms": -7},
                   {"time_created_ns": "9" * 30}, {"time_discovered_started_ns": None, "duration_ms": None, "timeout_ms": -1}]
        entries = [dict(good, collective_seq_id=number + 1, record_id=number, **change) for number, change in enumerate(changes)]
        dump = {"version": "2.10", "pg_config": {}, "pg_status": {}, "entries": entries}
        message = "10 of the entries' times are impossible (not a time, negative, or an end before the begin) and left out of the collectives"
        for name, data in (("fr_trace_rank_0", pickle.dumps(dump, 2)), ("fr_trace_rank_0.json", json.dumps(dump).replace(": NaN", ": -2").replace(": Infinity", ": 1e30").encode())):
            self.ingest(name, data)
            self.assertEqual(self.counts("bad_profile_event"), [message])
            self.assertEqual(self.counts("bad_runtime_file"), [])
            self.assertEqual(self.rows("SELECT count(*), count(start_ns), count(end_ns) FROM collective_run"), [[len(changes), 8, 11]])
            self.assertEqual(self.rows("SELECT count(duration_ms), count(timeout_ms) FROM recorder_entry"), [[7, 10]])
            self.assertEqual(self.rows("SELECT start_ns, end_ns FROM collective_run WHERE sequence_number = 1"), [[base, base + 9]])

    def test_kernel_information_and_tritonparse(self):
        self.ingest("kernel_information.json", json.dumps({f"k:{'9' * 30}": {"stack_traces": [], "post_grad_nodes": ["a"]},
                                                           "k:2": {"stack_traces": [], "post_grad_nodes": ["a"]}}).encode())
        self.assertEqual(self.rows("SELECT name, debug_handle FROM package_model_kernel ORDER BY name"), [["k", 2], ["k:" + "9" * 30, None]])
        lines = [{"event_type": "compilation", "pid": 7, "payload": {"metadata": {"name": "k", "hash": "h", "num_warps": 2 ** 70}, "times": {"x": -1}}},
                 {"event_type": "launch", "pid": 7, "name": "k", "stream": 2 ** 70, "compilation_metadata": {"hash": "h"}}]
        self.ingest("t.ndjson", ("\n".join(map(json.dumps, lines)).replace(": -1", ": 1e999") + "\n").encode())
        self.assertEqual(self.rows("SELECT num_warps, times FROM triton_compilation"), [[None, '{"x":null}']])
        self.assertEqual(self.rows("SELECT name, stream FROM triton_launch"), [["k", None]])

    def test_libtrace(self):
        base = 1_700_000_000_000_000
        artifacts = {
            "libtrace_graph_execution": {"ordinal": 0, "compile_id": "0/0", "time_us": base, "duration_ns": -5},
            "libtrace_measured_runtime": {"clock": "cpu", "ops": [{"name": "a", "count": 1, "total_ns": -1.0, "min_ns": 1e300, "max_ns": 3.5}]},
            "libtrace_collective_log": [{"op": "all_reduce", "start_us": base, "duration_ns": -1.5, "process_group": "0", "sequence_number": 1}],
            "libtrace_cuda_activity": {"lost_count": 0, "clock": [{"cupti_ns": 0, "epoch_ns": base * 1000, "error_ns": 1}], "activities": [
                {"kind": "kernel", "name": "k", "device": 0, "stream": 7, "start_ns": 10, "duration_ns": duration} for duration in (7000, -7000, 2 ** 62)]}}
        lines = []
        for name, payload in artifacts.items():
            lines.append('V1121 08:30:01.000000 4242 a.cc:1] ' + json.dumps({"artifact": {"name": name, "encoding": "json"}, "has_payload": "md5"}))
            lines.append("\t" + json.dumps(payload))
        self.ingest("dedicated_log_torch_trace_abcdefgh.log", ("\n".join(lines) + "\n").encode())
        self.assertEqual(self.rows("SELECT duration_us FROM kernel_run"), [[7.0]])
        self.assertEqual(self.rows("SELECT duration_ns FROM gpu_activity ORDER BY ordinal"), [[7000], [None], [None]])
        self.assertEqual(self.rows("SELECT total_ns, min_ns, max_ns FROM measured_op"), [[None, None, 3.5]])
        self.assertEqual(self.rows("SELECT message, count(*) FROM import_log WHERE code = 'bad_payload' GROUP BY 1 ORDER BY 1"), [
            ["member 'duration_ns' is not a duration", 4], ["member 'min_ns' is not a duration", 1], ["member 'total_ns' is not a duration", 1]])


if __name__ == "__main__":
    unittest.main()
