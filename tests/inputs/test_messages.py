#!/usr/bin/env python3
"""Sends, receives and members of batches in recorder dumps: who has not issued what, who waits in which order."""

import json
import os
import pickle
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from recorder import RecorderTest  # noqa: E402
from profiles import ROOT  # noqa: E402

CASES = os.path.join(ROOT, "fixtures", "inputs")
BASE = 1_700_000_000_000_000_000


def entry(number, name, sequence, state, group=("1", "pp"), p2p=True, sizes=((1024,),), at=None, line=10):
    """An entry in the form of NCCL's."""
    ended = state == "completed"
    at = BASE + (number if at is None else at) * 1_000_000
    return {"frames": [{"name": "step", "filename": "/app/train.py", "line": line}], "record_id": number, "pg_id": 0, "process_group": group,
            "collective_seq_id": 0 if p2p else sequence, "p2p_seq_id": sequence if p2p else 0, "op_id": number, "profiling_name": f"nccl:{name}",
            "time_created_ns": at, "duration_ms": None, "input_sizes": sizes, "input_dtypes": ["Float"], "output_sizes": sizes,
            "output_dtypes": ["Float"], "state": state, "time_discovered_started_ns": None if state == "scheduled" else at + 1000,
            "time_discovered_completed_ns": at + 2000 if ended else None, "retired": ended, "timeout_ms": 600_000, "is_p2p": p2p}


class Messages(RecorderTest):
    def of_case(self, name):
        return self.ingest(os.path.join(CASES, name), name=name + ".db")

    def dumped(self, *ranks, members=None):
        folder = self.path("dumped" + str(len(os.listdir(self.folder))))
        os.mkdir(folder)
        config = {"1": {"name": "1", "desc": "pp", "ranks": str(list(members or range(len(ranks))))}}
        for rank, entries in enumerate(ranks):
            if entries is None:
                continue
            dump = {"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries}
            with open(os.path.join(folder, f"nccl_trace_rank_{rank}"), "wb") as file:
                pickle.dump(dump, file, protocol=2)
        return self.ingest(folder, name=os.path.basename(folder) + ".db")

    def findings(self, database):
        return self.answer("findings", database)["findings"]

    def test_a_send_without_its_receive(self):
        database = self.of_case("p2p_hang")
        finding, = self.findings(database)
        self.assertEqual(("collective_not_reached", "error", [1]), (finding["kind"], finding["severity"], finding["ranks"]))
        self.assertEqual("Rank 1 had not issued its 2nd recv 1<-0 of group pp (0:1) when the recorder was dumped; rank 0 waits in send 0->1 #2",
                         finding["title"])
        self.assertIn("Rank 0: send 0->1 [1024] Float from train.py:10 (#2) waits for rank 1", finding["detail"])
        self.assertIn("The last of rank 1 on this group: #1 recv 1<-0 [1024] Float from train.py:10, ended", finding["detail"])
        self.assertEqual([[0, "nccl:send 0->1", "started"]], self.rows(database, finding["query"].replace(
            "SELECT id, rank, op, input_shapes, dtype, reduce_op, state, start_us, graph_id, file, line", "SELECT rank, op, state")))
        issued = self.issued(database)
        self.assertEqual(("the dumps of 2 ranks", []), (issued["sources"], issued["groups"]))
        self.assertEqual([{"group": "0:1", "description": "pp", "from": "0", "to": "1", "sends": 2, "receives": 1, "open_sends": 1, "open_receives": 0}],
                         issued["messages"])
        self.assertEqual([], self.answer("collectives", database)["not_compared"])
        self.assertRegex(self.text("collectives", database), r"0 +1 +2 +1 +1 send\n")

    def test_a_batch_where_the_other_rank_issued_a_collective(self):
        database = self.of_case("p2p_vs_allreduce")
        finding, = self.findings(database)
        self.assertEqual(("collective_divergence", "error", [0, 1]), (finding["kind"], finding["severity"], finding["ranks"]))
        self.assertEqual("Rank 0 waits in send 0->1 #1 of group default_pg (0), rank 0 waits in recv 0<-1 #1 of group default_pg (0), "
                         "rank 1 waits in all_reduce #1 of group default_pg (0)", finding["title"])
        self.assertIn("compare train.py:10 with train.py:50", finding["try"])
        self.assertNotIn("nothing", json.dumps(finding))

    def test_members_of_a_batch_are_compared_one_by_one(self):
        database = self.of_case("coalesced_size")
        finding, = self.findings(database)
        self.assertEqual(("collective_divergence", "error"), (finding["kind"], finding["severity"]))
        self.assertEqual("Ranks 0,1 issued _broadcast_oop with different sizes: member 2 of the batch #1 of group default_pg (0)", finding["title"])
        self.assertIn("rank 0: _broadcast_oop [5, 5] Float from train.py:10; rank 1: _broadcast_oop [4, 4] Float from train.py:10", finding["detail"])
        (line,), = [group["collectives"] for group in self.issued(database)["groups"]]
        self.assertEqual({"[_broadcast_oop [4, 4] Float, _broadcast_oop [4, 4] Float] from train.py:10",
                          "[_broadcast_oop [4, 4] Float, _broadcast_oop [5, 5] Float] from train.py:10"}, {one["item"] for one in line["issued"]})

    def test_members_of_a_batch_have_its_state(self):
        """They stay "scheduled" in the dump whatever becomes of the batch."""
        def ends(state):
            return [[entry(0, "send 0->1", 1, "scheduled"), entry(1, "recv 0<-1", 1, "scheduled"), entry(2, "coalesced", 1, state, sizes=())],
                    [entry(0, "send 1->0", 1, "scheduled"), entry(1, "recv 1<-0", 1, "scheduled"), entry(2, "coalesced", 1, state, sizes=())]]
        for state, unended in (("completed", 0), ("started", 1)):
            database = self.dumped(*ends(state))
            self.assertEqual([(unended, unended)] * 2, [(one["open_sends"], one["open_receives"]) for one in self.issued(database)["messages"]])
            # All four are there: nobody waits for a call that was not issued.
            self.assertEqual([], self.findings(database))

    def test_a_pipeline_names_the_first_rank_and_who_waits_in_order(self):
        done = "completed"
        database = self.dumped(
            [entry(0, "send 0->1", 1, done), entry(1, "send 0->1", 2, done)],
            [entry(0, "recv 1<-0", 1, done), entry(1, "send 1->2", 2, done), entry(2, "recv 1<-0", 3, done)],
            [entry(0, "recv 2<-1", 1, done), entry(1, "send 2->3", 2, done), entry(2, "recv 2<-1", 3, "started", at=50)],
            [entry(0, "recv 3<-2", 1, done), entry(1, "recv 3<-2", 2, "scheduled", at=40)])
        finding, = self.findings(database)
        self.assertEqual(("collective_not_reached", [1]), (finding["kind"], finding["ranks"]))
        self.assertEqual("Rank 1 had not issued its 2nd send 1->2 of group pp (1) when the recorder was dumped; rank 2 waits in recv 2<-1 #3",
                         finding["title"])
        self.assertIn("Rank 2: recv 2<-1 [1024] Float from train.py:10 (#3) waits for rank 1; rank 3: recv 3<-2 [1024] Float from train.py:10 (#2) waits for rank 2",
                      finding["detail"])

    def test_ranks_that_send_to_each_other(self):
        database = self.dumped([entry(0, "send 0->1", 1, "started")], [entry(0, "send 1->0", 1, "started", line=20)])
        finding, = self.findings(database)
        self.assertEqual(("collective_divergence", [0, 1]), (finding["kind"], finding["ranks"]))
        self.assertEqual("Rank 0 waits in send 0->1 #1 of group pp (1), rank 1 waits in send 1->0 #1 of group pp (1)", finding["title"])
        self.assertIn("batch_isend_irecv", finding["try"])

    def test_ranks_that_send_to_each_other_in_streams(self):
        """Both have issued all; on their devices the receives come after the sends, which wait for them."""
        def ends(rank, peer):
            return [entry(0, f"send {rank}->{peer}", 1, "completed"), entry(1, f"recv {rank}<-{peer}", 2, "completed"),
                    entry(2, f"send {rank}->{peer}", 3, "started", at=20), entry(3, f"recv {rank}<-{peer}", 4, "scheduled", at=21)]
        finding, = self.findings(self.dumped(ends(0, 1), ends(1, 0)))
        self.assertEqual(("collective_divergence", [0, 1]), (finding["kind"], finding["ranks"]))
        self.assertEqual("Rank 0 waits in send 0->1 #3 of group pp (1), rank 1 waits in send 1->0 #3 of group pp (1)", finding["title"])
        self.assertIn("batch_isend_irecv", finding["try"])
        # One of them is in something else.
        behind = ends(1, 0)
        behind[2] = entry(2, "send 1->0", 3, "scheduled", at=20)
        self.assertEqual([], [one for one in self.findings(self.dumped(ends(0, 1), behind)) if one["kind"] == "collective_divergence"])

    def test_a_device_that_is_behind_does_not_wait_for_a_peer(self):
        """Dumps of a job that runs: rank 0's device has not come to its send, as it is in a collective."""
        usual = [entry(k, "all_reduce", k + 1, "completed", group=("2", "dp"), p2p=False, at=10 * k) for k in range(20)]
        of_rank = [[*usual, entry(20, "all_reduce", 21, "started", group=("2", "dp"), p2p=False, at=200), entry(21, "send 0->1", 1, "scheduled", at=201)],
                   [*usual, entry(20, "all_reduce", 21, "started", group=("2", "dp"), p2p=False, at=200)]]
        self.assertEqual(["note"] * 2, [one["severity"] for one in self.findings(self.dumped(*of_rank))])
        of_rank[0][20] = entry(20, "all_reduce", 21, "completed", group=("2", "dp"), p2p=False, at=200)
        of_rank[1][20] = of_rank[0][20]
        self.assertEqual([("collective_not_reached", "warning")], [(one["kind"], one["severity"]) for one in self.findings(self.dumped(*of_rank))])

    def test_what_a_dump_does_not_hold_is_not_called_missing(self):
        waits = [entry(0, "send 0->1", 1, "started")]
        # No dump of the peer; its ring has wrapped.
        self.assertEqual([], self.findings(self.dumped(waits, None, members=(0, 1))))
        self.assertEqual([], self.findings(self.dumped(waits, [entry(700, "recv 1<-0", 9, "completed")])))
        # Ranks of a group are not ranks of the job.
        database = self.dumped(None, None, [entry(0, "send 0->1", 1, "started")], [entry(0, "recv 1<-0", 1, "started")], members=(2, 3))
        self.assertEqual(([], [("2", "3")]), (self.findings(database), [(one["from"], one["to"]) for one in self.issued(database)["messages"]]))

    def torchcomms(self, *ranks, members, first=0):
        """Dumps in the form of TorchComms' recorder: one counter for all groups, no flag for sends and receives and no peers in their names.
        `ranks`: (group, op, state) in order."""
        folder = self.path("torchcomms" + str(len(os.listdir(self.folder))))
        os.mkdir(folder)
        for rank, calls in enumerate(ranks):
            entries = []
            for number, (group, op, state) in enumerate(calls, first):
                entries.append({**entry(number, op, number, state, group=(group, "ncclx"), p2p=False), "profiling_name": f"ncclx:{op}", "p2p_seq_id": 0})
                del entries[-1]["frames"]
                if state == "started":
                    entries[-1]["time_discovered_started_ns"] = BASE + 700_000_000_000
            config = {name: {"name": name, "desc": "ncclx", "ranks": str(of).replace(" ", "")} for name, of in members.items() if rank in of}
            with open(os.path.join(folder, f"comm_lib_trace_rank_{rank}"), "wb") as file:
                pickle.dump({"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries}, file, protocol=2)
        return self.ingest(folder, name=os.path.basename(folder) + ".db")

    def test_a_recorder_that_numbers_the_calls_of_all_groups_as_one(self):
        """The ranks of a pipeline issue other numbers of calls; sends are no collectives, and go to the other rank of a group of two."""
        members = {"world": [0, 1, 2], "first": [0, 1], "last": [1, 2]}
        done = "completed"

        def calls(rank, steps, last=done):
            return [call for step in range(steps) for call in
                    ([("first", "send" if rank == 0 else "recv", last if step == steps - 1 else done)] if rank < 2 else []) +
                    ([("last", "send" if rank == 1 else "recv", done)] if rank > 0 else []) + [("world", "all_reduce", done)]]
        database = self.torchcomms(calls(0, 4), calls(1, 4), calls(2, 4), members=members)
        self.assertEqual([], self.findings(database))
        self.assertEqual([("world", 4)], [(one["name"], len(one["collectives"])) for one in self.issued(database)["groups"]])
        self.assertEqual([("first", 4, 4), ("last", 4, 4)], [(one["group"], one["sends"], one["receives"]) for one in self.issued(database)["messages"]])
        # Rank 0 has not sent the fifth; the entries have their own words.
        database = self.torchcomms(calls(0, 4), calls(1, 5, "started")[:-2], calls(2, 4), members=members)
        finding, = self.findings(database)
        self.assertEqual("Rank 0 had not issued its 5th send 0->1 of group first when the recorder was dumped; rank 1 waits in recv 1<-0 #5", finding["title"])
        self.assertEqual([["ncclx:recv", 12, 0, 0]], self.rows(
            database, "SELECT profiling_name, collective_seq_id, p2p_seq_id, is_p2p FROM recorder_entry WHERE rank = 1 AND state = 'started'"))

    def test_a_count_of_all_groups_that_does_not_begin_with_the_first_call(self):
        """How many calls of which group came before is not known."""
        calls = [("world", "all_reduce", "completed"), ("other", "broadcast", "completed"), ("world", "all_reduce", "completed")]
        for first, reasons in ((0, []), (7, ["they have no sequence number"])):
            database = self.torchcomms(calls, calls, members={"world": [0, 1], "other": [0, 1]}, first=first)
            self.assertEqual(reasons, [one["reason"] for one in self.answer("collectives", database)["not_compared"]])
            self.assertEqual([], [one for one in self.findings(database) if one["severity"] != "note"])

    def test_batches_without_peers_are_not_compared(self):
        """A device that is in one of them has not started what came later; who did not come there is named."""
        members = {"pp": [0, 1, 2, 3], "a": [0, 2], "b": [1, 3]}
        usual = [("pp", "batch_op_issue", "completed"), ("a", "all_reduce", "completed")] * 10

        def of(rank, *last):
            return [("b" if group == "a" and rank % 2 else group, op, state) for group, op, state in [*usual, *last]]
        database = self.torchcomms(of(0, ("pp", "batch_op_issue", "started"), ("a", "all_reduce", "scheduled")), of(1),
                                   of(2, ("a", "all_reduce", "started")), of(3, ("a", "all_reduce", "started")), members=members)
        self.assertEqual([("collective_not_reached", [1])], [(one["kind"], one["ranks"]) for one in self.findings(database)])
        self.assertEqual(["they are sends or receives whose names do not tell the peer"], [one["reason"] for one in self.answer("collectives", database)["not_compared"]])


if __name__ == "__main__":
    unittest.main()
