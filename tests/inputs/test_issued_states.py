#!/usr/bin/env python3
"""How far a collective came on each rank, as its file tells: dumps of NCCL (made from recorded ones), profiles, and both."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import profiles  # noqa: E402
from recorder import RecorderTest  # noqa: E402

STATES = ("done", "waiting", "not_started", "enqueued", "end_unknown", "not_reached", "unknown")


def nccl_profile(rank, numbers, world=2, without_kernel=(), seq=True):
    """A profile in the form that PyTorch 2.14 writes: the op, the slice that names group and number, and the kernel."""
    events = []
    for number in numbers:
        at = 1000 * number + 50 * rank
        told = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": world,
                "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": str(list(range(world)))}

        def event(category, name, ts, dur, **args):
            events.append({"ph": "X", "cat": category, "name": name, "pid": 100 + rank, "tid": 7, "ts": at + ts, "dur": dur, "args": args})
        event("cpu_op", "c10d::allreduce_", -5, 40, **{"External id": 2 * number})
        event("cpu_op", "record_param_comms", 0, 30, **{"External id": 2 * number + 1}, **told, **({"Seq": number} if seq else {}))
        if number not in without_kernel:
            event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 60, 300, device=rank, stream=7, correlation=900 + number,
                  **{"External id": 2 * number + 1}, **told)
    group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": world, "ranks": list(range(world))}
    return {"schemaVersion": 1, "baseTimeNanoseconds": 1_700_000_000_000_000_000, "traceEvents": events,
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world, "pg_config": [group]}}


class IssuedStates(RecorderTest):
    def states(self, issued, name):
        group, = [group for group in issued["groups"] if group["name"] == name]
        return {one["sequence_number"]: {state: one[state]["ranks"] for state in STATES if one[state]["ranks"]} for one in group["collectives"]}

    def profiled(self, *traces):
        folder = self.path(f"profiled{len(os.listdir(self.folder))}")
        os.mkdir(folder)
        for number, trace in enumerate(traces):
            with open(os.path.join(folder, f"{number}.pt.trace.json"), "w", encoding="utf-8") as file:
                json.dump(trace, file)
        return self.ingest(folder, name=os.path.basename(folder) + ".db")

    def test_profiles_alone(self):
        database = self.profiled(nccl_profile(0, range(1, 7)), nccl_profile(1, range(2, 5), without_kernel=(4,)))
        # The end is that of the kernel, not of the call.
        self.assertEqual([[6, "done", 360_000]] + [[2, "done", 360_000], [1, None, None]],
                         self.rows(database, "SELECT count(*), state, end_ns - start_ns FROM collective_run GROUP BY rank, state, end_ns - start_ns "
                                   "ORDER BY rank, state IS NULL"))
        issued = self.issued(database)
        outside = {"done": "0", "unknown": "1"}
        self.assertEqual({1: outside, 2: {"done": "0,1"}, 3: {"done": "0,1"}, 4: {"done": "0", "end_unknown": "1"}, 5: outside, 6: outside},
                         self.states(issued, "0"))
        self.assertEqual("the profiles of 2 ranks", issued["sources"])
        text = self.text("collectives", database, "--all")
        self.assertIn("issued, by the profiles of 2 ranks\n", text)
        self.assertIn("unknown: not in the rank's profile, which covers a part of the job only", text)
        for wrong in ("NOT REACHED", "in it", "not ended", "dump"):
            self.assertNotIn(wrong, text)

    def test_ranks_without_a_profile_may_have_come_last(self):
        database = self.profiled(nccl_profile(0, [1], world=4), nccl_profile(2, [1], world=4))
        issued = self.issued(database)
        self.assertEqual({1: {"done": "0,2", "unknown": "1,3"}}, self.states(issued, "0"))
        self.assertIsNone(issued["groups"][0]["collectives"][0]["last_rank"])
        self.assertEqual([[None, 2, 4]], self.rows(database, "SELECT DISTINCT last_rank, rank_count, member_count FROM collective_wait"))
        self.assertIn("ranks 1,3: no profile is among the input", self.text("collectives", database))

    def slow_device(self, rank, late_us, step=1000):
        """All CPUs issue at the same times; the kernel of `rank` begins later, those of the others wait for it."""
        traces = []
        for one in range(3):
            trace = nccl_profile(one, range(1, 9), world=3)
            for event in trace["traceEvents"]:
                event["ts"] -= 50 * one
                if event["cat"] == "kernel":
                    event["dur"] += late_us
                    if one == rank:
                        event["ts"] += late_us
                        event["dur"] -= late_us
            traces.append(trace)
        return traces

    def test_a_device_comes_when_its_kernel_begins(self):
        for base_first in (True, False):
            traces = self.slow_device(1, 250)
            if not base_first:  # the base of the times follows the events
                traces = [{**{k: v for k, v in one.items() if k != "baseTimeNanoseconds"}, "baseTimeNanoseconds": one["baseTimeNanoseconds"]} for one in traces]
            database = self.profiled(*traces)
            finding, = self.answer("findings", database)["findings"]
            self.assertEqual(("straggler", "warning", [1]), (finding["kind"], finding["severity"], finding["ranks"]))
            self.assertIn("it came last to 8 of 8 collectives", finding["title"])
            self.assertIn("Rank 1 enqueued them in time: its device came late to them.", finding["detail"])
            self.assertIn("clock of its device", finding["try"])
            self.assertEqual([[0, 250.0, 1], [1, 0.0, 1], [2, 250.0, 1]], self.rows(database, "SELECT DISTINCT rank, wait_us, last_rank FROM collective_wait ORDER BY rank"))
            group, = self.issued(database)["groups"]
            self.assertEqual({(250.0, "1")}, {(one["wait_us"], one["last_rank"]) for one in group["collectives"]})

    def test_a_rank_whose_cpu_is_late_is_late_by_what_its_cpu_did(self):
        traces = self.slow_device(1, 250)
        for event in list(traces[1]["traceEvents"]):
            if event["cat"] == "cpu_op":
                event["ts"] += 250
                if event["name"].startswith("c10d"):
                    traces[1]["traceEvents"].append(dict(event, cat="user_annotation", name="load batch", ts=event["ts"] - 270, dur=260, args={}))
        finding, = self.answer("findings", self.profiled(*traces))["findings"]
        self.assertEqual(("straggler", [1]), (finding["kind"], finding["ranks"]))
        self.assertIn("rank 1 was 1.9 ms in load batch", finding["detail"])
        self.assertEqual("look at why rank 1 takes longer in load batch, before allreduce, than the others", finding["try"])

    def test_clocks_that_differ_are_no_wait(self):
        """The kernels of rank 0 had ended before those of rank 1 began, by its clock."""
        traces = [nccl_profile(rank, range(1, 6)) for rank in (0, 1)]
        traces[1]["baseTimeNanoseconds"] += 3_000_000_000
        database = self.profiled(*traces)
        self.assertEqual([], self.answer("findings", database)["findings"])
        group, = self.issued(database)["groups"]
        self.assertEqual({(None, None)}, {(one["wait_us"], one["last_rank"]) for one in group["collectives"]})
        text = self.text("collectives", database)
        self.assertIn("clocks differ", text)
        self.assertNotIn("waited in all", text)

    def test_where_one_file_lacks_the_kernel_the_calls_are_compared(self):
        traces = self.slow_device(1, 250)
        traces[0]["traceEvents"] = [one for one in traces[0]["traceEvents"] if one["cat"] != "kernel"]
        database = self.profiled(*traces)
        self.assertEqual([], self.answer("findings", database)["findings"])
        self.assertEqual([[0.0, None]], self.rows(database, "SELECT DISTINCT wait_us, last_rank FROM collective_wait"))
        group, = self.issued(database)["groups"]
        self.assertEqual({(0.0, None)}, {(one["wait_us"], one["last_rank"]) for one in group["collectives"]})

    def test_where_clocks_differ_nobody_came_last(self):
        """Rank 1's host is 3 s ahead: by the clocks rank 0 had ended each call before rank 1 came."""
        traces = [nccl_profile(rank, range(1, 5)) for rank in (0, 1)]
        traces[1]["baseTimeNanoseconds"] += 3_000_000_000
        database = self.profiled(*traces)
        self.assertEqual([[None, None]], self.rows(database, "SELECT DISTINCT wait_us, last_rank FROM collective_wait"))
        self.assertIn("clocks differ", self.text("collectives", database, "--all"))

    def test_waits_that_overlap_count_once(self):
        """Three asynchronous calls after each other: the others wait once for rank 1, not three times."""
        traces = [nccl_profile(rank, range(1, 10), world=2, without_kernel=range(10)) for rank in (0, 1)]
        for rank, trace in enumerate(traces):
            for event in trace["traceEvents"]:
                number = (event["ts"] + 5 - 50 * rank) // 1000
                event["ts"] += 10_000 * ((number - 1) // 3) - 990 * ((number - 1) % 3) + (5000 - 50 if rank else 0)
        self.profiled(*traces)
        text = self.text("collectives", self.database)
        waited = {line.split()[0]: line.split()[2:4] for line in text.split("was last in")[1].splitlines()[1:3]}
        self.assertEqual({"0": ["15.1", "ms"], "1": ["0", "µs"]}, waited)

    @unittest.skipUnless(profiles.HAS_ZSTD, "no zstd")
    def test_what_is_not_compared_is_counted(self):
        answer = self.answer("collectives", self.profiled(nccl_profile(0, range(1, 6), seq=False)))
        self.assertEqual((None, [{"count": 5, "source": "profiles", "reason": "they have no sequence number"}]), (answer["issued"], answer["not_compared"]))
        folder = self.part("p_ddp", "steps.rank?.pt.trace.json.zst", logs=False)
        database = self.ingest(folder, name="gloo.db")
        self.assertEqual([{"count": 30, "source": "profiles", "reason": "they have neither a group nor a sequence number"}],
                         self.answer("collectives", database)["not_compared"])
        self.assertIn("not compared: 30 calls of the profiles: they have neither a group nor", self.text("collectives", database))
        # With the dumps each slice is one of an entry.
        self.assertEqual([], self.answer("collectives", self.ingest(profiles.recorded("p_ddp"), name="both.db"))["not_compared"])

    def test_what_is_enqueued_is_not_started(self):
        def enqueued(has_starts):
            def change(rank, dump):
                self.nccl(dump, True)
                for entry in dump["entries"]:
                    entry["time_discovered_started_ns"] = entry["time_created_ns"] + 1000 if has_starts else None
                last = [e for e in dump["entries"] if e["process_group"][0] == "1"][-1]
                if rank == 3:
                    dump["entries"].remove(last)
                else:
                    last.update(state="scheduled", retired=False, time_discovered_started_ns=None, time_discovered_completed_ns=None)
            return change
        issued = self.planted(enqueued(True))
        self.assertEqual({"not_started": "0-2", "not_reached": "3"}, self.states(issued, "1")[4])
        self.assertIn("Rank 3 had not reached all_reduce #4 of group dp (1) in second (fr_job.py:45) when the recorder was dumped; ranks 0-2 have enqueued it "
                      "and not started it", issued["findings"][0]["title"])
        self.assertIn(" enqueued, not started 0-2, NOT", self.text("collectives", self.database))
        # Without TORCH_NCCL_ENABLE_TIMING a dump has no starts: "scheduled" then does not tell.
        issued = self.planted(enqueued(False))
        self.assertEqual({"enqueued": "0-2", "not_reached": "3"}, self.states(issued, "1")[4])
        self.assertTrue(issued["findings"][0]["title"].endswith("; ranks 0-2 have enqueued it"))
        self.assertIn("the dump does not record when a device starts a collective", self.text("collectives", self.database))

    def test_all_that_have_enqueued_it_and_none_that_started(self):
        def queued(rank, dump):
            self.nccl(dump, True)
            last = [e for e in dump["entries"] if e["process_group"][0] == "1"][-1]
            for entry in dump["entries"]:
                entry["time_discovered_started_ns"] = entry["time_created_ns"] + 1000
            last.update(state="scheduled", retired=False, time_discovered_started_ns=None, time_discovered_completed_ns=None)
            # Of another stream, issued later.
            later = dict(dump["entries"][0], record_id=99, process_group=("9", "copies"), time_created_ns=last["time_created_ns"] + 1000)
            dump["entries"].append({**later, "time_discovered_started_ns": later["time_created_ns"], "time_discovered_completed_ns": last["time_created_ns"] + 60_000_000_000})
        finding, = self.planted(queued, logs=False)["findings"]
        self.assertEqual("Ranks 0-3 have enqueued all_reduce #4 of group dp (1) and not started it: for 60.0 s at least", finding["title"])
        self.assertIn("look at what the devices have to do before it", finding["try"])

    def test_what_was_started_is_in_it(self):
        def started(rank, dump):
            self.nccl(dump, True)
            last = [e for e in dump["entries"] if e["process_group"][0] == "1"][-1]
            if rank != 3:
                last.update(state="started", retired=False, time_discovered_completed_ns=None)
            else:
                dump["entries"].remove(last)
        issued = self.planted(started)
        self.assertEqual({"waiting": "0-2", "not_reached": "3"}, self.states(issued, "1")[4])
        self.assertIn("ranks 0-2 wait in it", issued["findings"][0]["title"])

    def test_completed_before_it_was_retired(self):
        def unretired(rank, dump):
            self.nccl(dump, True)
            for entry in dump["entries"]:
                entry.update(retired=False, time_discovered_completed_ns=None)
        issued = self.planted(unretired, logs=False)
        self.assertEqual({"done"}, {state for group in issued["groups"] for line in self.states(issued, group["name"]).values() for state in line})
        # Gloo's entry stays scheduled until it is retired: rank 2's, which the others had ended, may have ended.
        issued = self.issued(self.ingest(self.part("fr_healthy", "fr_trace_rank_?")))
        self.assertEqual({"done": "0,1,3", "end_unknown": "2"}, self.states(issued, "1")[4])
        text = self.text("collectives", self.database)
        self.assertIn("done 0,1,3, issued 2", text)
        self.assertNotIn("in it", text)

    def hang(self, of_rank_3, has_groups=True):
        """Dumps of ranks that have started a collective, and one of rank 3 that does not show whether it has: the finding."""
        def change(rank, dump):
            if has_groups:
                self.nccl(dump, True)
            last = [e for e in dump["entries"] if e["process_group"][0] == "1"][-1]
            last.update(state="started" if has_groups else "scheduled", retired=False, time_discovered_completed_ns=None)
            if rank == 3 and of_rank_3 == "no entries":
                dump["entries"] = []
        self.planted(change, logs=False)
        folder = self.database.removesuffix(".db")
        path = os.path.join(folder, "comm_lib_trace_rank_3")
        if of_rank_3 == "absent":
            os.remove(path)
        elif of_rank_3 != "no entries":
            os.truncate(path, {"cut": os.path.getsize(path) // 3, "empty": 0}[of_rank_3])
        issued = self.issued(self.ingest(folder, name=f"hang_{len(os.listdir(self.folder))}.db", code=None))
        finding, = issued["findings"]
        self.assertEqual(("stuck", "0-2", "1", 4), (finding["kind"], finding["ranks"]["ranks"], finding["group"], finding["sequence_number"]))
        self.assertEqual([finding["title"]], [one["title"] for one in self.answer("findings", self.database)["findings"] if one["kind"] == "stuck"])
        return finding["title"]

    def test_a_dump_that_does_not_show_where_its_rank_is(self):
        known = "Ranks 0-2 wait in all_reduce #4 of group dp (1); "
        for dump, why in (("no entries", "its dump has no entries"), ("cut", "its dump is not whole: the pickle ends before its end mark; 4 entries before it were kept"),
                          ("empty", "its dump is not whole: the recorder dump is empty (0 bytes): rank 3 ended while it wrote it, or the disk was full"), ("absent", "no dump of it is among the input")):
            self.assertEqual(known + "how far rank 3 came is not known: " + why, self.hang(dump))
        # Gloo's dumps do not name the members of a group.
        self.assertEqual(known + "whether rank 3 belongs to the group is not known: its dump has no entries", self.hang("no entries", has_groups=False))
        self.assertIn("rank 3: its dump counts 15 calls and has no entry of them", self.text("collectives", self.database))

    def test_a_rank_that_issued_on_the_group_belongs_to_it(self):
        """Gloo's dumps name no members. One entry of each of these dumps is damaged, the last one of the group lacks its op."""
        for damaged in ([3], [2, 3]):
            def change(rank, dump):
                last = [e for e in dump["entries"] if e["process_group"][0] == "1"][-1]
                last.update(retired=False, state="scheduled", profiling_name=None)
                if rank in damaged:
                    dump["entries"][dump["entries"].index(last)] = 5
            finding, = [one for one in self.planted(change, logs=False)["findings"] if one["group"] == "1"]
            one = len(damaged) == 1
            self.assertRegex(finding["title"], r"enqueued collective #4 of group dp \(1\); how far " + ("rank 3" if one else "ranks 2,3") + " came is not known: "
                             + ("its dump is not whole: " if one else "their dumps are not whole: "))
            self.assertIn("stack" if one else "stacks", finding["try"])

    def test_a_whole_dump_without_the_group_that_others_have_used(self):
        def without(rank, dump):
            self.nccl(dump, True)
            last = [e for e in dump["entries"] if e["process_group"][0] == "1"][-1]
            last.update(state="started", retired=False, time_discovered_completed_ns=None)
            if rank == 3:
                dump["entries"] = [e for e in dump["entries"] if e["process_group"][0] != "1"]
        finding, = self.planted(without, logs=False)["findings"]
        self.assertIn("how far rank 3 came is not known: its dump has no entry of the group", finding["title"])


if __name__ == "__main__":
    unittest.main()
