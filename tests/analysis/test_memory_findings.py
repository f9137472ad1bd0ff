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
    def findings(self, allocator, name="memory.pickle", pinned=None):
        path = os.path.join(self.scratch, name)
        memory_snapshot.write(memory_snapshot.snapshot([allocator], pinned=pinned), path)
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

    def test_pinned_memory_is_no_event_of_the_device(self):
        """The events of the host come behind those of the device: the program did not continue, and the device holds none of them."""
        pinned = memory_snapshot.PinnedAllocator()
        for _ in range(3):
            pinned.alloc(5 << 20, [frame("pin", "/job/data.py", 40)])
        allocator = self.allocator()
        allocator.oom(1 << 30, 4 << 20, [])
        finding, = self.findings(allocator, pinned=pinned)
        self.assertEqual("error", finding["severity"])
        self.assertIn("209.7 MB were alive: 209.7 MB of model.py:12 (other).", finding["detail"])
        self.assertNotIn("follow", finding["detail"])

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

    def test_it_holds_more_of_several_lines(self):
        finding, = self.found([100, 100, 101, 100], more=[12, 18, 1])
        self.assertTrue(finding["detail"].startswith("32.5 MB of train.py:80 (other) are alive then, 32.5 MB more than"), finding["detail"])
        folder = os.path.join(self.scratch, "lines")
        os.mkdir(folder)
        for rank in range(3):
            allocator = memory_snapshot.Allocator()
            allocator.alloc(100 << 20, [frame("keep", "/job/model.py", 12)])
            for size, line in ((20, 81), (15, 82), (1, 83)) if rank == 1 else ():
                allocator.alloc(size << 20, [frame("gather", "/job/train.py", line)])
            memory_snapshot.write(memory_snapshot.snapshot([allocator]), os.path.join(folder, f"memory_rank_{rank}.pickle"))
        finding, = ask("findings", self.ingest(folder, name="lines.db"))["findings"]
        self.assertTrue(finding["detail"].startswith("21.0 MB of train.py:81 (other) and 15.7 MB of train.py:82 (other) are alive then, "
                                                     "together 36.7 MB more than at the peak of any other."), finding["detail"])

    def test_ranks_that_all_differ_or_are_too_few(self):
        self.assertEqual([], self.found([80, 100, 120, 140]))
        self.assertEqual([], self.found([100, 130]))
        self.assertEqual([], self.found([100, 100, 101, 100], more=[5]))


class Growth(MemoryFindings):
    """A leak is found; what a healthy program does is not."""

    STATE = [frame("step", "/job/train.py", 40)]
    LEAK = [frame("log", "/job/metrics.py", 7)]
    OTHER = [frame("forward", "/job/model.py", 30)]

    def grown(self, grow, steps=10, name="growth.pickle", pinned=None, marks="ProfilerStep#{}"):
        """`grow(allocator, step)` is what a step leaves; `marks` names its annotation."""
        allocator = memory_snapshot.Allocator()
        allocator.alloc(10 << 20, self.STATE)
        for step in range(steps):
            allocator.annotate("START", marks.format(step))
            grow(allocator, step)
            allocator.free(allocator.alloc(5 << 20, self.OTHER), self.OTHER)
            if pinned:
                pinned.time_us = allocator.time_us
                pinned.alloc(1 << 20, self.LEAK)
                allocator.time_us = pinned.time_us
            allocator.annotate("END", marks.format(step))
        allocator.alloc(1, self.STATE)
        if pinned:
            pinned.time_us = allocator.time_us
            pinned.alloc(1, self.STATE)
        return [f for f in self.findings(allocator, name, pinned) if f["kind"] == "memory_growth"]

    def test_a_leak(self):
        finding, = self.grown(lambda allocator, _: allocator.alloc(1 << 20, self.LEAK), name="memory_rank_2.pickle")
        self.assertEqual(("warning", [2]), (finding["severity"], finding["ranks"]))
        self.assertEqual("Memory of device 0 of rank 2 grows by 1.0 MB a step at metrics.py:7", finding["title"])
        self.assertEqual("After each of the steps 5 to 9 more blocks were alive than before: 10.5 MB of metrics.py:7 (other) after step 9. What else "
                         "was alive changed by at most 0 B. Alive after step 9: 21.0 MB.", finding["detail"])
        self.assertEqual(5, finding["row_count"])

    def test_a_leak_of_many_lines(self):
        """A graph that is kept holds the tensors of each layer: no line grows by more than the others together."""
        def grow(allocator, step):
            for line in range(6):
                allocator.alloc((1 << 20) + (line << 10), [frame("forward", "/job/model.py", 50 + line)])
        finding, = self.grown(grow)
        self.assertEqual("Memory of device 0 grows by 6.3 MB a step, 1.1 MB of it at model.py:55", finding["title"])
        self.assertIn("10.5 MB of model.py:55 (other), 10.5 MB of model.py:54 (other), 10.5 MB of model.py:53 (other) and 3 more after step 9. "
                      "What else was alive changed by at most 0 B.", finding["detail"])
        self.assertEqual(30, finding["row_count"])

    def test_a_leak_of_batches_of_different_sizes(self):
        sizes = [5, 3, 7, 4, 6, 2, 8, 3, 5, 4]
        finding, = self.grown(lambda allocator, step: allocator.alloc(sizes[step] << 20, self.LEAK))
        self.assertEqual("Memory of device 0 grows by 4.6 MB a step at metrics.py:7", finding["title"])

    def test_steps_of_the_optimizer(self):
        """Without a profiler the hook of the optimizer still names its steps."""
        finding, = self.grown(lambda allocator, _: allocator.alloc(1 << 20, self.LEAK), marks="Optimizer.step#AdamW.step")
        self.assertEqual("Memory of device 0 grows by 1.0 MB a step at metrics.py:7", finding["title"])
        self.assertIn("steps 6 to 10", finding["detail"])
        self.assertEqual([], self.grown(lambda *_: None, marks="Optimizer.step#AdamW.step", name="healthy.pickle"))

    def test_pinned_memory_that_grows(self):
        finding, = self.grown(lambda *_: None, pinned=memory_snapshot.PinnedAllocator(), name="memory_rank_1.pickle")
        self.assertEqual("Pinned memory of rank 1 grows by 1.0 MB a step at metrics.py:7", finding["title"])

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
