#!/usr/bin/env python3
"""Recorder dumps of jobs in the form of NCCL's (tests/tools/nccl_jobs.py): the first sentence says what was planted,
and of a job that is well there is none above a note."""

import os
import pickle
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "tools")]
from recorder import RecorderTest  # noqa: E402
import nccl_jobs  # noqa: E402
import nccl_dumps  # noqa: E402

BASE = 1_790_000_000_000_000_000


class NcclJobs(RecorderTest):
    def findings(self, name):
        folder = self.path(f"{name}_{len(os.listdir(self.folder))}")
        nccl_jobs.write(name, folder)
        return self.answer("findings", self.ingest(folder, name=os.path.basename(folder) + ".db"))["findings"]

    def first(self, name):
        return self.findings(name)[0]

    def test_nothing_above_a_note_of_a_job_that_is_well(self):
        for name in ("pipeline_ok", "pipeline_runs", "pipeline_apart", "tensor_skew_ok", "tensor_apart", "ring_ok", "sharded_ok"):
            with self.subTest(name):
                self.assertEqual([], [one["title"] for one in self.findings(name) if one["severity"] != "note"])

    def test_a_pipeline_whose_rings_have_wrapped(self):
        """What came before a ring is not counted: a receive that has not ended, of which the peer has no send that has not."""
        for name, severity in (("pipeline_hang", "warning"), ("pipeline_hang_timing", "error"), ("pipeline_hang_async", "warning")):
            with self.subTest(name):
                found = self.findings(name)
                self.assertEqual([([2], severity)] * len(found), [(one["ranks"], one["severity"]) for one in found])
                self.assertIn("Rank 2 had not issued the send 1->2 of group mesh_pp (1) when the recorder was dumped; rank 4 ", " ".join(one["title"] for one in found))
        # The ranks that wait in receives are late in other groups for that.
        self.assertEqual({"Rank 2 had not issued the send 1->2 of group mesh_pp (1) when the recorder was dumped; rank 4 waits in recv 2<-1 #917",
                          "Rank 2 had not reached all_reduce #58 of group mesh_dp (4) when the recorder was dumped; rank 3 waits in it"},
                         {one["title"] for one in self.findings("pipeline_hang_timing")})

    def test_what_a_rank_issued_last_in_whatever_group(self):
        found = [one for one in self.findings("pipeline_hang") if "all_reduce" in one["title"]]
        self.assertIn("The last of rank 2 on this group: #57 all_reduce [2000] Float from grads.py:12, in any group: #917 recv 1<-0 [8, 512] BFloat16 "
                      "from pipeline.py:77 of group mesh_pp (1)", found[0]["detail"])
        self.assertIn("after #917 recv 1<-0", found[0]["try"])

    def test_ranks_that_wait_for_one_without_a_dump_are_not_blamed(self):
        found = self.findings("tensor_dump_missing")
        self.assertEqual("Ranks 1,3,7 have enqueued all_reduce #101 of group mesh_dp (2); how far rank 5 came is not known: no dump of it is among the input",
                         found[0]["title"])
        self.assertEqual([], [one["title"] for one in found if one["title"].startswith(("Rank 1 ", "Rank 3 ", "Rank 7 "))])

    def test_a_batch_that_lacks_a_receive(self):
        """Rank 1's second send of that batch is received by the next one, and so on: the last stands."""
        found = self.first("ring_batch")
        self.assertEqual(("collective_divergence", "error", [2], 64), (found["kind"], found["severity"], found["ranks"], found["place"]["line"]))
        self.assertEqual("Rank 2 issued 1 receive from rank 1 in batch #29 of group mesh_cp (3), rank 1 2 sends to rank 2: "
                         "later ones are paired with those of other batches", found["title"])
        self.assertIn("Rank 1 has enqueued send 1->2 #30", found["detail"])

    def test_other_faults(self):
        for name, kind, ranks, title in (
                ("tensor_hang", "collective_not_reached", [5], "Rank 5 had not reached all_reduce #101 of group mesh_dp (2) at ddp.py:88"),
                ("tensor_late", "straggler", [6], "Rank 7 waits for rank 6: it came last to 240 of 240 collectives of group mesh_tp (6)"),
                ("tensor_type", "collective_divergence", [4], "Rank 4 issued all_reduce with another type than ranks 0,2,6: #105 of group mesh_dp (1)"),
                ("tensor_skip", "collective_divergence", [3], "Rank 3 left out all_reduce #62 of group mesh_dp (2) at ddp.py:88"),
                ("order", "collective_divergence", [1], "Ranks 0,2,3 have enqueued _reduce_scatter_base #15 of group mesh_ep (11), which rank 1 had not"),
                ("network", "stuck", None, "Ranks 0,2,4,6 wait in all_reduce #111 of group dp (1): for 600.0 s at least")):
            with self.subTest(name):
                found = self.first(name)
                self.assertEqual(kind, found["kind"])
                self.assertIn(ranks, (found["ranks"], None))
                self.assertTrue(found["title"].startswith(title), found["title"])


class Recorder(unittest.TestCase):
    """The generator against what the recorder's source says."""

    def dump(self, version, form="pickle"):
        world = nccl_jobs.ring(version=version)
        return world.dump(world.ranks[0], world.last_ns() + 1_000_000_000, form)

    def test_members_of_a_batch_have_no_events_and_its_end_no_sizes(self):
        entries = self.dump("2.10")["entries"]
        self.assertEqual(["nccl:send 0->1", "nccl:recv 0<-3", "nccl:send 0->1", "nccl:recv 0<-3", "nccl:coalesced"], [one["profiling_name"] for one in entries[:5]])
        self.assertEqual([("scheduled", False)] * 4 + [("completed", True)], [(one["state"], one["retired"]) for one in entries[:5]])
        self.assertEqual(([], [1, 2, 3, 4, 4]), (entries[4]["input_sizes"], [one["op_id"] for one in entries[:5]]))

    def test_batches_are_counted_as_p2p_since_2_6(self):
        for version, numbers in (("2.4", (1, 0)), ("2.10", (0, 1))):
            entry = self.dump(version)["entries"][4]
            self.assertEqual(numbers, (entry["collective_seq_id"], entry["p2p_seq_id"]))

    def test_a_ring_that_has_wrapped_goes_on_counting(self):
        world = nccl_jobs.pipeline(steps=20)
        dump = world.dump(world.ranks[0], world.last_ns(), "json")
        self.assertEqual((100, len(world.ranks[0].entries) - 100), (len(dump["entries"]), dump["entries"][0]["record_id"]))
        self.assertEqual("mesh_pp", dump["pg_config"]["1"]["desc"])
        self.assertEqual(0, dump["entries"][0]["time_discovered_started_ns"])

    def test_a_call_that_a_member_lacks_does_not_end(self):
        group = nccl_dumps.Group("0", "default_pg", range(2))
        world = nccl_dumps.World(2, lambda rank: [nccl_dumps.Call("all_reduce", group, [4])] * (2 - rank)).run()
        self.assertEqual(["completed", "scheduled"], [one["state"] for one in world.dump(world.ranks[0], world.last_ns() + 10 ** 9, "pickle")["entries"]])


class Gloo(RecorderTest):
    def dumps(self, name, alike=True, counts=(12, 11)):
        """Rank 1 has one all_reduce less of those at one line; the others wait in the last."""
        folder = self.path(name)
        os.mkdir(folder)
        for rank in range(3):
            entries = [{"record_id": k, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": k + 1, "p2p_seq_id": 0, "op_id": 3 * k + 1,
                        "profiling_name": "gloo:all_reduce", "time_created_ns": BASE + k * 10_000_000 + rank, "input_sizes": [[8]], "input_dtypes": ["Float"],
                        "output_sizes": [[8]], "output_dtypes": ["Float"], "state": "scheduled", "time_discovered_started_ns": None,
                        "time_discovered_completed_ns": None, "retired": k < counts[1], "timeout_ms": 600_000, "is_p2p": False,
                        "frames": [{"name": "sync", "filename": "/app/train.py", "line": 9 if alike else 9 + k % 2}]} for k in range(counts[rank == 1])]
            with open(os.path.join(folder, f"fr_trace_rank_{rank}"), "wb") as file:
                pickle.dump({"version": "2.10", "pg_config": {"": {"name": "", "desc": "", "ranks": "[0, 1, 2]"}}, "pg_status": {}, "entries": entries}, file, protocol=2)
        return self.ingest(folder, name=os.path.basename(folder) + ".db")

    def test_calls_that_look_alike(self):
        said = "All calls of this group look alike: rank 1 may also have left out an earlier one, and be done"
        for alike in (True, False):
            found, = self.answer("findings", self.dumps(f"alike_{alike}", alike))["findings"]
            self.assertTrue(found["title"].startswith("Rank 1 had not reached all_reduce #12 of group default_pg (0)"), found["title"])
            self.assertEqual(alike, said in found["detail"], found["detail"])

    def test_sends_and_receives_are_counted_and_not_held(self):
        database = self.dumps("messages", counts=(12, 12))
        self.assertIn("sends and receives: the gloo recorder counts them (66 in the dumps of 3 ranks) and holds none",
                      " ".join(self.text("findings", database).split()))


if __name__ == "__main__":
    unittest.main()
