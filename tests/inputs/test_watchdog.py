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
                         [(2, "status", "0", 9, 11, None), (2, "timeout", "0", 9, None, None)])
        first = ask("findings", database)["findings"][0]
        self.assertEqual(first["title"], "ALLREDUCE #9 of group 0 timed out on rank 2 after 1 s")

    def first_of(self, *texts):
        self.save("job/stderr.txt", *texts)
        return ask("findings", self.ingest(os.path.join(self.scratch, "job")))["findings"][0]

    def test_time_outs_alone(self):
        """Before PyTorch 2.2, and where the rest of the text is missing, no line tells how far ranks had come."""
        line = ("[E ProcessGroupNCCL.cpp:737] [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, "
                "Timeout(ms)=1800000) ran for 1802212 milliseconds before timing out.\n")
        first = self.first_of(*[line.format(rank, number) for rank, number in ((1, 95), (3, 95), (1, 96), (0, 41))])
        self.assertEqual((first["kind"], first["severity"], first["ranks"]), ("stuck", "error", [1, 3]))
        self.assertEqual(first["title"], "ALLREDUCE #95 timed out on ranks 1,3 after 1802 s")
        self.assertIn("ALLREDUCE #41 timed out on rank 0.", first["detail"])

    def test_last_words_of_a_process(self):
        first = self.first_of("terminate called after throwing an instance of 'c10::DistBackendError'\n"
                              "  what():  [PG 3 Rank 5] Process group watchdog thread terminated with exception: [Rank 5] Watchdog caught collective operation timeout: "
                              "WorkNCCL(SeqNum=91, OpType=_ALLGATHER_BASE, NumelIn=2, NumelOut=4, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n")
        self.assertEqual((first["title"], first["ranks"]), ("_ALLGATHER_BASE #91 of group 3 timed out after 600 s", []))  # rank 5 is one of the group

    def test_lines_that_a_terminal_has_broken(self):
        whole = TIMEOUT.format(1) + STATUS.format(1) + SIGNAL.format(2, 166)
        expected = self.first_of(whole)["title"]
        self.assertIn("Rank 2 had not enqueued ALLREDUCE #167", expected)
        for width in (80, 137, 200):
            broken = [line[at:at + width] + "\n" for line in whole.splitlines() for at in range(0, len(line), width)]
            self.assertEqual(self.first_of(*broken)["title"], expected, width)
        cut = self.first_of(TIMEOUT.format(1).split("OpType=ALL")[0] + "OpType=ALL")
        self.assertEqual(cut["title"], "collective #167 timed out on rank 1", "half a name is none")

    def test_a_dump_signal_alone(self):
        here = SIGNAL.format(1, 166).replace("from  rank 1", "from this local rank")
        first = self.first_of(here, SIGNAL.format(0, 166))
        self.assertEqual((first["title"], first["ranks"]), ("A collective timed out on rank 1", [1]))
        self.assertIn("ranks 0,1: #166, #166. No call of these was open: it is of another group.", first["detail"])
        both = self.first_of(TIMEOUT.format(3), STATUS.format(3), SIGNAL.format(0, 166))
        self.assertIn("A collective timed out on rank 1 as well, by what it told others.", both["detail"])

    def test_a_watchdog_that_hangs(self):
        hung = ("[rank{0}]:[E626 05:14:36.393067540 ProcessGroupNCCL.cpp:1743] [PG ID 0 PG GUID 0(default_pg) Rank {0}] ProcessGroupNCCL's watchdog got stuck "
                "for 480 seconds without making progress in monitoring enqueued collectives.\n")
        first = self.first_of(hung.format(5), hung.format(7))
        self.assertEqual((first["kind"], first["title"], first["ranks"]), ("stuck", "NCCL's watchdog hung on ranks 5,7 for 480 s", [5, 7]))
        beside = self.first_of(TIMEOUT.format(1), STATUS.format(1), hung.format(5))
        self.assertEqual([one["title"] for one in beside["evidence"]], ["NCCL's watchdog hung on rank 5 for 480 s"])

    def test_other_text_is_no_input(self):
        path = self.save("job/out.log", "the watchdog barked: last enqueued nothing\n" * 10)
        self.save("job/stderr.txt", STATUS.format(0))
        database = self.ingest(os.path.join(self.scratch, "job"))
        self.assertNotIn((path,), self.rows(database, "SELECT path FROM profile"))


if __name__ == "__main__":
    unittest.main()
