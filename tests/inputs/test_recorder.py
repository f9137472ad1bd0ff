#!/usr/bin/env python3
"""Flight-recorder dumps end to end: rows as Python's pickle reads them, joins counted by another program, and what a damaged or hostile
dump does."""

import collections
import glob
import json
import os
import pickle
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import profiles  # noqa: E402
from recorder import RUNS, RecorderTest, output_codes  # noqa: E402


class Rows(RecorderTest):
    def test_entries_are_those_that_python_reads(self):
        database = self.ingest(self.part("fr_healthy", "fr_trace_rank_?", logs=False))
        for rank in range(4):
            with open(os.path.join(RUNS, "fr_healthy", f"fr_trace_rank_{rank}"), "rb") as file:
                dump = pickle.load(file)
            mine = self.rows(database, """SELECT e.recorder_id, e.pg_id, e.group_name, e.group_desc, e.collective_seq_id, e.p2p_seq_id, e.op_id,
                e.profiling_name, e.is_p2p, e.is_retired, e.input_sizes, e.input_dtypes, e.output_sizes, e.output_dtypes, e.recorded_state,
                e.time_created_ns, e.time_discovered_started_ns, e.time_discovered_completed_ns, e.duration_ms, e.timeout_ms, e.thread_id,
                e.thread_name, e.extra FROM recorder_entry e WHERE e.rank = ? ORDER BY e.ordinal""", rank)
            theirs = [[e["record_id"], e["pg_id"], *e["process_group"], e["collective_seq_id"], e["p2p_seq_id"], e["op_id"], e["profiling_name"],
                       int(e["is_p2p"]), int(e["retired"]), *(json.dumps(e[k], separators=(",", ":")) for k in (
                           "input_sizes", "input_dtypes", "output_sizes", "output_dtypes")), e["state"], e["time_created_ns"],
                       e["time_discovered_started_ns"], e["time_discovered_completed_ns"], e.get("duration_ms"), e["timeout_ms"], e["thread_id"],
                       e["thread_name"], None] for e in dump["entries"]]
            self.assertEqual(theirs, mine)
            frames = self.rows(database, """WITH RECURSIVE f(entry, id, depth) AS (SELECT ordinal, stack_id, 0 FROM recorder_entry WHERE rank = ?
                UNION ALL SELECT f.entry, s.parent_id, depth + 1 FROM f JOIN stack_frame s ON s.id = f.id WHERE s.parent_id IS NOT NULL)
                SELECT f.entry, s.file, s.line, s.function FROM f JOIN stack_frame s ON s.id = f.id ORDER BY f.entry, f.depth""", rank)
            self.assertEqual([[i, x["filename"], x["line"], x["name"]] for i, e in enumerate(dump["entries"]) for x in e["frames"]], frames)

    def test_json_says_the_same_but_for_frames(self):
        # Not is_retired: works are retired asynchronously, and one was between the two dumps.
        columns = """recorder_id, group_name, collective_seq_id, op_id, profiling_name, is_p2p, input_sizes, output_dtypes, recorded_state,
            time_created_ns, time_discovered_started_ns, timeout_ms, thread_id"""
        one = self.ingest(self.part("fr_healthy", "fr_trace_rank_?", logs=False), name="pickle.db")
        two = self.ingest(self.part("fr_healthy", "fr_trace_rank_?.json", logs=False), name="json.db")
        sql = f"SELECT rank, {columns} FROM recorder_entry ORDER BY rank, ordinal"
        self.assertEqual(self.rows(one, sql), self.rows(two, sql))
        self.assertEqual([[60]], self.rows(two, "SELECT count(*) FROM recorder_entry WHERE stack_id IS NULL"))

    def test_every_entry_with_a_frame_of_generated_code_is_joined(self):
        for scenario, pattern in (("fr_healthy", "fr_trace_rank_?"), ("fr_late", "fr_*_rank_?"), ("fr_wrong_op", "fr_*_rank_?"), ("p_ddp", "fr_*_rank_?")):
            if not os.path.isdir(os.path.join(RUNS, scenario)):
                continue
            database = self.ingest(self.part(scenario, pattern), name=scenario + ".db")
            expected = {}
            for path in glob.glob(os.path.join(RUNS, scenario, pattern)):
                rank = int(path.rsplit("_", 1)[1])
                codes = output_codes(glob.glob(os.path.join(RUNS, scenario, f"*_rank_{rank}_*.log.zst"))[0])
                with open(path, "rb") as file:
                    dump = pickle.load(file)
                for ordinal, entry in enumerate(dump["entries"]):
                    hit = next(((x["filename"], x["line"]) for x in entry["frames"] if x["filename"] in codes), None)
                    if hit:
                        self.assertIn("_c10d_functional", codes[hit[0]][hit[1] - 1])
                        user = next(x for x in entry["frames"] if "/next-inputs/" in x["filename"])
                        expected[(os.path.basename(path), ordinal)] = (hit[0], hit[1], user["filename"], user["line"])
            found = {(os.path.basename(path), ordinal): (code, code_line, file, line) for path, ordinal, code, code_line, file, line in self.rows(
                database, """SELECT p.path, e.ordinal, o.path, c.code_line, c.file, c.line FROM collective_run c JOIN recorder_entry e ON e.id = c.entry_id
                JOIN profile p ON p.id = c.profile_id JOIN graph g ON g.id = c.graph_id JOIN output_code o ON o.record_id = g.code_record_id
                WHERE c.join_key = 'J1'""")}
            self.assertEqual(expected, found, scenario)
            self.assertEqual(scenario == "p_ddp", not found)  # DDP issues its collectives eagerly
            self.assertEqual([[0]], self.rows(database, "SELECT count(*) FROM collective_run WHERE join_key IS NULL AND join_note IS NULL"))

    def test_without_frames_order_tells_the_same_graphs(self):
        sql = """SELECT c.rank, c.group_name, c.sequence_number, c.graph_id, c.code_line, c.reduce_op FROM collective_run c
            WHERE c.graph_id IS NOT NULL ORDER BY 1, 2, 3"""
        by_frames = self.ingest(self.part("fr_healthy", "fr_trace_rank_?"), name="frames.db")
        by_order = self.ingest(self.part("fr_healthy", "fr_trace_rank_?.json"), name="order.db")
        self.assertEqual([["J2", 32]], self.rows(by_order, "SELECT join_key, count(*) FROM collective_run WHERE join_key IS NOT NULL GROUP BY 1"))
        self.assertEqual(self.rows(by_frames, sql), self.rows(by_order, sql))

    def test_dumps_of_one_rank_are_one_collective_each(self):
        database = self.ingest(os.path.join(RUNS, "fr_late"))
        # Four dumps of each rank, in two forms and of two moments: 15 collectives a rank.
        self.assertEqual([[rank, 15] for rank in range(4)], self.rows(
            database, "SELECT rank, count(*) FROM collective_run WHERE peer_id IS NULL AND entry_id IS NOT NULL GROUP BY 1 ORDER BY 1"))
        self.assertEqual([["max", 8], ["sum", 16]], self.rows(
            database, "SELECT reduce_op, count(*) FROM collective_run WHERE peer_id IS NULL AND reduce_op IS NOT NULL GROUP BY 1 ORDER BY 1"))

    def test_slices_of_a_profile_are_the_entries_of_the_dump(self):
        database = self.ingest(os.path.join(RUNS, "p_ddp"))
        for rank in range(2):
            profile = glob.glob(os.path.join(RUNS, "p_ddp", f"steps.rank{rank}.pt.trace.json*"))[0]
            events = profiles.trace(profile)
            slices = [(int(events["baseTimeNanoseconds"]) / 1e3 + e["ts"], e["dur"]) for e in events["traceEvents"]
                      if e.get("ph") == "X" and e.get("name") == "c10d::allreduce_"]
            with open(os.path.join(RUNS, "p_ddp", f"fr_trace_rank_{rank}"), "rb") as file:
                created = [e["time_created_ns"] / 1e3 for e in pickle.load(file)["entries"] if e["profiling_name"] == "gloo:all_reduce"]
            expected = [sum(start <= time <= start + duration for time in created) for start, duration in slices]
            self.assertEqual([1] * 15, expected)
            self.assertEqual([[15, 15]], self.rows(database, """SELECT count(*), count(DISTINCT c.peer_id) FROM collective_run c
                JOIN collective_run e ON e.id = c.peer_id WHERE c.rank = ? AND c.entry_id IS NULL AND c.join_key = 'K8' AND
                e.start_ns BETWEEN c.start_ns AND c.end_ns""", rank))

    def test_a_dump_without_a_rank_in_its_name(self):
        path = self.path("dump")
        shutil.copy(os.path.join(RUNS, "fr_healthy", "fr_trace_rank_0"), path)
        database = self.ingest(path)
        self.assertEqual([["unknown_rank"]], self.rows(database, "SELECT code FROM import_log WHERE code = 'unknown_rank'"))
        self.assertEqual([[None]], self.rows(database, "SELECT DISTINCT rank FROM collective_run"))

    def test_the_same_dumps_again_change_nothing(self):
        folder = self.part("fr_healthy", "fr_trace_rank_?")
        database = self.ingest(folder)
        sql = "SELECT * FROM collective_run ORDER BY id"
        before = self.rows(database, sql)
        self.ingest(folder)
        self.assertEqual(before, self.rows(database, sql))


class Damage(RecorderTest):
    def dump(self, data, name="fr_trace_rank_0"):
        return self.write(name, data)

    def whole(self, protocol=2, entries=15):
        with open(os.path.join(RUNS, "fr_healthy", "fr_trace_rank_0"), "rb") as file:
            dump = pickle.load(file)
        dump["entries"] = dump["entries"][:entries]
        return pickle.dumps(dump, protocol)

    def test_every_protocol(self):
        for protocol in (2, 3, 4, 5):
            database = self.ingest(self.dump(self.whole(protocol)), name=f"{protocol}.db")
            self.assertEqual([[15]], self.rows(database, "SELECT count(*) FROM recorder_entry"))
            self.assertEqual([], self.rows(database, "SELECT * FROM import_log WHERE severity <> 'info'"))

    def test_cut_files_keep_the_whole_entries(self):
        with open(os.path.join(RUNS, "fr_healthy", "fr_trace_rank_0"), "rb") as file:
            data = file.read()
        counts = []
        for size in (len(data) - 1, len(data) * 3 // 4, len(data) // 2, 600):
            database = self.ingest(self.dump(data[:size]), name=f"{size}.db")
            count, complete = self.rows(database, "SELECT count(*), count(time_created_ns) FROM recorder_entry")[0]
            self.assertEqual(count, complete)
            counts.append(count)
            self.assertEqual([["cut_profile"]], self.rows(database, "SELECT code FROM import_log WHERE severity = 'error'"))
        self.assertEqual(15, counts[0])
        self.assertEqual(sorted(counts, reverse=True), counts)
        self.assertGreater(counts[1], counts[2])

    def test_cut_json(self):
        with open(os.path.join(RUNS, "fr_healthy", "fr_trace_rank_0.json"), "rb") as file:
            data = file.read()
        database = self.ingest(self.dump(data[:len(data) // 2], "fr_trace_rank_0.json"))
        self.assertLess(3, self.rows(database, "SELECT count(*) FROM recorder_entry WHERE thread_id IS NOT NULL")[0][0])
        self.assertEqual([["cut_profile"]], self.rows(database, "SELECT code FROM import_log WHERE severity = 'error'"))

    def test_json_without_its_entries(self):
        with open(os.path.join(RUNS, "fr_healthy", "fr_trace_rank_0.json"), encoding="utf-8") as file:
            dump = json.load(file)

        def severities(name, members):
            database = self.ingest(self.dump(json.dumps(members).encode(), name + "_rank_0.json"), name=name + ".db")
            return self.rows(database, "SELECT code, severity FROM import_log WHERE profile_id IS NOT NULL")
        lost = {"entri~s" if key == "entries" else key: value for key, value in dump.items()}
        self.assertEqual([["bad_runtime_file", "error"]], severities("lost", lost))
        for left_out in ("pg_config", "pg_status", "version"):
            self.assertEqual([["bad_runtime_file", "error"]], severities(left_out, {key: value for key, value in lost.items() if key != left_out}))
        few = {key: value for key, value in lost.items() if key in ("version", "comm_lib_version")}
        self.assertEqual([["bad_runtime_file", "error"]], severities("few", few))
        # A dump of a process that issued nothing has no list.
        idle = {group: {**status, "last_enqueued_collective": "-1"} for group, status in dump["pg_status"].items()}
        del lost["entri~s"]
        self.assertEqual([], severities("idle", {**lost, "pg_status": idle}))

    def test_every_file_that_is_left_out_has_a_row(self):
        folder = self.part("fr_healthy", "fr_trace_rank_0")
        for name, data in (("other.json", b'{"a": 1}'), ("list.json", b"[]"), ("empty.json", b""), ("other_rank_1", pickle.dumps({"a": 1}, 2)), ("words", b"\x80")):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        names = {os.path.basename(path) for path, in self.rows(self.ingest(folder), "SELECT coalesce(i.path, f.path) FROM import_log i LEFT JOIN log_file f ON f.id = i.log_file_id WHERE code IN ("
                                                                                    "'skipped_file', 'log_without_records')")}
        self.assertEqual({"other.json", "list.json", "empty.json", "other_rank_1", "words"}, names)

    def test_a_pickle_that_runs_code_is_refused(self):
        witness = self.path("was here")

        class Evil:
            def __reduce__(self):
                return (os.system, (f"touch '{witness}'",))
        dump = {"version": "2.10", "pg_config": {}, "pg_status": {}, "entries": [{"record_id": 0, "profiling_name": "nccl:all_reduce"}, Evil()]}
        database = self.ingest(self.dump(pickle.dumps(dump, 2)))
        self.assertFalse(os.path.exists(witness))
        self.assertEqual([["refused_pickle"]], self.rows(database, "SELECT code FROM import_log WHERE severity = 'error'"))
        self.assertEqual([[0]], self.rows(database, "SELECT recorder_id FROM recorder_entry"))

    def test_a_pickle_that_begins_with_another_type_is_refused_too(self):
        dump = collections.OrderedDict(version="2.10", pg_config={}, pg_status={}, entries=[])
        for protocol in (2, 4):
            database = self.ingest(self.dump(pickle.dumps(dump, protocol)), name=f"{protocol}.db")
            self.assertEqual([["refused_pickle"]], self.rows(database, "SELECT code FROM import_log WHERE severity = 'error'"), protocol)

    def test_a_flipped_byte_is_told_with_what_was_kept(self):
        data = bytearray(self.whole())
        at = data.rindex(b"gloo:") - 5
        self.assertEqual(ord("X"), data[at])
        data[at] = ord("u")
        database = self.ingest(self.dump(bytes(data)))
        kept, = self.rows(database, "SELECT count(*) FROM recorder_entry")[0]
        self.assertGreater(kept, 3)
        code, offset, message = self.rows(database, "SELECT code, byte_offset, message FROM import_log WHERE severity = 'error'")[0]
        self.assertEqual(("bad_runtime_file", at), (code, offset))
        self.assertRegex(message, r"^the pickle is damaged here or before: opcode 'u' 0x75: .*; %d entries before it were kept$" % kept)

    def test_notes_of_a_dump_without_frames(self):
        folder = self.part("fr_healthy", "fr_trace_rank_0*")
        notes = self.rows(self.ingest(folder), """SELECT DISTINCT p.metadata ->> '$.form', c.join_note FROM collective_run c JOIN profile p ON p.id = c.profile_id
            WHERE c.join_key IS NULL ORDER BY 1 DESC""")
        outside = "issued outside compiled graphs: "
        self.assertEqual([["pickle", outside + "no frame is a line of this process's generated code"],
                          ["json", outside + "this dump has no frames, and in another dump of the rank no frame of this entry is a line of the process's generated code"]],
                         notes)
        shutil.copy(os.path.join(RUNS, "fr_healthy", "fr_trace_rank_0.json"), self.path("mydump"))
        self.assertEqual([["the file names no rank and has no frames"]], self.rows(self.ingest(self.path("mydump"), name="unnamed.db"), "SELECT process_note FROM profile"))

    def test_odd_values_stay_rows(self):
        entries = [{}, {"record_id": "x", "process_group": 7, "frames": [1, {"filename": None}], "input_sizes": {"a": [[]]}, "later_field": [1.5]},
                   {"process_group": ("\x1b[31m'); DROP TABLE profile;--", "<script>"), "profiling_name": "nccl:\ud800"[:5], "collective_seq_id": 2**70,
                    "time_created_ns": -5, "state": 4, "retired": 1}, 5]
        database = self.ingest(self.dump(pickle.dumps({"version": "3.1", "pg_config": {}, "entries": entries}, 4)))
        self.assertEqual([[3]], self.rows(database, "SELECT count(*) FROM recorder_entry"))
        self.assertEqual([['{"later_field":[1.5]}']], self.rows(database, "SELECT extra FROM recorder_entry WHERE extra IS NOT NULL"))
        codes = {code for code, in self.rows(database, "SELECT code FROM import_log")}
        self.assertTrue({"assumed_format", "bad_runtime_file"} <= codes, codes)

    def test_ranks_come_from_names(self):
        for name, rank in (("comm_lib_trace_rank_12", 12), ("nccl_trace_rank_3.json", 3), ("dump-7", 7), ("fr_trace_rank_5.pickle", 5), ("mydump", None)):
            database = self.ingest(self.dump(self.whole(), name), name=f"n{name}.db")
            self.assertEqual([[rank]], self.rows(database, "SELECT rank FROM profile"), name)


if __name__ == "__main__":
    unittest.main()
