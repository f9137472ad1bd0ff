#!/usr/bin/env python3
"""A rank that the others wait for again and again: in sends, receives and collectives, by made profiles; in collectives and barriers, by planted dumps."""

import json
import os
import unittest

import profiles
from recorder import RecorderTest

SECOND_NS = 1_000_000_000


class Collectives(RecorderTest):
    def delays(self, compiles=False, backward=False, late_s=(0, 0.45, 0.45, 0.45, 0.45, 0.45), change_entries=None, compiled_after_us=10):
        """Rank 3 comes late to the calls, to five of six by 0.45 s. Rank 0 compiles for 16 s between the first two, if `compiles`: all wait for it.
        `backward`: it is the backward of a forward that was compiled long before."""
        def change(rank, dump):
            usual, entries = [one for one in dump["entries"] if one["process_group"][0] == "1"][0], []
            for step, late in enumerate(late_s):
                late_ns = int(late * SECOND_NS) if rank == 3 else 0
                at_ns = self.first_ns + (step + (16 if step > 0 else 0)) * SECOND_NS + late_ns + (3 - rank) * 1_000_000
                entries.append(dict(usual, record_id=step, collective_seq_id=step + 1, time_created_ns=at_ns))
            dump["entries"] = change_entries(entries) if change_entries else entries
        self.first_ns = 1_763_000_000 * SECOND_NS
        self.planted(change, logs=False)
        folder, = [self.path(name) for name in os.listdir(self.folder) if name.startswith("planted") and not name.endswith((".db", ".out"))]
        for rank in range(4):
            done = {"co_name": "f", "co_filename": "/u/m.py", "co_firstlineno": 1, "compile_id": "0/0", "frame_key": "1",
                    "start_time_us": self.first_ns // 1000 + (-99_000_000 if backward else compiled_after_us), "duration_us": 15_900_000 if rank == 0 and compiles else 20_000}
            later = {**done, "start_time_us": self.first_ns // 1000 + 10, "duration_us": 15_900_000}
            ids = {"rank": rank, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}
            with open(os.path.join(folder, f"dedicated_log_torch_trace_rank_{rank}_abcdefgh.log"), "w", encoding="utf-8") as file:
                backwards = [{"bwd_compilation_metrics": later}] if rank == 0 and backward else []
                for metadata in ({"dynamo_start": {"stack": []}}, {"compilation_metrics": done}, *backwards):
                    file.write(f"V1113 02:13:20.000000 {4000 + rank} torch/_dynamo/convert_frame.py:1] {json.dumps({**metadata, **ids})}\n")
        return [one for one in self.answer("findings", self.ingest(folder, name="delays.db"))["findings"] if one["kind"] == "straggler"]

    def test_time_in_which_another_rank_compiled_is_no_part_of_the_steady_time(self):
        finding, = self.delays(True)
        self.assertEqual([3], finding["ranks"])
        self.assertRegex(finding["title"], r"^Ranks 0-2 wait for rank 3: it came last to 5 of 6 collectives of group dp \(1\), 0\.45 s after the others")
        self.again_from_nothing()
        self.assertEqual([], self.delays())

    def test_start_up_before_the_first_compile_is_no_part_of_the_steady_time(self):
        """All ranks import what they compile with for 15.9 s after their first call; nobody compiles for long."""
        finding, = self.delays(compiled_after_us=15_900_000)
        self.assertEqual([3], finding["ranks"])

    def again(self, late_s):
        self.again_from_nothing()
        return self.delays(True, late_s=late_s)

    def test_delays_of_one_length_are_steady_with_short_ones_beside_them(self):
        """And whatever the longest is. Those of a busy machine are of any length."""
        finding, = self.delays(True, late_s=(0, 0.45, 0.45, 0.45, 0.45, 0.1, 0.1, 0.1))
        self.assertEqual([3], finding["ranks"])
        finding, = self.again((0, 0.9, 0.45, 0.4, 0.45, 0.1))
        self.assertEqual([3], finding["ranks"])
        self.assertEqual([], self.again((0, 1.6, 0.8, 0.4, 0.2, 0.1)))

    def test_calls_that_are_waited_for_at_the_same_time_count_once(self):
        """Two at once, as buckets of gradients."""
        def twice(entries):
            both = [dict(one, time_created_ns=one["time_created_ns"] + more) for one in entries for more in (0, 1_000_000)]
            return [dict(one, record_id=number, collective_seq_id=number + 1) for number, one in enumerate(both)]
        finding, = self.delays(True, change_entries=twice)
        self.assertRegex(finding["title"], r"it came last to 10 of 12 collectives of group dp \(1\), 0\.45 s after the others, 2\.2. s in all as they overlap$")

    def test_a_rank_that_waits_in_another_group_meanwhile_is_not_blamed(self):
        """Rank 1 comes late to the calls with rank 2, as it waits for rank 0 in those before."""
        def change(rank, dump):
            usual, entries = [one for one in dump["entries"] if one["process_group"][0] == "1"][0], []
            for step in range(8):
                at_ns = 1_763_000_000 * SECOND_NS + step * SECOND_NS
                for number, group, members, late_ns in ((0, "tp", (0, 1), 400_000_000 * (rank == 0 and step > 0)), (1, "dp", (1, 2), 400_000_000 * (rank == 1 and step > 0))):
                    if rank in members:
                        entries.append(dict(usual, record_id=2 * step + number, collective_seq_id=step + 1, process_group=[group, group],
                                            time_created_ns=at_ns + late_ns + (number + rank) * 1_000_000))
            dump["entries"] = entries
        self.planted(change, logs=False, ranks=3)
        folder, = [self.path(name) for name in os.listdir(self.folder) if name.startswith("planted") and not name.endswith((".db", ".out"))]
        finding, = [one for one in self.answer("findings", self.ingest(folder, name="groups.db"))["findings"] if one["kind"] == "straggler"]
        self.assertRegex(finding["title"], "^Rank 1 waits for rank 0: it came last to 7 of 8 collectives of group tp")

    def test_the_jitter_of_a_busy_machine_is_none(self):
        """One rank is last in four of six calls and by far in one, the others as long in the others."""
        self.assertEqual([], self.jitter((0.1, 0.02, 0.021, 0.02, 0, 0, 0.02, 0.02, 0, 0, 0.02, 0.02), other_s=0.012))
        self.again_from_nothing()
        self.assertEqual([3], [one["ranks"][0] for one in self.jitter((0.1, 0.05, 0.051, 0.05, 0, 0, 0.05, 0.05, 0, 0, 0.05, 0.05), other_s=0.012)])

    def jitter(self, late_s, other_s):
        def change(rank, dump):
            usual, entries, at_ns = [one for one in dump["entries"] if one["process_group"][0] == "1"][0], [], 1_763_000_000 * SECOND_NS
            for step, late in enumerate(late_s):
                own = late if rank == 3 else other_s if rank == step % 3 and not late else 0
                entries.append(dict(usual, record_id=step, collective_seq_id=step + 1, time_created_ns=at_ns + int(own * SECOND_NS) + rank * 1000))
                at_ns += SECOND_NS // 10
            dump["entries"] = entries
        self.planted(change, logs=False)
        folder, = [self.path(name) for name in os.listdir(self.folder) if name.startswith("planted") and not name.endswith((".db", ".out"))]
        return [one for one in self.answer("findings", self.ingest(folder, name="jitter.db"))["findings"] if one["kind"] == "straggler"]

    def test_a_rank_that_is_always_last_at_one_line_is_named(self):
        """Its delays are no longer than some of the others at another line, but no chance makes it last in all of ten steps."""
        def change(rank, dump):
            usual, entries = [one for one in dump["entries"] if one["process_group"][0] == "1"][0], []
            for step in range(10):
                for line, late_ms in ((10, 12 + step if rank == 3 else 0), (20, 8 if rank == step % 4 else 0)):
                    at_ns = 1_763_000_000 * SECOND_NS + step * SECOND_NS // 10 + line * 3_000_000
                    entries.append(dict(usual, record_id=len(entries), collective_seq_id=len(entries) + 1, time_created_ns=at_ns + late_ms * 1_000_000 + rank * 1000,
                                        frames=[{"name": "step", "filename": "/u/train.py", "line": line}]))
            dump["entries"] = entries
        self.planted(change, logs=False)
        folder, = [self.path(name) for name in os.listdir(self.folder) if name.startswith("planted") and not name.endswith((".db", ".out"))]
        finding, = [one for one in self.answer("findings", self.ingest(folder, name="line.db"))["findings"] if one["kind"] == "straggler"]
        self.assertEqual(([3], 10), (finding["ranks"], finding["place"]["line"]))

    def again_from_nothing(self):
        for name in os.listdir(self.folder):
            os.rename(self.path(name), self.path("old_" + name))

    def barriers(self, late_s, others=()):
        def change(entries):
            barriers = [dict(one, profiling_name="nccl:barrier", input_sizes=[[1]], output_sizes=[[1]]) for one in entries]
            return [*barriers, *(dict(entries[0], record_id=100 + number, collective_seq_id=1 + number, process_group=["2", "mp"],
                                      time_created_ns=entries[0]["time_created_ns"] + at) for number, at in enumerate(others))]
        return self.delays(late_s=late_s, change_entries=change)

    def test_a_rank_that_is_late_to_barriers_is_a_note(self):
        """Its clock is not ahead where it is first in collectives of another group."""
        finding, = self.barriers((0, 0.7, 0.7, 0.7, 0.7, 0.7))
        self.assertEqual(("note", [3]), (finding["severity"], finding["ranks"]))
        self.assertRegex(finding["title"], r"^Ranks 0-2 wait for rank 3: it came last to 5 of 6 barriers of group dp \(1\), 0\.70 s after the others")
        self.assertIn("whether it is by design that rank 3 has more to do before them is not in the inputs", finding["detail"])

    def test_a_backward_is_compiled_when_the_log_says(self):
        finding, = self.delays(backward=True)
        self.assertEqual([3], finding["ranks"])


class Receives(profiles.InputTest):
    def pipeline(self, work_us, ranks=2, steps=4, annotated=("load_batch", 0), hosts=("vm",), calls=("gloo:recv",), idle=(), op="aten::mm", function=None):
        """In each step one rank after another works for work_us[rank], the others are in `calls`, by rank; then each has 1 ms of its own. Work is
        an op, but for the ranks of `idle`; of those it may be a Python function."""
        folder = self.path(f"p{len(os.listdir(self.folder))}")
        os.mkdir(folder)
        for rank in range(ranks):
            events, at = [], 1_000.0
            events.append(self.event("cpu_op", "aten::add", at, 10.0))
            for _ in range(steps):
                for stage in range(ranks):
                    is_own = stage == rank
                    if is_own and annotated and annotated[1] == rank:
                        events.append(self.event("user_annotation", annotated[0], at, work_us[stage] * 0.9))
                    if is_own and rank not in idle:
                        events.append(self.event("cpu_op", op, at, work_us[stage]))
                    if is_own and rank in idle and function:
                        events.append(self.event("python_function", "/u/train.py(3): main", at, work_us[stage], CallFrom="/u/train.py:90"))
                        events.append(self.event("python_function", function, at, work_us[stage] * 0.8, CallFrom="/u/train.py:12"))
                    if not is_own:
                        events.append(self.event("user_annotation", calls[rank % len(calls)], at, work_us[stage]))
                    at += work_us[stage]
                at += 1_000.0
            events.append(self.event("cpu_op", "aten::add", at, 10.0))
            trace = {"schemaVersion": 1, "baseTimeNanoseconds": 1_790_857_026_000_000_000, "host_name": hosts[rank % len(hosts)],
                     "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": ranks}, "traceEvents": events}
            with open(os.path.join(folder, f"profile_rank{rank}.json"), "w", encoding="utf-8") as file:
                json.dump(trace, file)
        return self.answer("findings", self.ingest(folder, name=os.path.basename(folder) + ".db"))["findings"]

    def event(self, category, name, start_us, duration_us, **args):
        return {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": 7, "ts": start_us, "dur": duration_us, "args": args}

    def test_the_rank_whose_loader_is_slow_is_named(self):
        finding, = self.pipeline([400_000.0, 50_000.0])
        self.assertEqual(("straggler", "warning", [0]), (finding["kind"], finding["severity"], finding["ranks"]))
        self.assertEqual("Rank 1 waits in receives for rank 0: 4 times, 0.40 s at the median, 1.60 s in all; 1.44 s of that it was in load_batch",
                         finding["title"])
        self.assertEqual(8, len(self.rows(self.database, finding["query"])))

    def test_profiles_alone_show_the_rank_that_others_wait_for_in_collectives(self):
        finding, = self.pipeline([400_000.0, 50_000.0, 50_000.0], ranks=3, calls=("gloo:all_reduce",))
        self.assertEqual(("straggler", "warning", [0]), (finding["kind"], finding["severity"], finding["ranks"]))
        self.assertEqual("Ranks 1,2 wait in collectives for rank 0: 4 times, 0.40 s at the median, 1.60 s in all; 1.44 s of that it was in load_batch", finding["title"])
        self.assertNotIn("pipeline", finding["detail"])

    def test_a_send_waits_until_its_data_are_received(self):
        """One peer sends to a server that receives from another, as with a parameter server."""
        finding, = self.pipeline([400_000.0, 1_000.0, 1_000.0], ranks=3, calls=("gloo:recv", "gloo:send", "gloo:recv"))
        self.assertRegex(finding["title"], r"^Ranks 1,2 wait in receives and sends for rank 0: 4 times, 0\.40 s at the median")

    def test_barriers_and_equal_ranks_are_none(self):
        self.assertEqual([], self.pipeline([400_000.0, 50_000.0, 50_000.0], ranks=3, calls=("gloo:barrier",)))
        self.assertEqual([], self.pipeline([50_000.0, 60_000.0, 50_000.0], ranks=3, calls=("gloo:all_reduce",)))

    def test_of_four_stages_all_wait_for_one(self):
        finding, = self.pipeline([50_000.0, 30_000.0, 500_000.0, 30_000.0], ranks=4, annotated=("fetch", 2))
        self.assertEqual([2], finding["ranks"])
        self.assertRegex(finding["title"], r"^Ranks 0,1,3 wait in receives for rank 2: 4 times, .* it was in fetch$")

    def test_stages_of_other_lengths_are_no_fault(self):
        """A stage that is long by its own work, and a loader that takes a small part of it: a note."""
        finding, = self.pipeline([400_000.0, 50_000.0], annotated=("load_batch", 1))
        self.assertEqual(("straggler", "note", [0]), (finding["kind"], finding["severity"], finding["ranks"]))
        self.assertRegex(finding["title"], r"; 1\.60 s of that it was in aten::mm$")
        self.assertIn("Each stage of a pipeline works while the others wait; this one does for longest", finding["detail"])

    def test_a_rank_that_runs_no_op_is_named(self):
        for calls, waits in ((("gloo:recv",), "receives"), (("gloo:all_reduce",), "collectives")):
            finding, = self.pipeline([50_000.0, 400_000.0, 50_000.0], ranks=3, annotated=(), calls=calls, idle=(1,))
            self.assertEqual(("straggler", "warning", [1]), (finding["kind"], finding["severity"], finding["ranks"]))
            self.assertEqual(f"Ranks 0,2 wait in {waits} for rank 1: 4 times, 0.40 s at the median, 1.60 s in all; 1.60 s of that it was in no op", finding["title"])
            self.assertIn("with_stack=True names the function", finding["try"])

    def test_stacks_name_the_function_that_it_was_in(self):
        """The innermost of the user's code that is half of the time."""
        finding, = self.pipeline([50_000.0, 400_000.0, 50_000.0], ranks=3, annotated=(), calls=("gloo:all_reduce",), idle=(1,),
                                 function="/u/train.py(40): augment")
        self.assertRegex(finding["title"], r"; 1\.60 s of that it was in no op, 1\.28 s in augment \(train\.py:40\)$")
        finding, = self.pipeline([50_000.0, 400_000.0, 50_000.0], ranks=3, annotated=(), calls=("gloo:all_reduce",), idle=(1,),
                                 function="torch/utils/data.py(40): augment")
        self.assertRegex(finding["title"], r", 1\.60 s in main \(train\.py:3\)$")

    def test_of_collectives_the_op_that_takes_longest_is_named(self):
        finding, = self.pipeline([50_000.0, 400_000.0, 50_000.0], ranks=3, annotated=(), calls=("gloo:all_reduce",))
        self.assertEqual("warning", finding["severity"])
        self.assertRegex(finding["title"], r"; 1\.60 s of that it was in aten::mm$")
        finding, = self.pipeline([50_000.0, 400_000.0, 50_000.0], ranks=3, annotated=(), calls=("gloo:all_reduce",), op="bytecode_tracing (dynamo_timed)")
        self.assertRegex(finding["title"], r"; 1\.60 s of that it compiled$")

    def test_a_function_of_autograd_around_a_wait_is_no_work(self):
        """A hook waits inside of it; what runs in no op of PyTorch is no op either."""
        finding, = self.pipeline([50_000.0, 400_000.0, 50_000.0], ranks=3, annotated=(), calls=("gloo:all_reduce",),
                                 op="autograd::engine::evaluate_function: HookBackward")
        self.assertRegex(finding["title"], r"; 1\.60 s of that it was in no op$")

    def test_one_long_delay_is_none(self):
        self.assertEqual([], self.pipeline([400_000.0, 50_000.0], steps=1))

    def test_sends_and_receives_are_counted_by_rank(self):
        folder = self.path("messages")
        os.mkdir(folder)
        for rank, (name, op) in enumerate((("gloo:send", "c10d::send"), ("gloo:recv", "c10d::recv_"))):
            events = [self.event("cpu_op", "aten::add", 0.0, 10.0)]
            for number in range(3):
                events.append(self.event("cpu_op", op, 1_000.0 * number + 100.0, 50.0))
                events.append(self.event("user_annotation", name, 1_000.0 * number + 120.0, 400.0 + rank))
            trace = {"schemaVersion": 1, "baseTimeNanoseconds": 1_790_857_026_000_000_000, "traceEvents": events,
                     "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": 2}}
            with open(os.path.join(folder, f"profile_rank{rank}.json"), "w", encoding="utf-8") as file:
                json.dump(trace, file)
        database = self.ingest(folder, name="messages.db")
        self.assertEqual([{"rank": 0, "sends": 3, "send_ns": 1_200_000, "receives": 0, "receive_ns": None, "without_peer": 3},
                          {"rank": 1, "sends": 0, "send_ns": None, "receives": 3, "receive_ns": 1_203_000, "without_peer": 3}],
                         self.answer("collectives", database)["profiled_messages"])
        self.assertRegex(self.tlparse("collectives", database).stdout, r"(?s)rank  sends  in sends  receives  in receives  without a peer\n +0 +3 +1\.2 ms +0 +3\n +1 +0 +3 +1\.2 ms")

    def test_peers_of_sends_and_receives(self):
        """Recorded with gloo and record_shapes (PyTorch 2.15.0): a pipeline of three ranks, whose rank 1 sleeps; each step rank 0 sends to it
        in a group of the two as well. And two pipelines of two ranks, in groups whose numbers are not the job's."""
        database = self.ingest(os.path.join(profiles.ROOT, "fixtures/inputs/pipeline_peers"), name="peers.db")
        answer = self.answer("collectives", database)
        self.assertEqual([(0, 1, 10, 10), (1, 2, 5, 5)],
                         [(one["from"], one["to"], one["sends"], one["receives"]) for one in answer["profiled_pairs"]])
        self.assertEqual([0, 0, 0], [one["without_peer"] for one in answer["profiled_messages"]])
        for rank, ns in ((1, "receive_ns"), (2, "receive_ns"), (0, "send_ns")):  # of both: what its annotations of Gloo's last
            self.assertEqual(sum(one[ns] for one in answer["profiled_pairs"] if one["to" if ns == "receive_ns" else "from"] == rank),
                             answer["profiled_messages"][rank][ns])
        self.assertEqual([[0, "c10d::send", 1, 0, 5], [0, "c10d::send", 1, 7, 5], [1, "c10d::recv_", 0, 0, 5], [1, "c10d::recv_", 0, 7, 5],
                          [1, "c10d::send", 2, 0, 5], [2, "c10d::recv_", 1, 0, 5]],
                         self.rows(database, "SELECT rank, op, peer_of_group, tag, count(*) FROM collective_run GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"))
        finding, = self.answer("findings", database)["findings"]
        self.assertEqual(("straggler", [1]), (finding["kind"], finding["ranks"]))
        self.assertIn(" Rank 0 sends to rank 1, rank 2 receives from it.", finding["detail"])
        pipelines = self.answer("collectives", self.ingest(os.path.join(profiles.ROOT, "fixtures/inputs/two_pipelines"), name="pairs.db"))
        self.assertEqual([(0, 2, 4, 4), (1, 3, 4, 4)],
                         [(one["from"], one["to"], one["sends"], one["receives"]) for one in pipelines["profiled_pairs"]])

    def test_clocks_of_two_hosts_are_not_compared(self):
        self.assertEqual([], self.pipeline([400_000.0, 50_000.0], hosts=("a", "b")))


if __name__ == "__main__":
    unittest.main()
