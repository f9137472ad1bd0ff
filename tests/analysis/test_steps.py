"""What the answers about a job ask of SQLite grows with its ranks, not with their square.

Environment: COUNT_STEPS_LIBRARY is the library of count_steps.cc.
"""

import glob
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
import many_ranks  # noqa: E402
from answers import LOGS, ROOT, TLPARSE, AnswerTest  # noqa: E402

ANSWERS = ("findings", "ranks", "cache", "collectives", "execution", "status")
RANKS = 10240


class Steps(AnswerTest):
    def make(self, count):
        directory = os.path.join(self.scratch, f"job_{count}")
        template = sorted(glob.glob(os.path.join(LOGS, "train_order", "*_rank_0_*")))[0]
        subprocess.run([sys.executable, os.path.join(ROOT, "tests", "tools", "make_job.py"), template, directory, str(count), "--slim",
                        "--plant", "none"], check=True, stdout=subprocess.DEVNULL)
        os.unlink(os.path.join(directory, "plan.json"))
        return self.ingest(directory, name=f"job_{count}")

    def steps(self, answer, database):
        path = os.path.join(self.scratch, "steps")
        environment = dict(os.environ, LD_PRELOAD=os.environ["COUNT_STEPS_LIBRARY"], COUNT_STEPS=path)
        subprocess.run([TLPARSE, answer, database, "--json"], check=True, stdout=subprocess.DEVNULL, env=environment)
        with open(path, encoding="ascii") as file:
            count = int(file.read())
        os.unlink(path)
        return count

    def make_dumps(self, count):
        """Flight-recorder dumps of a job of `count` ranks, each with 100 collectives."""
        directory = os.path.join(self.scratch, f"dumps_{count}")
        os.mkdir(directory)
        for rank in range(count):
            entries = [{"record_id": i, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": i + 1, "p2p_seq_id": 0, "op_id": i + 1,
                        "profiling_name": "nccl:all_reduce", "time_created_ns": 1_700_000_000_000_000_000 + i * 1_000_000 + rank, "is_p2p": False,
                        "input_sizes": [[8]], "input_dtypes": ["Float"], "output_sizes": [[8]], "output_dtypes": ["Float"], "state": "completed",
                        "retired": True, "timeout_ms": 600_000} for i in range(100)]
            with open(os.path.join(directory, f"fr_trace_rank_{rank}.json"), "w", encoding="ascii") as file:
                json.dump({"version": "2.10", "pg_config": {}, "pg_status": {}, "entries": entries}, file)
        return self.ingest(directory, name=f"dumps_{count}")

    def test_answers_are_linear_in_ranks(self):
        self.check(ANSWERS, [self.make(count) for count in (8, 16, 32)])

    def test_roles_are_parts_of_the_job_in_memory(self):
        """What was read of the whole job is not read again for each of two roles."""
        template = sorted(glob.glob(os.path.join(LOGS, "train_order", "*_rank_0_*")))[0]
        steps = []
        for stages in (1, 2):
            directory = os.path.join(self.scratch, f"stages_{stages}")
            os.mkdir(directory)
            ranks = many_ranks.Ranks(template, 32, stages)
            ranks.kind_of_rank.clear()
            for rank in range(32):
                ranks.write(rank, directory)
            steps.append(self.steps("findings", self.ingest(directory, name=f"stages_{stages}")))
        self.assertLess(steps[1], 1.5 * steps[0], steps)

    def test_answers_are_linear_in_the_ranks_of_dumps(self):
        self.check(("findings", "collectives"), [self.make_dumps(count) for count in (8, 16, 32)])

    def check(self, answers, databases):
        for answer in answers:
            few, some, many = (self.steps(answer, database) for database in databases)
            # a + b n + c n², from three numbers of ranks.
            square = ((many - some) - 2 * (some - few)) / (6 * 8 * 8)
            linear = (some - few) / 8 - 3 * 8 * square
            with self.subTest(answer, steps=(few, some, many)):
                self.assertGreater(few, 100)
                self.assertLess(square * RANKS, linear, "most steps of ten thousand ranks would be those that grow with their square")


if __name__ == "__main__":
    unittest.main()
