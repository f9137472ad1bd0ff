#!/usr/bin/env python3
"""Several ranks that the others wait for, alike or in groups of their own; what a rank did meanwhile: on its device, in its main thread, by design."""

import json
import os
import pickle
import unittest

from recorder import RecorderTest
from test_messages import BASE, entry

GEMM = "ampere_bf16_gemm"
GROUP = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1024, "Out msg nelems": 1024, "Process Group Name": "0"}


class Dumped(RecorderTest):
    def found(self, calls_of, members=None):
        """`calls_of(rank)`: (group, op, milliseconds) in order, with the state of one that has not ended."""
        folder = self.path(f"d{len(os.listdir(self.folder))}")
        os.mkdir(folder)
        for rank in range(4):
            counts, entries = {}, []
            for number, (group, name, at, *state) in enumerate(calls_of(rank)):
                counts[group] = counts.get(group, 0) + 1
                entries.append(entry(number, name, counts[group], *(state or ["completed"]), group=group, p2p=False, at=at))
                entries[-1]["time_discovered_completed_ns"] = None
                if state:
                    entries[-1]["time_discovered_started_ns"] = BASE + 900_000_000_000
            config = {name: {"name": name, "desc": text, "ranks": str(ranks)} for (name, text), ranks in (members or {("1", "dp"): [0, 1, 2, 3]}).items() if rank in ranks}
            with open(os.path.join(folder, f"nccl_trace_rank_{rank}"), "wb") as file:
                pickle.dump({"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries}, file, protocol=2)
        return self.answer("findings", self.ingest(folder, name=os.path.basename(folder) + ".db"))["findings"]

    def test_two_ranks_that_are_slow_alike(self):
        dp = ("1", "dp")
        finding, = self.found(lambda rank: [(dp, "all_reduce", 1000 * k + (300 + 7 * ((k + rank) % 3) if rank in (1, 3) else 2 * rank)) for k in range(20)])
        self.assertEqual(("straggler", "warning", [1, 3]), (finding["kind"], finding["severity"], finding["ranks"]))
        self.assertRegex(finding["title"], r"^Ranks 0,2 wait for ranks 1,3: they came last to 20 of 20 collectives of group dp \(1\), 0\.\d+ s after the others")
        # Each of two pairs now and then.
        self.assertEqual([], self.found(lambda rank: [(dp, "all_reduce", 1000 * k + (300 if rank in ((1, 3), (0, 2))[k % 2] else 2 * rank)) for k in range(20)]))

    def test_few_delays_that_are_no_longer_than_the_ranks_vary(self):
        """Steps of a busy machine: each rank takes 50 to 400 ms for one, and rank 2 happens to be the last three times."""
        took = ([94, 125, 357, 90], [51, 127, 153, 110], [355, 396, 388, 60])
        for beside, severity in ((0, "note"), (2000, "warning")):
            times, at = [[] for _ in range(4)], 0
            for k in range(4):
                here = [at + took[rank][k] + (beside if rank == 2 and k < 3 else 0) for rank in range(3)]
                for rank in range(3):
                    times[rank].append((("1", "dp"), "all_reduce", here[rank]))
                at = max(here) + 1
            finding, = [one for one in self.found(times.__getitem__, {("1", "dp"): [0, 1, 2]}) if one["kind"] == "straggler"]
            self.assertEqual((severity, [2]), (finding["severity"], finding["ranks"]))
            self.assertEqual("less than twice what the times of the other ranks differ by" in finding["detail"], severity == "note")

    def test_broadcasts_in_which_no_rank_waits_are_said(self):
        """Of two, which the others issue one behind the other, they wait in the second."""
        def calls(rank):
            late = 300 if rank == 3 else 0
            for k in range(20):
                yield from ((("1", "dp"), "broadcast", 1000 * k + late), (("1", "dp"), "broadcast", 1000 * k + 1 + late),
                            (("1", "dp"), "all_reduce", 1000 * k + 500 + 2 * (rank == 0)))
        finding, = self.found(calls)
        self.assertEqual([3], finding["ranks"])
        self.assertIn("it came last to 20 of 40 collectives of group dp (1)", finding["title"])
        self.assertIn(" Not counted are 20 more in which no rank waited for another.", finding["detail"])

    def test_in_a_job_that_ends_by_another_rank_a_slow_one_is_a_bystander(self):
        dp = ("1", "dp")

        def of(quits, slow):
            return lambda rank: [(dp, "all_reduce", 1000 * k + (300 if rank == slow and k else 5 - rank)) for k in range(18)] + (
                [(dp, "all_reduce", 18000 + 2 * rank, "started")] if quits not in (None, rank) else [])
        for quits, slow, severity in ((1, 3, "note"), (None, 3, "warning")):
            found = self.found(of(quits, slow))
            self.assertEqual([("collective_not_reached", [quits])] * (quits is not None), [(one["kind"], one["ranks"]) for one in found if one["kind"] != "straggler"])
            self.assertEqual([(severity, [slow])], [(one["severity"], one["ranks"]) for one in found if one["kind"] == "straggler"])

    def test_a_slow_rank_in_each_of_two_groups(self):
        """Ranks 2 and 3 are one shard each of a slow replica."""
        groups = {("1", "dp"): [0, 2], ("2", "dp"): [1, 3]}
        finding, = self.found(lambda rank: [((str(1 + rank % 2), "dp"), "all_reduce", 1000 * k + (300 if rank > 1 and k else 5 - rank)) for k in range(20)], groups)
        self.assertEqual([2, 3], finding["ranks"])
        self.assertRegex(finding["title"], r"; others wait for rank [23] as well, in group dp \([12]\), 5\.\d+ s in all$")

    def test_what_a_leader_does_among_leaders_is_no_delay(self):
        """Ranks 0 and 2 sum among themselves between the calls of their nodes; the others wait for them in the next."""
        groups = {("1", "node"): [0, 1], ("2", "node"): [2, 3], ("3", "leaders"): [0, 2]}

        def calls(own_ms):
            def of(rank):
                node = (str(1 + rank // 2), "node")
                for k in range(30):
                    yield node, "reduce", 100 * k + rank
                    if rank % 2 == 0:
                        yield ("3", "leaders"), "all_reduce", 100 * k + 5 + rank
                    yield node, "all_reduce", 100 * k + (45 + (own_ms if rank == 2 else 0) if rank % 2 == 0 else 6 + rank)
            return of
        self.assertEqual([], self.found(calls(0), groups))
        finding, = self.found(calls(30), groups)
        self.assertEqual(("straggler", [2]), (finding["kind"], finding["ranks"]))


    def test_a_thread_of_its_own_waits_while_another_trains(self):
        """Every third step all wait until the part of rank 3 is written: what comes before that wait is no wait of rank 3."""
        groups = {("1", "train"): [0, 1, 2, 3], ("2", "ckpt"): [0, 1, 2, 3]}

        def calls(rank):
            for k in range(7):
                save = [(("2", "ckpt"), "all_gather", 1000 * k + rank), (("2", "ckpt"), "all_reduce", 1000 * k + (900 if rank == 3 else 8 + rank))]
                steps = [(("1", "train"), "all_reduce", 1000 * k + 20 + 15 * step + (rank + step) % 4) for step in range(4)]
                yield from sorted(save + steps, key=lambda call: call[2])
        finding, = [one for one in self.found(calls, groups) if one["kind"] != "collective_divergence"]
        self.assertEqual(("straggler", [3]), (finding["kind"], finding["ranks"]))
        self.assertRegex(finding["title"], r"^Ranks 0-2 wait for rank 3: it came last to 14 of 14 collectives of group ckpt \(2\), ")


class Profiled(RecorderTest):
    def event(self, category, name, start_us, duration_us, tid=7, **args):
        return {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": tid, "ts": start_us, "dur": duration_us, "args": args}

    def found(self, events_of, ranks=4, groups=()):
        folder = self.path(f"p{len(os.listdir(self.folder))}")
        os.mkdir(folder)
        for rank in range(ranks):
            events = [self.event("cpu_op", "aten::add", 0.0, 10.0), *events_of(rank), self.event("cpu_op", "aten::add", 12_000_000.0, 10.0)]
            trace = {"schemaVersion": 1, "baseTimeNanoseconds": 1_790_857_026_000_000_000, "traceEvents": events,
                     "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": ranks, "pg_config": [
                         {"pg_name": str(k), "pg_desc": f"mesh_{name}", "pg_size": len(members), "ranks": members} for k, (name, members) in enumerate(groups)
                         if rank in members]}}
            with open(os.path.join(folder, f"profile_rank{rank}.json"), "w", encoding="utf-8") as file:
                json.dump(trace, file)
        return self.answer("findings", self.ingest(folder, name=os.path.basename(folder) + ".db"))["findings"]

    def steps(self, slow, of_slow=lambda at: (), of_all=lambda rank, at: ()):
        """In each of 20 steps the ranks of `slow` come to their collective 0.4 s after the others."""
        def events_of(rank):
            for k in range(20):
                at, late = 10_000.0 + 500_000.0 * k, 400_000.0 if rank in slow else 0.0
                yield from of_slow(at) if rank in slow else ()
                yield from of_all(rank, at)
                yield self.event("user_annotation", "gloo:all_reduce", at + late, 450_000.0 - late)
        return self.found(events_of)

    def test_two_ranks_that_are_slow_alike(self):
        finding, = self.steps((0, 2))
        self.assertEqual(("straggler", "warning", [0, 2]), (finding["kind"], finding["severity"], finding["ranks"]))
        self.assertEqual("Ranks 1,3 wait in collectives for ranks 0,2: 18 times, 0.40 s at the median, 8.00 s in all; 8.00 s of that rank 0 was in no op", finding["title"])
        finding, = self.steps((1, 2), lambda at: [self.event("cpu_op", "aten::inverse", at, 390_000.0)])
        self.assertRegex(finding["title"], r"for ranks 1,2: .*; 7\.80 s of that rank 1 was in aten::inverse$")
        self.assertEqual([], self.steps((0, 1, 2)))

    MESH = (("dp", [0, 2]), ("dp", [1, 3]), ("tp", [0, 1]), ("tp", [2, 3]))

    def in_mesh(self, slow=(), late_us=400_000.0):
        """Two pairs that do not meet: in each of 20 steps the ranks of `slow` come late; those of the other pair go on."""
        def events_of(rank):
            if rank < 2:
                for k in range(240):
                    yield self.event("user_annotation", "gloo:all_reduce", 11_000.0 + 40_000.0 * k + 3_000.0 * ((k + rank) % 2), 8_000.0 - 3_000.0 * ((k + rank) % 2))
            for k in range(20 if rank > 1 else 0):
                at, late = 10_000.0 + 500_000.0 * k, late_us if rank in slow else 3_000.0 * ((k + rank) % 2)
                yield self.event("cpu_op", "aten::linalg_svd", at, late - 1_000.0 if late > 1_000.0 else 10.0)
                yield self.event("user_annotation", "gloo:all_reduce", at + late, (late_us + 10_000.0 if slow else 8_000.0) - late)
        return self.found(events_of, groups=self.MESH)

    def test_a_rank_that_only_its_group_waits_for(self):
        """Gloo's slices do not name their group: those of one end on all of its ranks at once."""
        finding, = self.in_mesh(slow=(3,))
        self.assertEqual(("straggler", "warning", [3]), (finding["kind"], finding["severity"], finding["ranks"]))
        self.assertEqual("Rank 2 waits in collectives for rank 3: 18 times, 0.40 s at the median, 7.97 s in all; 7.95 s of that it was in aten::linalg_svd",
                         finding["title"])
        self.assertTrue(finding["detail"].startswith("By the profiles of the ranks of group mesh_tp (3), which cover 12 s together: in that time the other rank"),
                        finding["detail"])
        self.assertEqual([], self.in_mesh())
        # Of many groups some rank is late for a part of the time.
        self.assertEqual([], self.in_mesh(slow=(3,), late_us=150_000.0))

    def test_a_rank_that_works_beside_a_call_that_it_only_issued(self):
        """Rank 3's calls last from when it issues them; its ops work meanwhile, and the others wait."""
        def events_of(rank):
            for k in range(20):
                at = 10_000.0 + 500_000.0 * k
                yield self.event("user_annotation", "gloo:all_reduce", at, 450_000.0)
                if rank == 3:
                    yield self.event("cpu_op", "aten::inverse", at, 400_000.0, tid=8)
        finding, = self.found(events_of)
        self.assertRegex(finding["title"], r"^Ranks 0-2 wait in collectives for rank 3: .*, 8\.00 s in all; 8\.00 s of that it was in aten::inverse$")

    def test_a_rank_that_begins_late_an_op_that_all_have(self):
        """All run aten::bmm for as long, rank 2 after 0.2 s of Python: while the others wait, it is in the op."""
        def events_of(rank):
            for k in range(20):
                at, late = 10_000.0 + 500_000.0 * k, 200_000.0 if rank == 2 else 0.0
                yield self.event("cpu_op", "aten::bmm", at + late, 200_000.0)
                yield self.event("user_annotation", "gloo:all_reduce", at + late + 200_000.0, 250_000.0 - late)
        finding, = self.found(events_of)
        self.assertEqual([2], finding["ranks"])
        self.assertRegex(finding["title"], r"; while it did not wait, no op of it worked for [34]\.\d+ s longer than one of any other rank$")
        self.assertIn("look at what rank 2 does in Python", finding["try"])

    def test_the_function_is_one_of_the_thread_that_runs_ops(self):
        """A thread that waits for work is in its wait all the time; a wait of Python's library is one of its caller."""
        def frames(at):
            yield self.event("python_function", "threading.py(331): wait", at, 499_000.0, tid=8, CallFrom="train.py:90")
            yield self.event("python_function", "train.py(12): join_saver", at, 400_000.0, CallFrom="train.py:90")
            yield self.event("python_function", "threading.py(1100): join", at + 10.0, 399_000.0, CallFrom="train.py:90")
        finding, = self.steps((3,), frames)
        self.assertRegex(finding["title"], r" for rank 3: .*, 8\.00 s in join_saver \(train\.py:12\)$")

    def test_a_rank_that_alone_trains_is_no_replica(self):
        name = "autograd::engine::evaluate_function: AddmmBackward0"
        finding, = self.steps((0,), lambda at: [self.event("cpu_op", name, at, 100.0)])
        self.assertEqual(("straggler", "note", [0]), (finding["kind"], finding["severity"], finding["ranks"]))
        self.assertIn("Rank 0 alone runs backwards: they are no replicas", finding["detail"])
        finding, = self.steps((0,), of_all=lambda rank, at: [self.event("cpu_op", name, at + 400_000.0, 100.0)])
        self.assertEqual("warning", finding["severity"])

    def pairs(self, all_meet=False):
        """Ranks 2,3 send much to each other nearly all the time; ranks 0,1 compute and meet now and then. `all_meet`: ranks 2,3 wait for
        them instead."""
        def events_of(rank):
            for k in range(20):
                at = 10_000.0 + 500_000.0 * k
                if rank < 2:
                    yield self.event("cpu_op", "aten::mm", at, 450_000.0)
                    yield self.event("user_annotation", "gloo:all_reduce", at + 451_000.0 + 1_300.0 * rank, 9_000.0 - 1_300.0 * rank)
                elif all_meet:
                    yield self.event("user_annotation", "gloo:all_reduce", at + 2_000.0 * rank, 460_000.0 - 2_000.0 * rank)
                for j in range(12 if rank > 1 and not all_meet else 0):
                    begin = at + 37_300.0 * j + 611.0 * k + 300.0 * (rank - 2)
                    yield self.event("user_annotation", "gloo:all_reduce", begin, 30_000.0 - 300.0 * (rank - 2))
        return self.found(events_of)

    def test_ranks_that_share_no_call_do_not_wait_for_each_other(self):
        self.assertEqual([], self.pairs())
        finding, = self.pairs(all_meet=True)
        self.assertRegex(finding["title"], "^Ranks 2,3 wait in collectives for ranks 0,1: ")

    def test_a_call_that_ends_before_a_rank_comes_did_not_wait_for_it(self):
        """All four meet at the end of each step; before that ranks 1 to 3 send much to each other while rank 0 computes."""
        def events_of(rank):
            for k in range(20):
                at = 10_000.0 + 500_000.0 * k
                if rank == 0:
                    yield self.event("cpu_op", "aten::mm", at, 440_000.0)
                for j in range(10 if rank else 0):
                    yield self.event("user_annotation", "gloo:all_reduce", at + 44_000.0 * j + 300.0 * rank, 41_000.0 - 300.0 * rank)
                yield self.event("user_annotation", "gloo:all_reduce", at + 445_000.0 + 500.0 * ((rank + k) % 3), 9_000.0 - 500.0 * ((rank + k) % 3))
        self.assertEqual([], self.found(events_of))

    def learner(self, late_us):
        """The others wait for rank 2 in a gather and then for rank 0, which learns, in a broadcast. `late_us`: of rank 2."""
        def events_of(rank):
            for k in range(20):
                at, until = 10_000.0 + 500_000.0 * k, 10_000.0 + 500_000.0 * k + 20_000.0 + late_us
                came = at + late_us if rank == 2 else at
                yield self.event("user_annotation", "gloo:gather", came, until - came)
                if rank == 0:
                    yield self.event("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", until, 100.0)
                    yield self.event("cpu_op", "aten::addmm", until + 100.0, 119_900.0)
                else:
                    yield self.event("user_annotation", "gloo:broadcast", until, 120_000.0)
        return self.found(events_of)

    def test_a_learner_that_is_awaited_as_well_hides_no_slow_player(self):
        finding, = self.learner(200_000.0)
        self.assertEqual(("straggler", "warning", [2]), (finding["kind"], finding["severity"], finding["ranks"]))
        self.assertRegex(finding["title"], r"^Ranks 0,1,3 wait in collectives for rank 2: 1\d times, 0\.20 s at the median, 4\.00 s in all")
        self.assertEqual([("note", [0])], [(one["severity"], one["ranks"]) for one in self.learner(1_000.0)])

    def devices(self, slow, kernel_us, idle_us=0.0):
        """A kernel, then a collective that ends together; the device of each rank of `slow` has more before it."""
        def events_of(rank):
            for k in range(20):
                at, late = 10_000.0 + 500_000.0 * k, kernel_us + idle_us if rank in slow else 0.0
                start = at + 20_000.0 + late
                yield self.event("cpu_op", "aten::mm", at, 10.0, **{"External id": 2 * k + 1})
                yield self.event("kernel", GEMM, at + 20.0 + (idle_us if rank in slow else 0.0), 19_000.0 + (kernel_us if rank in slow else 0.0), device=rank, stream=7, correlation=k)
                told = {**GROUP, "Group size": 4, "Process Group Ranks": "[0, 1, 2, 3]", "External id": 2 * k + 2}
                yield self.event("cpu_op", "record_param_comms", at + 20.0, 10.0, **told, Seq=k + 1)
                yield self.event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", start, at + 450_000.0 - start, device=rank, stream=13, correlation=900 + k, **told)
        return self.found(events_of)

    def test_what_a_device_did_meanwhile(self):
        finding, = self.devices((2,), 300_000.0)
        self.assertEqual(("straggler", "warning", [2]), (finding["kind"], finding["severity"], finding["ranks"]))
        self.assertRegex(finding["title"], rf"^Ranks 0,1,3 wait in collectives for rank 2: \d+ times, 0\.30 s at the median, 6\.\d+ s in all; 5\.\d+ s of that it was in {GEMM}$")
        self.assertIn("cost --by kernel --rank 2", finding["try"])
        finding, = self.devices((1, 3), 0.0, 300_000.0)
        self.assertRegex(finding["title"], r"^Ranks 0,2 wait in collectives for ranks 1,3: .*; 5\.\d+ s of that the device of rank 1 ran no kernel$")
        self.assertEqual([], self.devices((), 0.0))


if __name__ == "__main__":
    unittest.main()
