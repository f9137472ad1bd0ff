"""Of a job of many ranks, answers are made when it is read, and given until something is written to the database."""

import os
import sqlite3
import sys
import unittest

from test_known_answers import ROOT, Client

sys.path.insert(0, os.path.join(ROOT, "tests", "analysis"))
from answers import AnswerTest, record, run  # noqa: E402

RANKS = 1030


class KeptAnswers(AnswerTest):
    def metrics(self, rank):
        ids = {"rank": rank, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        failed = {"fail_type": "ValueError", "fail_reason": "bad"} if rank == 7 else {}
        done = {"co_name": "forward", "co_filename": "/u/m.py", "co_firstlineno": 3, "duration_us": 1_000_000 + rank, **failed}
        return record({"dynamo_start": {"stack": []}, **ids}) + record({"compilation_metrics": done, **ids})

    def answers(self, database):
        client = Client(database)
        try:
            return {tool: client.call(tool) for tool in ("findings", "ranks", "cache")}
        finally:
            client.close()

    def test_many_ranks(self):
        for rank in range(RANKS):
            self.save(f"job/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", self.metrics(rank))
        database = self.ingest(os.path.join(self.scratch, "job"), name="job")
        kept = database + ".answers"
        given = self.answers(database)
        self.assertEqual((given["findings"]["findings"][0]["ranks"], given["ranks"]["participants"]), ([7], RANKS))
        with open(kept, "rb") as file:
            text = file.read()
        os.unlink(kept)
        self.assertEqual(self.answers(database), given)  # as they are computed
        with open(kept, "wb") as file:
            file.write(text.replace(b"ValueError", b"OtherError"))
        self.assertIn("OtherError", str(self.answers(database)["findings"]))  # so they are read
        with sqlite3.connect(database) as connection:
            connection.execute("UPDATE process SET pid = pid + 1 WHERE rank = 5")
        self.assertEqual(self.answers(database), given)  # and not when something was written

    def test_few_ranks_keep_nothing(self):
        database = self.ingest(self.save("a.log", self.metrics(0)), name="one")
        self.assertEqual([name for name in os.listdir(self.scratch) if "answers" in name], [])
        self.assertIn("forward", run("history", database))


if __name__ == "__main__":
    unittest.main()
