"""What the answers about a job ask of SQLite grows with its ranks, not with their square.

Environment: COUNT_STEPS_LIBRARY is the library of count_steps.cc.
"""

import glob
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
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

    def test_answers_are_linear_in_ranks(self):
        databases = [self.make(count) for count in (8, 16, 32)]
        for answer in ANSWERS:
            few, some, many = (self.steps(answer, database) for database in databases)
            # a + b n + c n², from three numbers of ranks.
            square = ((many - some) - 2 * (some - few)) / (6 * 8 * 8)
            linear = (some - few) / 8 - 3 * 8 * square
            with self.subTest(answer, steps=(few, some, many)):
                self.assertGreater(few, 100)
                self.assertLess(square * RANKS, linear, "most steps of ten thousand ranks would be those that grow with their square")


if __name__ == "__main__":
    unittest.main()
