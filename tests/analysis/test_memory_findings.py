"""Failed allocations as findings: who held the memory, and whether it lay in pieces."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import ROOT, AnswerTest, ask  # noqa: E402
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
import memory_snapshot  # noqa: E402
from memory_snapshot import frame  # noqa: E402


class MemoryFindings(AnswerTest):
    def findings(self, allocator, name="memory.pickle"):
        path = os.path.join(self.scratch, name)
        memory_snapshot.write(memory_snapshot.snapshot([allocator]), path)
        return ask("findings", self.ingest(path, name=name))["findings"]


class FailedAllocations(MemoryFindings):
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
        self.assertIn("1 event follows: the program continued", finding["detail"])
        self.assertIn("of rank 3", finding["title"])
        self.assertNotIn("The allocator held", finding["detail"])

    def test_a_healthy_snapshot_has_none(self):
        self.assertEqual([], self.findings(memory_snapshot.training(500)))


class Imbalance(MemoryFindings):
    """A rank that holds more than those of its role."""

    def found(self, sizes, more=(), source=12):
        folder = os.path.join(self.scratch, f"snapshots_{len(os.listdir(self.scratch))}")
        os.mkdir(folder)
        for rank, size in enumerate(sizes):
            allocator = memory_snapshot.Allocator()
            allocator.alloc(size << 20, [frame("keep", "/job/model.py", source)])
            for extra in more if rank == 2 else ():
                allocator.alloc(extra << 20, [frame("gather", "/job/train.py", 80)])
            memory_snapshot.write(memory_snapshot.snapshot([allocator]), os.path.join(folder, f"memory_rank_{rank}.pickle"))
        return [one for one in ask("findings", self.ingest(folder, name=os.path.basename(folder)))["findings"] if one["kind"] == "memory_imbalance"]

    def test_one_rank_holds_more(self):
        finding, = self.found([100, 100, 101, 100], more=[30])
        self.assertEqual(("note", [2]), (finding["severity"], finding["ranks"]))
        self.assertEqual("Rank 2 holds 137.4 MB at its peak, ranks 0,1,3 at most 104.9 MB", finding["title"])
        self.assertTrue(finding["detail"].startswith("31.5 MB of train.py:80 (other) are alive then, 31.5 MB more than at the peak of any other."), finding["detail"])
        self.assertEqual(4, finding["row_count"])

    def test_ranks_that_all_differ_or_are_too_few(self):
        self.assertEqual([], self.found([80, 100, 120, 140]))
        self.assertEqual([], self.found([100, 130]))
        self.assertEqual([], self.found([100, 100, 101, 100], more=[5]))


class Growth(MemoryFindings):
    """A leak is found; what a healthy program does is not."""

    STATE = [frame("step", "/job/train.py", 40)]
    LEAK = [frame("log", "/job/metrics.py", 7)]
    OTHER = [frame("forward", "/job/model.py", 30)]

    def grown(self, grow, steps=10, name="growth.pickle"):
        """`grow(allocator, step)` is what a step leaves."""
        allocator = memory_snapshot.Allocator()
        allocator.alloc(10 << 20, self.STATE)
        for step in range(steps):
            with allocator.step(step):
                grow(allocator, step)
                allocator.free(allocator.alloc(5 << 20, self.OTHER), self.OTHER)
        allocator.alloc(1, self.STATE)
        return [f for f in self.findings(allocator, name) if f["kind"] == "memory_growth"]

    def test_a_leak(self):
        finding, = self.grown(lambda allocator, _: allocator.alloc(1 << 20, self.LEAK), name="memory_rank_2.pickle")
        self.assertEqual(("warning", [2]), (finding["severity"], finding["ranks"]))
        self.assertEqual("Memory of device 0 of rank 2 grows by 1.0 MB a step at metrics.py:7", finding["title"])
        self.assertEqual("After each of the steps 5 to 9 more blocks were alive than before: 10.5 MB of metrics.py:7 (other) after step 9. What else "
                         "was alive changed by at most 0 B. Alive after step 9: 21.0 MB.", finding["detail"])
        self.assertEqual(5, finding["row_count"])

    def test_a_cache_that_fills(self):
        self.assertEqual([], self.grown(lambda allocator, step: allocator.alloc((16 << 20) >> step, self.LEAK)))

    def test_a_warm_up(self):
        self.assertEqual([], self.grown(lambda allocator, step: step < 2 and allocator.alloc(8 << 20, self.LEAK)))

    def test_a_block_that_is_replaced_by_a_larger_one(self):
        kept = []

        def grow(allocator, step):
            kept.append(allocator.alloc((step + 1) << 20, self.LEAK))
            if step:
                allocator.free(kept[-2], self.LEAK)
        self.assertEqual([], self.grown(grow))

    def test_what_another_line_gives_back(self):
        kept = []

        def grow(allocator, step):
            if not step:
                kept.extend(allocator.alloc(1 << 20, self.OTHER) for _ in range(10))
            allocator.free(kept.pop(), self.OTHER)
            allocator.alloc(1 << 20, self.LEAK)
        self.assertEqual([], self.grown(grow))

    def test_too_little_and_too_few_steps(self):
        self.assertEqual([], self.grown(lambda allocator, _: allocator.alloc(512, self.LEAK)))
        self.assertEqual([], self.grown(lambda allocator, _: allocator.alloc(1 << 20, self.LEAK), steps=5))


if __name__ == "__main__":
    unittest.main()
