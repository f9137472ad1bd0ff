"""Reports of NCCL's RAS subsystem, as its source and documentation print them (none was recorded): rows, and what is said of them."""

import json
import os
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "analysis"))
from answers import AnswerTest, ask  # noqa: E402

HEAD = """NCCL version 2.30.7 compiled with CUDA 12.8
CUDA runtime version 12080, driver version 13000

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          8        8

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
"""
HEALTHY = HEAD + """    0         1         2         4         8         8   RUNNING      OK

Errors
======

Warnings
========

"""
BEHIND = HEAD + """    0         1         2         4         8         8   RUNNING  MISMATCH

Errors
======

Warnings
========

#0-0 (78db921d1c117b4a) MISMATCH
  Communicator ranks have different AllReduce operation counts
  7 ranks have launched up to operation {0}
  Rank 7 has launched up to operation {1} -- GPU 3 managed by process 1650386 on node 10.0.0.2

"""
GONE = HEAD + """    0         1         2       3-4         8         7   RUNNING  INCOMPLETE

Errors
======

{0}
    Process 3748990 on node 10.0.0.2 managing GPU 3

#0-0 (1bdb83b038775869) INCOMPLETE
  Missing communicator data from 1 rank
  {1}

Warnings
========

TIMEOUT
  Encountered 2 communication timeouts while gathering communicator data

"""
NO_DATA = "INCOMPLETE\n  Missing communicator data from 1 job process"
DEAD = "DEAD\n  1 job process is considered dead (unreachable via the RAS network)"
# As NCCL 2.24 and 2.25 print it.
OLD = HEAD[HEAD.index("Job summary"):] + """    0         1         4         8        32        32   RUNNING  MISMATCH

Errors
======

Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different collective operation counts
  26 ranks have launched up to operation 6650
  6 ranks have launched up to operation 6649
  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210
  Rank 2 -- GPU 2 (NVML 6) managed by process 483074 on node 172.16.64.210
  Rank 3 -- [process information not found]
  Communicator ranks have different status
  26 ranks have status UNKNOWN
  4 ranks have status RUNNING

"""


def of_json(counts, missing=()):
    ranks = [{"rank": rank, "host": "10.0.0.1", "pid": 100 + rank, "cuda_dev": rank, "nvml_dev": rank,
              "status": {"init_state": 0, "async_error": 6 if rank == 1 else 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False},
              "collective_counts": {"Broadcast": 0, "AllReduce": count}} for rank, count in enumerate(counts)]
    lost = [{"rank": rank, "host": "10.0.0.1", "pid": 100 + rank, "cuda_dev": rank, "nvml_dev": rank,
             "status": {"unresponsive": True, "considered_dead": False}} for rank in missing]
    return json.dumps({"nccl_version": "2.29.1", "timestamp": "2026-11-19 13:06:53", "communicators_count": 1, "communicators": [
        {"hash": "0xae94423cfbb2ef4a", "size": len(ranks) + len(lost), "ranks_count": len(ranks), "missing_ranks_count": len(lost), "ranks": ranks,
         "missing_ranks": lost}], "ras": {"collection_time_sec": 0.0, "timeouts_count": 1}}, indent=2)


class NcclRas(AnswerTest):
    def ask(self, *texts):
        for at, text in enumerate(texts):
            self.save(f"job/ras{at}.txt", text)
        self.database = self.ingest(os.path.join(self.scratch, "job"))
        return ask("findings", self.database)["findings"]

    def rows(self, query):
        connection = sqlite3.connect(self.database)
        self.addCleanup(connection.close)
        return connection.execute(query).fetchall()

    def test_healthy(self):
        self.assertEqual(self.ask(HEALTHY), [])
        self.assertEqual(self.rows("SELECT number, line, nccl_version, process_count, gpu_count, timeout_count FROM nccl_ras_report"), [(1, 4, "2.30.7", 8, 8, None)])
        self.assertEqual(self.rows("SELECT number, communicator_count, rank_count, status, errors FROM nccl_ras_group"), [(0, 1, 8, "RUNNING", "OK")])
        self.assertEqual(self.rows("SELECT * FROM import_log"), [])

    def test_one_report_is_a_moment(self):
        first, = self.ask(BEHIND.format(64, 60))
        self.assertEqual((first["kind"], first["severity"], first["ranks"]), ("collective_not_reached", "note", [7]))
        self.assertEqual(first["title"], "Rank 7 of communicator 78db921d1c117b4a had launched 60 AllReduce operations, 7 ranks 64")
        self.assertTrue(first["rows"])

    def test_numbers_that_move_are_a_note(self):
        first, = self.ask(BEHIND.format(64, 60) + BEHIND.format(70, 60))
        self.assertEqual(first["severity"], "note")
        self.assertIn("7 ranks 70", first["title"])

    def test_numbers_that_stay_are_a_warning(self):
        first, = self.ask(BEHIND.format(70, 59) + BEHIND.format(70, 60) + BEHIND.format(70, 60))
        self.assertEqual((first["severity"], first["ranks"]), ("warning", [7]))
        self.assertEqual(first["title"], "Rank 7 of communicator 78db921d1c117b4a had launched 60 AllReduce operations, 7 ranks 70, the same in the last 2 reports")
        self.assertIn("1650386 on node 10.0.0.2", first["try"])
        lines = ask("findings", self.database, "--evidence")["findings"][0]["log_lines"]
        self.assertEqual([(one["line"], one["text"]) for one in lines],
                         [(83, "rank 7 of 78db921d1c117b4a: launched 60 AllReduce"), (82, "7 ranks of 78db921d1c117b4a: launched 70 AllReduce")])

    def test_process_without_data_and_dead(self):
        first, = self.ask(GONE.format(NO_DATA, "Rank 7 -- GPU 3 managed by process 3748990 on node 10.0.0.2"))
        self.assertEqual((first["kind"], first["severity"], first["ranks"]), ("crashed", "warning", [7]))
        self.assertEqual(first["title"], "NCCL's RAS got no data from process 3748990 on node 10.0.0.2 (GPU 3)")
        self.assertEqual(self.rows("SELECT timeout_count FROM nccl_ras_report"), [(2,)])
        self.assertEqual(self.rows("SELECT topic, rank, rank_count, pid FROM nccl_ras_state"), [("missing", 7, 1, 3748990)])

    def test_dead(self):
        first, = self.ask(GONE.format(DEAD, "The missing rank: 7"))
        self.assertEqual((first["severity"], first["ranks"]), ("error", [7]))
        self.assertEqual(first["title"], "NCCL's RAS holds process 3748990 on node 10.0.0.2 (GPU 3) for dead")

    def test_each_process_has_its_own_ranks(self):
        report = json.loads(of_json([5, 5], missing=[2, 3]))
        report["communicators"][0]["missing_ranks"][1]["status"]["considered_dead"] = True
        details = {one["title"]: one["detail"] for one in self.ask(json.dumps(report))}
        self.assertIn("Missing: rank 3 of", details["NCCL's RAS holds process 103 on node 10.0.0.1 (GPU 3) for dead"])
        self.assertIn("Missing: rank 2 of", details["NCCL's RAS got no data from process 102 on node 10.0.0.1 (GPU 2)"])

    def test_an_old_version_names_some_and_counts_others(self):
        first, = self.ask(OLD)
        self.assertEqual(first["title"], "Ranks 0,2,3 and 3 more of communicator 27a079b828ff1a75 had launched 6649 collective operations, 26 ranks 6650")
        self.assertEqual(self.rows("SELECT operation, rank, rank_count, launched, gpu FROM nccl_ras_state WHERE topic = 'launched' ORDER BY id"), [
            ("collective", None, 26, 6650, None), ("collective", 0, 1, 6649, "0"), ("collective", 2, 1, 6649, "2 (NVML 6)"), ("collective", 3, 1, 6649, None),
            ("collective", None, 3, 6649, None)])
        self.assertEqual(self.rows("SELECT text, rank_count FROM nccl_ras_state WHERE topic = 'status'"), [("UNKNOWN", 26), ("RUNNING", 4)])

    def test_json(self):
        found = self.ask(of_json([64, 64, 60], missing=[3]))
        self.assertEqual([one["title"] for one in found], [
            "NCCL reports an error on rank 1 of communicator ae94423cfbb2ef4a: Remote process error",
            "NCCL's RAS got no data from process 103 on node 10.0.0.1 (GPU 3)",
            "Rank 2 of communicator ae94423cfbb2ef4a had launched 60 AllReduce operations, 2 ranks 64"])
        self.assertEqual(self.rows("SELECT taken_at, timeout_count, nccl_version FROM nccl_ras_report"), [("2026-11-19 13:06:53", 1, "2.29.1")])
        self.assertIn(("Broadcast", None, 3, 0), self.rows("SELECT operation, rank, rank_count, launched FROM nccl_ras_state WHERE topic = 'launched'"))

    def test_many_communicators_are_one_finding(self):
        text = BEHIND.format(64, 60)
        block = text[text.index("#0-0"):]
        other = block.replace("78db921d1c117b4a", "11db921d1c117b4a").replace("operation 60", "operation 0").replace("has launched up to operation 0",
                                                                                                             "has not launched any operations")
        first, = self.ask(text + other)
        self.assertEqual(first["title"], "Rank 7 of communicator 11db921d1c117b4a had launched no AllReduce operations, 7 ranks 64")
        self.assertIn("1 number more", first["detail"])

    def test_cut_and_odd_lines_lose_nothing(self):
        text = BEHIND.format(64, 60)
        for end in range(len(HEAD), len(text), 7):
            with self.subTest(end=end):
                self.save("cut/ras.txt", text[:end])
                self.ingest(os.path.join(self.scratch, "cut"))
        self.ask(HEALTHY + "what is this?\nand\n")
        self.assertEqual(self.rows("SELECT code, line_count FROM import_log"), [("foreign_line", 2)])
        self.ask(of_json([1, 2])[:-40])
        self.assertIn(("damaged_input",), self.rows("SELECT code FROM import_log"))


if __name__ == "__main__":
    unittest.main()
