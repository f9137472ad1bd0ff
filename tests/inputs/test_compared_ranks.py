"""Exceptions with which PyTorch says that ranks differ, as 2.15.0 words them, and how ranks ended that failed alike."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "analysis"))
from answers import AnswerTest, ask, record  # noqa: E402

TRACEBACK = """[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File "/u/train.py", line {line}, in main
[rank{rank}]:     step()
[rank{rank}]:   File "/usr/lib/python3/dist-packages/torch/distributed/c10d_logger.py", line 83, in wrapper
[rank{rank}]:     return func(*args, **kwargs)
[rank{rank}]: RuntimeError: {message}
"""
CALL = ("Rank {rank} is running collective: CollectiveFingerPrint(SequenceNumber=3, OpType={op}, TensorShape={shape}, TensorDtypes=Float, "
        "TensorDeviceTypes=TensorOptions(dtype=float (default), device=cpu, layout=Strided (default), requires_grad=false (default)))")


def traceback(rank, message, line=9):
    return TRACEBACK.format(rank=rank, line=line, message=message)


def mismatch(*calls):
    """Each rank compares its call with that of the first that has another one."""
    texts = []
    for rank, call in enumerate(calls):
        other = next(one for one in range(len(calls)) if calls[one][:2] != call[:2])
        both = [CALL.format(rank=one, op=calls[one][0], shape=calls[one][1]) for one in (rank, other)]
        texts.append(traceback(rank, f"Detected mismatch between collectives on ranks. {both[0]}, but {both[1]}.", line=call[2]))
    return texts


class ComparedRanks(AnswerTest):
    def first(self, *texts):
        self.save("job/stderr.txt", "step 1: loss 0.5\n", *texts)
        return ask("findings", self.ingest(os.path.join(self.scratch, "job")))["findings"][0]

    def test_another_call_of_one_rank(self):
        """Two of three raised the same at one line: they are not at fault by that."""
        first = self.first(*mismatch(("ALLREDUCE", "[8, 8]", 9), ("_ALLGATHER_BASE", "[8, 8]", 7), ("ALLREDUCE", "[8, 8]", 9)))
        self.assertEqual("Rank 1 issued all_gather_into_tensor where ranks 0,2 issued all_reduce: #3", first["title"])
        self.assertEqual(("collective_divergence", "error", [1], 7), (first["kind"], first["severity"], first["ranks"], first["place"]["line"]))
        self.assertEqual("compare train.py:7 with train.py:9: look for a branch that depends on the rank or on data", first["try"])

    def test_another_size_of_one_rank(self):
        first = self.first(*mismatch(("ALLREDUCE", "[8, 8]", 9), ("ALLREDUCE", "[8, 8]", 9), ("ALLREDUCE", "[8, 6]", 9)))
        self.assertEqual(("Rank 2 issued all_reduce of [8, 6] Float where ranks 0,1 issued all_reduce of [8, 8] Float: #3", [2]),
                         (first["title"], first["ranks"]))

    def test_two_ranks_have_no_majority(self):
        first = self.first(*mismatch(("ALLREDUCE", "[8]", 9), ("BROADCAST", "[8]", 9)))
        self.assertEqual(("Rank 0 issued all_reduce where rank 1 issued broadcast: #3", [0, 1]), (first["title"], first["ranks"]))

    def test_numbers_of_a_group_are_no_ranks(self):
        """Ranks 2 and 3 are 0 and 1 of their group: neither rank 0 nor rank 1 of the job is named."""
        texts = mismatch(("ALLREDUCE", "[8]", 9), ("BROADCAST", "[8]", 9))
        first = self.first(*(text.replace(f"[rank{rank}]", f"[rank{rank + 2}]") for rank, text in enumerate(texts)))
        self.assertEqual(("Ranks 2,3 raised RuntimeError: Detected mismatch between collectives on ranks", [2, 3]), (first["title"], first["ranks"]))

    def test_another_model_of_one_rank(self):
        say = "DDP expects same model across all ranks, but Rank {} has {} params, while rank {} has inconsistent {} params."
        first = self.first(traceback(2, say.format(2, 4, 1, 6)), traceback(0, say.format(0, 4, 1, 6)), traceback(1, say.format(1, 6, 0, 4)))
        self.assertEqual("The model of rank 1 has 6 parameters in DistributedDataParallel, that of ranks 0,2 has 4", first["title"])
        self.assertEqual(("crashed", [1], 9), (first["kind"], first["ranks"], first["place"]["line"]))

    def test_a_rank_that_did_not_reach_a_barrier(self):
        """Rank 2 blames rank 0, which had gone since rank 1 was missing."""
        first = self.first(
            traceback(2, "Rank 2 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0."),
            traceback(0, "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 8000 ms"))
        self.assertEqual("Rank 1 had not reached monitored_barrier after 8.00 s: rank 0 gave up at train.py:9", first["title"])
        self.assertEqual([1], first["ranks"])

    def test_numbers_of_the_group_of_a_barrier(self):
        """Rank 0 waits in a group of some ranks: rank 1 of the job need not be in it."""
        late = "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 8000 ms"
        missing = "Rank 1 had not reached monitored_barrier after 8.00 s: rank 0 gave up at train.py:9"
        unknown = "Rank 0 gave up at monitored_barrier (train.py:9) after 8.00 s: another rank had not reached it"
        for call, title, ranks in (("dist.monitored_barrier()", missing, [1]), ("dist.monitored_barrier(timeout=short)", missing, [1]),
                                   ("dist.monitored_barrier(group=pair)", unknown, []), ("dist.monitored_barrier(pair)", unknown, []),
                                   ("dist.monitored_barrier(timeout=short,", unknown, []), ("step()", unknown, [])):
            with self.subTest(call):
                first = self.first(traceback(0, late).replace("step()", call))
                self.assertEqual((title, ranks), (first["title"], first["ranks"]))
        self.assertIn(" Not there: number 1 of the group in which rank 0 waited. If that is a group of some ranks, these are not ranks of the job.", first["detail"])

    def test_a_rank_that_did_not_join(self):
        key = "wait timeout after 10000ms, keys: /default_pg/0//cpu//0/2"
        first = self.first(traceback(0, key), traceback(2, "Gloo connectFullMesh failed with Connection reset by peer"), traceback(1, key))
        self.assertEqual(("Rank 2 had not joined the process group when ranks 0,1 gave up waiting at train.py:9", [2]), (first["title"], first["ranks"]))

    def test_ranks_that_one_signal_ended_at_one_line(self):
        self.save("job/dedicated_log_torch_trace_rank_0_x.log", record({"str": ["/u/m.py", 1]}))
        us = 1_795_854_601_000_000
        ends = [{"pid": 100, "parent_pid": 99, "started_us": us, "ended_us": us + 900_000, "exit_code": 1}]
        ends += [{"pid": 200 + rank, "parent_pid": 100, "rank": rank, "started_us": us, "ended_us": us + 300_000 + rank, "signal": 11,
                  "at": "/u/m.py:7 in main, which called __init__"} for rank in range(3)]
        run = {"version": 1, "command": ["torchrun"], "directory": "/u", "host": "h", "started_us": us, "exit_code": 1}
        for count, subject in ((3, "Each of the 3 ranks was"), (2, "Ranks 0,1 were")):
            if count == 2:
                ends[3].update(signal=15)
            with self.subTest(subject), open(os.path.join(self.scratch, "job", "run.json"), "w") as file:
                json.dump({**run, "processes": ends}, file)
            first = ask("findings", self.ingest(os.path.join(self.scratch, "job")))["findings"][0]
            self.assertEqual((f"{subject} ended by SIGSEGV at m.py:7", "crashed"), (first["title"], first["kind"]))

    def test_a_launcher_that_was_killed(self):
        """No rank failed: they are orphans."""
        self.save("job/dedicated_log_torch_trace_rank_0_x.log", record({"str": ["/u/m.py", 1]}))
        us = 1_795_854_601_000_000
        ends = [{"pid": 100, "parent_pid": 99, "started_us": us, "ended_us": us + 900_000, "signal": 9}]
        ends += [{"pid": 200 + rank, "parent_pid": 100, "rank": rank, "started_us": us} for rank in range(2)]
        with open(os.path.join(self.scratch, "job", "run.json"), "w") as file:
            json.dump({"version": 1, "command": ["torchrun"], "directory": "/u", "host": "h", "started_us": us, "exit_code": 137, "processes": ends}, file)
        first = ask("findings", self.ingest(os.path.join(self.scratch, "job")))["findings"][0]
        self.assertEqual(("The command was ended by SIGKILL", "error", []), (first["title"], first["severity"], first["ranks"]))
        self.assertTrue(first["detail"].endswith(" Ranks 0,1 lived on."), first["detail"])


if __name__ == "__main__":
    unittest.main()
