#!/usr/bin/env python3
"""What several files of one process say of the same collective: dumps, profiles, and libtrace's records."""

import glob
import json
import os
import pickle
import re
import shutil
import unittest

import profiles
from profiles import harness


class CollectiveJoins(harness.EndToEnd):
    def rows(self, sql):
        return harness.rows(self.path("x.db"), sql)

    def test_what_libtrace_recorded(self):
        folder = os.path.dirname(harness.bundled("libtrace_collectives"))
        self.tlparse(folder, "--db", "x.db", "--db-only")
        expected = []
        for path in glob.glob(os.path.join(folder, "*.log")):
            rank = int(re.search(r"rank_(\d+)", path)[1])
            for record in profiles.records(path):
                if record.name == "libtrace_collective_log":
                    expected += [[rank, c["process_group"], c["sequence_number"], c["backend"] + ":" + c["op"], c["start_us"] * 1000, c.get("compile_id") is not None]
                                 for c in json.loads(record.payload)]
        self.assertEqual(len(expected), 28)
        self.assertEqual(self.rows("SELECT rank, group_name, sequence_number, op, start_ns, join_key IS NOT NULL FROM collective_run ORDER BY 1, 2, 3"), sorted(expected))
        self.assertEqual(self.rows("SELECT count(*) FROM collective_run WHERE (join_key IS NULL) = (join_note IS NULL)"), [[0]])
        self.assertEqual(self.rows("SELECT count(*) FROM issued_collective"), [[len(expected)]])
        # Rank 2 issues the two groups in another order, as its records say.
        first = {rank: [c[1] for c in sorted(expected, key=lambda c: c[4]) if c[0] == rank][0] for rank in range(4)}
        self.assertEqual(first, {0: "data_parallel", 1: "data_parallel", 2: "statistics", 3: "data_parallel"})
        text = " ".join(self.tlparse("collectives", "x.db").stdout.split())
        self.assertIn("rank 2 the other way round", text)
        self.assertIn("Legal with this backend; with NCCL it can be a deadlock", text)  # the records name gloo
        self.assertEqual(self.rows("PRAGMA foreign_key_check"), [])

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_entries_without_frames_have_what_their_slices_have(self):
        os.mkdir(self.path("in"))
        for name in os.listdir(profiles.recorded("p_ddp")):
            if not name.startswith("fr_trace"):
                shutil.copy(profiles.recorded("p_ddp", name), self.path("in", name))
                continue
            with open(profiles.recorded("p_ddp", name), "rb") as file:
                dump = pickle.load(file)
            for entry in dump["entries"]:
                del entry["frames"]  # as in the JSON form
            self.write(f"in/{name}.json", json.dumps(dump).encode())
        self.tlparse(self.path("in"), "--db", "x.db", "--db-only")
        for rank in range(2):
            trace = profiles.trace(glob.glob(profiles.recorded("p_ddp", f"steps.rank{rank}.pt.trace.json*"))[0])
            slices = [e for e in profiles.slices(trace["traceEvents"], "cpu_op") if e["name"] == "c10d::allreduce_"]
            calls = [e for e in profiles.slices(trace["traceEvents"], "cpu_op", "user_annotation") if e["name"].startswith("## Call")]
            # DDP's own: none of them is inside a graph call.
            self.assertFalse([s for s in slices for c in calls if c["tid"] == s["tid"] and c["ts"] <= s["ts"] < c["ts"] + c["dur"]])
            self.assertEqual(self.rows("SELECT count(*) FROM collective_run WHERE entry_id IS NOT NULL AND graph_id IS NULL AND join_key IS NULL AND "
                                       f"join_note = 'its slice in the profile ran outside any graph call' AND rank = {rank}"), [[len(slices)]])
            self.assertEqual(self.rows(f"SELECT count(DISTINCT peer_id) FROM collective_run WHERE entry_id IS NULL AND join_key = 'K8' AND rank = {rank}"), [[len(slices)]])

    def job(self):
        """A recorded log of rank 0 and one entry of its JSON dump, and a profile made here with a call of the first graph around it."""
        os.mkdir(self.path("in"))
        log, = glob.glob(profiles.recorded("fr_healthy", "dedicated_log_torch_trace_rank_0_*"))
        with open(self.path("in", os.path.basename(log).removesuffix(".zst")), "wb") as file:
            file.write(profiles.data(log))
        keys = [json.loads(record.payload)["key"] for record in profiles.records(log) if (record.name or "").startswith("fx_graph_cache_miss")]
        pid = int(re.search(r"(?m)^V\d{4} \S+ (\d+) ", profiles.data(log).decode())[1])
        with open(profiles.recorded("fr_healthy", "fr_trace_rank_0.json"), encoding="utf-8") as file:
            dump = json.load(file)
        entry = next(e for e in dump["entries"] if e["profiling_name"] == "gloo:all_reduce" and e["collective_seq_id"] > 1)
        self.write("in/fr_trace_rank_0.json", json.dumps(dict(dump, entries=[entry])).encode())

        def event(category, name, ts, dur):
            return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": pid, "ts": ts, "dur": dur, "args": {}}
        created = entry["time_created_ns"] // 1000
        trace = {"schemaVersion": 1, "baseTimeNanoseconds": 0, "distributedInfo": {"rank": 0, "world_size": 4},
                 "traceEvents": [event("cpu_op", f"## Call CompiledFxGraph {keys[0]} ##", created - 200, 500), event("cpu_op", "c10d::allreduce_", created - 20, 60)]}
        self.write("in/p.json", json.dumps(trace).encode())
        return keys[0]

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_the_graph_call_of_a_slice_is_that_of_its_entry(self):
        key = self.job()
        for _ in range(2):  # and again, with joins made anew
            self.tlparse(self.path("in"), "--db", "x.db", "--db-only", "--run", "r")
            self.assertEqual(self.rows("""SELECT c.entry_id IS NOT NULL, c.join_key, c.join_note, g.cache_key, c.graph_call_id IS NOT NULL, c.peer_id IS NOT NULL
                FROM collective_run c JOIN graph g ON g.id = c.graph_id ORDER BY 1"""), [[0, "K8", None, key, 1, 1], [1, "J3", None, key, 1, 0]])

    def test_libtrace_beside_a_dump_counts_once(self):
        base = 1_700_000_000_000_000
        lines = []
        for sequence in (1, 2, 3):
            payload = [{"sequence_number": sequence - 1, "op": "all_reduce", "process_group": "0", "group_size": 2, "backend": "gloo", "input_shapes": [[4]],
                        "output_shapes": [[4]], "dtype": "float32", "reduce_op": "sum", "start_us": base + 1000 * sequence, "duration_ns": 5000.0,
                        "collective_seq_id": sequence}]
            lines += ['V1121 08:30:01.000000 4242 a.cc:1] {"artifact": {"name": "libtrace_collective_log", "encoding": "json"}, "rank": 1, "has_payload": "x"}',
                      "\t" + json.dumps(payload)]
        self.write("in/dedicated_log_torch_trace_rank_1_abcdefgh.log", ("\n".join(lines) + "\n").encode())
        entries = [{"record_id": n, "process_group": ["0", "default_pg"], "collective_seq_id": n, "profiling_name": "gloo:all_reduce", "is_p2p": False, "retired": True,
                    "state": "scheduled", "input_sizes": [[4]], "input_dtypes": ["Float"], "time_created_ns": (base + 1000 * n) * 1000 + 7} for n in (1, 2)]
        self.write("in/fr_trace_rank_1.json", json.dumps({"version": "2.10", "pg_config": {}, "pg_status": {}, "entries": entries}).encode())
        self.tlparse(self.path("in"), "--db", "x.db", "--db-only")
        self.assertEqual(self.rows("SELECT sequence_number, entry_id IS NOT NULL, peer_id IS NOT NULL, join_key, reduce_op, end_ns - start_ns FROM collective_run ORDER BY 1, 2"),
                         [[1, 0, 1, "K8", "sum", 5000], [1, 1, 0, None, None, None], [2, 0, 1, "K8", "sum", 5000], [2, 1, 0, None, None, None], [3, 0, 0, None, "sum", 5000]])
        self.assertEqual(self.rows("SELECT c.sequence_number = e.sequence_number FROM collective_run c JOIN collective_run e ON e.id = c.peer_id"), [[1], [1]])


if __name__ == "__main__":
    unittest.main()
