#!/usr/bin/env python3
"""Dumps of a rank that left out or added one call, or ended first, where op and size of all calls agree."""

import os
import pickle
import unittest

from recorder import RecorderTest
from test_messages import entry


class Dumped(RecorderTest):
    def found(self, dumps, groups):
        """`groups`: (description, members) by name."""
        folder = self.path(f"dumps{len(os.listdir(self.folder))}")
        os.mkdir(folder)
        for rank, entries in enumerate(dumps):
            if entries is None:
                continue
            config = {name: {"name": name, "desc": text, "ranks": str(members)} for name, (text, members) in groups.items() if rank in members}
            with open(os.path.join(folder, f"nccl_trace_rank_{rank}"), "wb") as file:
                pickle.dump({"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries}, file, protocol=2)
        return self.answer("findings", self.ingest(folder, name=os.path.basename(folder) + ".db"))["findings"]


class ExtraCalls(Dumped):
    def findings(self, pauses, ranks=(0, 1, 2, 3)):
        """Calls of one line and size, of each rank after the milliseconds of `pauses(rank)`; rank 2 waits in its last one."""
        dumps = []
        for rank in ranks:
            entries, at = [], 0
            for number, pause in enumerate(pauses(rank)):
                at += pause
                entries.append(entry(number, "all_reduce", number + 1, "completed", group=("0", "default_pg"), p2p=False, at=at))
            if rank == 2:
                entries[-1].update(state="started", retired=False, time_discovered_completed_ns=None)
            dumps.append(entries)
        return self.found(dumps, {"0": ("default_pg", list(ranks))})

    def test_calls_of_a_line_that_one_of_two_ranks_has(self):
        """Rank 0 alone looks at a sample after three steps: its gathers pair with those of the next step, until an all_reduce meets one."""
        step = [("all_gather", 35)] * 3 + [("all_reduce", 35)] * 2
        for name, extra, other, title, ranks, line in (
                ("added", [("all_gather", 20)] * 2, [], "Rank 0 issued all_gather #16 at train.py:20, from where rank 1 issues nothing; then rank 0 issued all_gather, "
                 "rank 1 all_reduce: #19 of group default_pg (0)", [0], 20),
                ("branch", [("all_gather", 20)] * 2, [("all_gather", 22)], "Rank 0 issued all_gather, rank 1 all_reduce: #20 of group default_pg (0)", [0, 1], 35)):
            dumps = []
            for calls in (step * 3 + extra + step, step * 3 + other + step):
                entries = [entry(number, op, number + 1, "completed", group=("0", "default_pg"), p2p=False, line=line) for number, (op, line) in enumerate(calls)]
                dumps.append(entries)
            last = int(title.split("#")[-1].split()[0])
            for entries in dumps:
                del entries[last:]
                entries[-1].update(state="started", retired=False, time_discovered_completed_ns=None)
            with self.subTest(name):
                first = self.found(dumps, {"0": ("default_pg", [0, 1])})[0]
                self.assertEqual((title, ranks, line), (first["title"], first["ranks"], first["place"]["line"]))

    def test_a_call_right_after_the_one_before_is_one_more(self):
        finding, = self.findings(lambda rank: [60] * 12 + ([1] if rank == 2 else []) + [60 + rank] * 8)
        self.assertEqual(("collective_divergence", [2], 10), (finding["kind"], finding["ranks"], finding["place"]["line"]))
        self.assertEqual("Rank 2 may have issued all_reduce #13 of group default_pg (0) at train.py:10 once more than ranks 0,1,3: it came 1 ms after #12, "
                         "no other of these calls before 60 ms, and rank 2 waits in #21, which they did not reach", finding["title"])
        plan = self.rows(self.database, "EXPLAIN QUERY PLAN " + finding["query"])
        self.assertTrue(any("INDEX collective_run_by_number" in str(step) for step in plan), plan)

    def test_where_calls_come_in_bursts_none_is(self):
        for pauses in (lambda rank: [60] * 12 + ([1] if rank == 2 else []) + [60] * 4 + [1] + [60] * 3,
                       lambda rank: [60] + ([1] if rank == 2 else []) + [60]):
            finding, = self.findings(pauses)
            self.assertEqual(("collective_not_reached", [0, 1, 3]), (finding["kind"], finding["ranks"]))


class Sides(Dumped):
    def test_where_neither_side_is_odd_the_line_is_the_users(self):
        """As of a barrier of rank 0 in a callback, while the other gathers a loss in a library."""
        library = [{"name": "gather", "filename": "/v/lib/python3.11/site-packages/accelerate/operations.py", "line": 355}]
        for libraries in ((1,), (0,), (0, 1)):
            dumps = []
            for rank, op in enumerate(("barrier", "all_gather")):
                calls = [entry(0, "all_reduce", 1, "completed", group=("0", "default_pg"), p2p=False, at=60), entry(1, op, 2, "started", group=("0", "default_pg"), p2p=False, at=120)]
                calls[1].update(retired=False, time_discovered_completed_ns=None)
                if rank in libraries:
                    calls[1]["frames"] = library
                dumps.append(calls)
            finding = self.found(dumps, {"0": ("default_pg", [0, 1])})[0]
            self.assertEqual(("collective_divergence", [0, 1]), (finding["kind"], finding["ranks"]))
            self.assertEqual(finding["place"]["line"], 355 if len(libraries) == 2 else 10, libraries)

    def test_a_call_of_a_library_is_placed_at_the_line_that_led_there(self):
        """A barrier of rank 0 alone, by a method of accelerate, while the other is in the all_reduce of its next backward."""
        def by_library(name, line, caller, own=()):
            return [*own, {"name": name, "filename": "/v/lib/python3.11/site-packages/accelerate/state.py", "line": line},
                    {"name": "main", "filename": "/u/train.py", "line": caller}, {"name": "<module>", "filename": "/u/train.py", "line": 99}]
        dumps = []
        for rank, (op, frames) in enumerate((("barrier", by_library("wait_for_everyone", 412, 20)), ("all_reduce", by_library("backward", 286, 32)))):
            calls = [entry(number, "all_reduce", number + 1, "completed", group=("0", "default_pg"), p2p=False, at=60) for number in range(3)]
            for one in calls:
                one["frames"] = by_library("backward", 286, 32)
            calls.append(entry(3, op, 4, "started", group=("0", "default_pg"), p2p=False, at=240))
            calls[3].update(retired=False, time_discovered_completed_ns=None, frames=frames)
            dumps.append(calls)
        finding = self.found(dumps, {"0": ("default_pg", [0, 1])})[0]
        self.assertEqual(("collective_divergence", [0, 1]), (finding["kind"], finding["ranks"]))
        self.assertEqual({"file": "/u/train.py", "line": 20, "code": None}, finding["place"])
        self.assertRegex(finding["detail"], r"^rank 0: barrier .* from train\.py:20 \(in state\.py:412\); rank 1: all_reduce .* from train\.py:32 \(in state\.py:286\)\. "
                                            r".*\. No rank had issued this barrier before$")


class Threads(Dumped):
    MAIN = [{"name": "all_gather_single", "filename": "/v/torch/distributed/distributed_c10d.py", "line": 5421}, {"name": "main", "filename": "/app/train.py", "line": 33}]
    SAVER = [{"name": "gather_object", "filename": "/v/torch/distributed/distributed_c10d.py", "line": 4611},
             {"name": "save_wrapper", "filename": "/v/torch/distributed/checkpoint/_async_thread_executor.py", "line": 30},
             {"name": "_worker", "filename": "/usr/lib/python3.11/concurrent/futures/thread.py", "line": 83},
             {"name": "run", "filename": "/usr/lib/python3.11/threading.py", "line": 982}, {"name": "_bootstrap", "filename": "/usr/lib/python3.11/threading.py", "line": 1002}]

    def of_threads(self, orders, saver=SAVER):
        """By rank a text: m is a call of the main thread, s one of a thread that saves; the last two have not ended."""
        dumps = []
        for order in orders:
            entries = []
            for number, who in enumerate(order):
                one = entry(number, "all_gather" if who == "m" else "scatter", number + 1, "completed" if number + 2 < len(order) else "scheduled",
                            group=("0", "default_pg"), p2p=False, sizes=((528,),) if who == "m" else () if len(dumps) else ((2, 1608),))
                entries.append({**one, "frames": self.MAIN if who == "m" else saver, "thread_id": "7" if who == "m" else "8", "thread_name": "python"})
            dumps.append(entries)
        return self.found(dumps, {"0": ("default_pg", list(range(len(orders))))})

    def test_threads_that_share_a_group_are_said(self):
        finding, = self.of_threads(("mmsmsm", "mmsmms", "mmsmms"))
        self.assertEqual(("collective_divergence", "error", [0, 1, 2], 33), (finding["kind"], finding["severity"], finding["ranks"], finding["place"]["line"]))
        self.assertEqual("Ranks 0-2 issued the calls of two threads in another order: #5 of group default_pg (0) is scatter on rank 0, all_gather on rank 1", finding["title"])
        self.assertIn("The scatter is of a thread that the program started, which runs save_wrapper (_async_thread_executor.py:30)", finding["detail"])
        self.assertIn("a process group of its own", finding["try"])

    def test_a_rank_that_leaves_out_a_call_of_its_main_thread_is_named(self):
        finding, = self.of_threads(("mmsmms", "mmsmms", "mmsms"))
        self.assertEqual([2], finding["ranks"])
        # The threads that autograd works in do what the main thread's backward asks for.
        finding, = self.of_threads(("mmsmsm", "mmsmms", "mmsmms"), saver=self.MAIN[1:])
        self.assertEqual([0], finding["ranks"])


class Shifts(Dumped):
    def of_calls(self, calls_of, ranks=4):
        """By rank (op, line) in order; the last has not ended."""
        dumps = []
        for rank in range(ranks):
            calls = list(calls_of(rank))
            dumps.append([entry(number, op, number + 1, "completed" if number + 1 < len(calls) else "scheduled", group=("0", "default_pg"), p2p=False, line=line)
                          for number, (op, line) in enumerate(calls)])
        return self.found(dumps, {"0": ("default_pg", list(range(ranks)))})

    STEP = [("all_gather", 25), ("all_reduce", 28)]

    def test_a_call_that_one_rank_issued_once_more_paired_with_another(self):
        """Where op and size first differ is one call later."""
        finding, = self.of_calls(lambda rank: self.STEP * 3 + ([("all_gather", 17), self.STEP[0]] if rank == 3 else self.STEP))
        self.assertEqual(("collective_divergence", [3], 17), (finding["kind"], finding["ranks"], finding["place"]["line"]))
        self.assertEqual("Rank 3 issued one call more than ranks 0-2: all_gather at train.py:17, #7 of group default_pg (0), where the others issued all_gather at train.py:25",
                         finding["title"])

    def test_a_call_that_one_rank_left_out(self):
        finding, = self.of_calls(lambda rank: self.STEP * 3 + ([("all_gather", 21)] if rank != 1 else []) + self.STEP)
        self.assertEqual(([1], "Rank 1 left out a call that ranks 0,2,3 issued: all_gather at train.py:21, #7 of group default_pg (0)"), (finding["ranks"], finding["title"]))

    FORWARD, BACKWARD = [("all_gather", 29)] * 2, [("all_gather", 56)] * 2 + [("all_reduce", 56)]

    def test_a_part_of_a_step_that_one_rank_left_out(self):
        """It skips the backward of a step: two gathers of its next forward pair with those of the backward."""
        def calls(rank):
            steps = (self.FORWARD + self.BACKWARD) * 3 + self.FORWARD
            return [("barrier", 9)] + steps + (self.BACKWARD if rank != 1 else self.FORWARD + self.BACKWARD[:1])
        finding, = self.of_calls(calls)
        self.assertEqual(("collective_divergence", [1], 56), (finding["kind"], finding["ranks"], finding["place"]["line"]))
        self.assertEqual("Rank 1 left out what ranks 0,2,3 issued from #19 of group default_pg (0) on: all_gather at train.py:56; it went on to all_gather at train.py:29",
                         finding["title"])
        self.assertTrue(finding["detail"].startswith("From there on its calls pair with other ones, as far as #21: "), finding["detail"])

    def test_lines_that_differ_by_the_part_of_a_rank_are_no_shift(self):
        finding, = self.of_calls(lambda rank: self.STEP * 3 + [("broadcast", 40 + (rank == 3)), ("all_reduce" if rank == 3 else "all_gather", 50)])
        self.assertTrue(finding["title"].startswith("Rank 3 issued all_reduce where ranks 0-2 issued all_gather: #8"), finding["title"])


class Programs(Dumped):
    """Four ranks in two pairs, tp: in each step two sums in the pair, then one of all in dp."""
    GROUPS = {"1": ("tp", [0, 1]), "2": ("tp", [2, 3]), "3": ("dp", [0, 1, 2, 3])}

    def dumps(self, change=lambda rank, calls: calls):
        """`change(rank, calls)`: calls are (group, line), of all steps."""
        dumps = []
        for rank in range(4):
            tp, counts, entries = str(1 + rank // 2), {}, []
            for number, (group, line) in enumerate(change(rank, [(tp, 10), (tp, 10), ("3", 20)] * 8)):
                counts[group] = counts.get(group, 0) + 1
                entries.append(entry(number, "all_reduce", counts[group], "completed", group=(group, self.GROUPS[group][0]), p2p=False, line=line))
                entries[-1]["time_discovered_completed_ns"] = None
            dumps.append(entries)
        return dumps

    def test_a_rank_that_left_out_a_call_of_its_pair(self):
        finding, = self.found(self.dumps(lambda rank, calls: calls[:13] + calls[14:] if rank == 3 else calls), self.GROUPS)
        self.assertEqual(("collective_divergence", "error", [3], 10), (finding["kind"], finding["severity"], finding["ranks"], finding["place"]["line"]))
        self.assertEqual("Rank 3 left out all_reduce #10 of group tp (2) at train.py:10, which ranks 0-2 issue there: its later calls there are paired with "
                         "later ones of rank 2", finding["title"])

    def test_a_rank_that_added_one(self):
        finding, = self.found(self.dumps(lambda rank, calls: calls[:14] + calls[13:] if rank == 1 else calls), self.GROUPS)
        self.assertEqual([1], finding["ranks"])
        self.assertRegex(finding["title"], r"^Rank 1 issued all_reduce #11 of group tp \(1\) at train\.py:10, where ranks 0,2,3 issue none: .* paired with earlier ones of rank 0$")

    def test_what_both_of_a_pair_do_is_no_oddity(self):
        """Nor is a dump that ends earlier, nor a rank that differs in each step, nor one whose difference is at the end."""
        for change in (lambda rank, calls: calls[:13] + calls[14:] if rank > 1 else calls,
                       lambda rank, calls: calls[:-4] if rank == 3 else calls,
                       lambda rank, calls: [(group, line + (rank == 3 and line == 20)) for group, line in calls],
                       lambda rank, calls: calls[:-2] + calls[-1:] if rank == 3 else calls):
            self.assertEqual([], [one for one in self.found(self.dumps(change), self.GROUPS) if one["kind"] == "collective_divergence"])


class Ends(Dumped):
    def gloo(self, number, name, line=10):
        """Gloo's dumps do not tell when a call began or ended."""
        return {**entry(number, name, number + 1, "completed", group=("0", "default_pg"), p2p=False, line=line), "profiling_name": "gloo:" + name, "state": "scheduled",
                "time_discovered_started_ns": None, "time_discovered_completed_ns": None}

    def test_the_others_may_have_gone_on_to_calls_that_do_not_need_it(self):
        """Rank 1 ended after #8; rank 0 gave a broadcast away, rank 2 has it and is in the next sum."""
        names = ["all_reduce"] * 8 + ["broadcast", "broadcast", "all_reduce"]

        def of(*counts):
            dumps = [[self.gloo(i, names[i]) for i in range(count)] for count in counts]
            return self.found(dumps, {"0": ("default_pg", [0, 1, 2])})
        finding, = of(10, 8, 11)
        self.assertEqual(("stopped_first", "warning", [1]), (finding["kind"], finding["severity"], finding["ranks"]))
        self.assertEqual("Rank 1's dump ends before broadcast #9 of group default_pg (0), among the last calls of ranks 0,2", finding["title"])
        # Two sums that do not wait for each other, as of buckets: all are in both.
        names[8:] = ["all_reduce"] * 2
        finding, = of(10, 8, 10)
        self.assertEqual("Rank 1's dump ends before all_reduce #10 of group default_pg (0), the last call of ranks 0,2", finding["title"])
        names[8:] = ["broadcast", "broadcast", "all_reduce"]
        # A rank that has ended a sum without it shows that its dump is an earlier one.
        self.assertEqual([], of(10, 7, 11))

    def test_a_rank_without_a_dump_may_have_ended_in_an_all_to_all_before_it(self):
        """Ranks 1 and 2 had their parts of #6 from rank 0, which left no dump; rank 3 waits for its part."""
        def of(name):
            dumps = [[self.gloo(i, "all_reduce" if i < 5 else name, 10 + i) for i in range(count)] for count in (7, 7, 6)]
            return self.found([None, *dumps], {"0": ("default_pg", [0, 1, 2, 3])})
        for name, first in (("all_to_all", ("missing_rank", [0])), ("all_reduce", ("stopped_first", [3]))):
            self.assertEqual(first, [(one["kind"], one["ranks"]) for one in of(name)][0])


if __name__ == "__main__":
    unittest.main()
