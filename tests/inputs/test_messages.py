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

    def test_what_a_dump_does_not_hold_is_not_called_missing(self):
        waits = [entry(0, "send 0->1", 1, "started")]
        # No dump of the peer; its ring has wrapped.
        self.assertEqual([], self.findings(self.dumped(waits, None, members=(0, 1))))
        self.assertEqual([], self.findings(self.dumped(waits, [entry(700, "recv 1<-0", 9, "completed")])))
        # Ranks of a group are not ranks of the job.
        database = self.dumped(None, None, [entry(0, "send 0->1", 1, "started")], [entry(0, "recv 1<-0", 1, "started")], members=(2, 3))
        self.assertEqual(([], [("2", "3")]), (self.findings(database), [(one["from"], one["to"]) for one in self.issued(database)["messages"]]))


if __name__ == "__main__":
    unittest.main()
