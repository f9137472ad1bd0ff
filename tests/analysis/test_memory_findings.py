"""Failed allocations as findings: who held the memory, and whether it lay in pieces."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import ROOT, AnswerTest, ask  # noqa: E402
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
import memory_snapshot  # noqa: E402
from memory_snapshot import frame  # noqa: E402


class FailedAllocations(AnswerTest):
    def findings(self, allocator, name="memory.pickle"):
        path = os.path.join(self.scratch, name)
        memory_snapshot.write(memory_snapshot.snapshot([allocator]), path)
        return ask("findings", self.ingest(path, name=name))["findings"]

    def allocator(self):
        """Every second block of 20 segments is freed: of 400 MB half is unused, in pieces of 10 MB."""
        allocator = memory_snapshot.Allocator()
        stacks = [[frame("keep", "/job/model.py", 12)], [frame("scratch", "/job/model.py", 13)]]
        blocks = [allocator.alloc(10 << 20, stacks[i % 2]) for i in range(40)]
        for address in blocks[1::2]:
            allocator.free(address, stacks[1])
        return allocator

    def test_memory_in_pieces(self):
        allocator = self.allocator()
        allocator.oom(50 << 20, 4 << 20, [frame("forward", "/job/model.py", 30)])
        finding, = self.findings(allocator)
        self.assertEqual(("out_of_memory", "error"), (finding["kind"], finding["severity"]))
        self.assertEqual("An allocation of 52.4 MB failed on device 0 at model.py:30", finding["title"])
        self.assertIn("209.7 MB were alive: 209.7 MB of model.py:12 (other).", finding["detail"])
        self.assertIn("held 419.4 MB, 209.7 MB of it unused, at most 10.5 MB in one piece: with what the device had free enough", finding["detail"])
        self.assertEqual([("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")], [(c["name"], c["value"]) for c in finding["changes"]])
        self.assertEqual([("memory_event", 1)], [(row["table"], finding["row_count"]) for row in finding["rows"]])

    def test_not_enough_memory(self):
        allocator = self.allocator()
        allocator.oom(1 << 30, 4 << 20, [])
        finding, = self.findings(allocator)
        self.assertEqual("An allocation of 1.1 GB failed on device 0", finding["title"])
        self.assertNotIn("in one piece:", finding["detail"])
        self.assertEqual([], finding["changes"])

    def test_a_program_that_continued(self):
        allocator = self.allocator()
        allocator.oom(50 << 20, 4 << 20, [])
        allocator.alloc(1000, [])
        finding, = self.findings(allocator, "memory_rank_3.pickle")
        self.assertEqual(("warning", [3]), (finding["severity"], finding["ranks"]))
        self.assertIn("1 events follow: the program continued", finding["detail"])
        self.assertIn("of rank 3", finding["title"])
        self.assertNotIn("The allocator held", finding["detail"])

    def test_a_healthy_snapshot_has_none(self):
        self.assertEqual([], self.findings(memory_snapshot.training(500)))


if __name__ == "__main__":
    unittest.main()
