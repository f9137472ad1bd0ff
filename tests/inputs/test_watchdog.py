"""Text of NCCL's watchdog: recognised by content, rows, and the finding that names who had not come."""

import os
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "analysis"))
from answers import AnswerTest, ask  # noqa: E402

# As PyTorch 2.7 and 2.8 print them.
TIMEOUT = ("[rank{0}]:[E810 03:04:10.850617863 ProcessGroupNCCL.cpp:683] [Rank {0}] Watchdog caught collective operation timeout: "
           "WorkNCCL(SeqNum=167, OpType=ALLREDUCE, NumelIn=80, NumelOut=80, Timeout(ms)=600000) ran for 600027 milliseconds before timing out.\n")
STATUS = ("[rank{0}]:[E810 03:04:11.063313477 ProcessGroupNCCL.cpp:2241] [PG ID 0 PG GUID 0(default_pg) Rank {0}]  failure detected by watchdog "
          "at work sequence id: 167 PG status: last enqueued work: 167, last completed work: 166\n")
SIGNAL = ("[rank{0}]:[E810 03:04:11.163313477 ProcessGroupNCCL.cpp:1682] [PG ID 0 PG GUID 0(default_pg) Rank {0}] Received a dump signal due to a "
          "collective timeout from  rank 1 and we will try our best to dump the debug info. Last enqueued NCCL work: {1}, last completed NCCL work: "
          "{1}.This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks\n")
# As PyTorch 2.4 prints it.
OLD = ("[rank2]:[E ProcessGroupNCCL.cpp:1537] [PG 0 Rank 2] Timeout at NCCL work: 9, last enqueued NCCL work: 11, last completed NCCL work: 76280750235782912.\n"
       "[rank2]:[E ProcessGroupNCCL.cpp:1414] [PG 0 Rank 2] Process group watchdog thread terminated with exception: [Rank 2] Watchdog caught collective "
       "operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1000) ran for 1001 milliseconds before timing out.\n")


class Watchdog(AnswerTest):
    def rows(self, database, query):
        connection = sqlite3.connect(database)
        self.addCleanup(connection.close)
        return connection.execute(query).fetchall()

    def test_who_had_not_enqueued(self):
        self.save("job/stderr.txt", TIMEOUT.format(0), TIMEOUT.format(1), STATUS.format(0), STATUS.format(1), SIGNAL.format(2, 166))
        database = self.ingest(os.path.join(self.scratch, "job"))
        self.assertEqual(self.rows(database, "SELECT rank, event, group_name, group_description, sequence_number, op, ran_ms, last_enqueued, last_completed "
                                             "FROM nccl_watchdog ORDER BY line"), [
            (0, "timeout", None, None, 167, "ALLREDUCE", 600027, None, None), (1, "timeout", None, None, 167, "ALLREDUCE", 600027, None, None),
            (0, "status", "0", "default_pg", 167, None, None, 167, 166), (1, "status", "0", "default_pg", 167, None, None, 167, 166),
            (2, "dump_signal", "0", "default_pg", None, None, None, 166, 166)])
        first = ask("findings", database)["findings"][0]
        self.assertEqual((first["kind"], first["severity"], first["ranks"]), ("collective_not_reached", "error", [2]))
        self.assertEqual(first["title"], "Rank 2 had not enqueued ALLREDUCE #167 of group default_pg (0), which timed out on ranks 0,1 after 600 s")
        self.assertIn("ranks 0,1: #167, #166", first["detail"])
        self.assertTrue(first["rows"])

    def test_nobody_is_blamed_where_all_had_enqueued_it(self):
        self.save("job/stderr.txt", TIMEOUT.format(0), STATUS.format(0), STATUS.format(1))
        first = ask("findings", self.ingest(os.path.join(self.scratch, "job")))["findings"][0]
        self.assertEqual((first["kind"], first["ranks"]), ("stuck", [0, 1]))

    def test_groups_are_told_apart_by_what_is_the_same_on_all_ranks(self):
        """Each process counts its groups: PG ID 1 is tp of ranks 0,1 and another tp of ranks 2,3. The rank in brackets is one of the group."""
        status = ("[E1129 06:50:01.000000 ProcessGroupNCCL.cpp:2254] [PG ID 1 PG GUID {1}(tp) Rank {2}]  failure detected by watchdog at work "
                  "sequence id: {3} PG status: last enqueued work: {3}, last completed work: {4}\n")
        self.save("job/stderr.txt", *[f"[rank{rank}]:" + status.format(rank, guid, own, at, at - 1)
                                      for rank, guid, own, at in ((0, 3, 0, 34), (1, 3, 1, 34), (2, 5, 0, 20), (3, 5, 1, 20))], status.format(0, 3, 1, 34, 33))
        database = self.ingest(os.path.join(self.scratch, "job"))
        self.assertEqual(self.rows(database, "SELECT rank, group_name FROM nccl_watchdog ORDER BY line"), [(0, "3"), (1, "3"), (2, "5"), (3, "5"), (None, "3")])
        self.assertEqual([("stuck", [0, 1]), ("stuck", [2, 3])], [(one["kind"], one["ranks"]) for one in self.all_findings(database)])

    def all_findings(self, database):
        first, = ask("findings", database)["findings"]
        return [first] + first["evidence"]

    def test_an_old_version_and_a_long_text(self):
        self.save("job/out.log", "step 1: loss 0.5\n" * 20000, OLD)
        database = self.ingest(os.path.join(self.scratch, "job"))
        self.assertEqual(self.rows(database, "SELECT rank, event, group_name, sequence_number, last_enqueued, last_completed FROM nccl_watchdog"),
                         [(2, "status", "0", 9, 11, None)])

    def test_other_text_is_no_input(self):
        path = self.save("job/out.log", "the watchdog barked: last enqueued nothing\n" * 10)
        self.save("job/stderr.txt", STATUS.format(0))
        database = self.ingest(os.path.join(self.scratch, "job"))
        self.assertNotIn((path,), self.rows(database, "SELECT path FROM profile"))


if __name__ == "__main__":
    unittest.main()
