"""Several runs in one database."""

import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, AnswerTest, run  # noqa: E402


class OtherRuns(AnswerTest):
    """What is said of a run does not depend on the other runs of its database."""

    def test_answers_of_a_run_are_those_of_a_database_of_its_own(self):
        others = [os.path.join(LOGS, name) for name in ("train_order", "failures", "cache_some_ranks", "graph_breaks_2_6", "guard_miss")]
        for scenario in ("hang_in_compile", "restart_elastic", "one_rank_cold"):
            alone = self.ingest(os.path.join(LOGS, scenario), name=scenario, run_name="this")
            shared = os.path.join(self.scratch, "shared.db")
            shutil.copy(alone, shared)
            for number, logs in enumerate(others):
                run(logs, "--db-only", "--db", shared, "--run", f"other {number}")
            for command in ("findings", "ranks", "cache", "collectives", "execution", "recompiles", "provenance", "status", "history",
                            "import-log", "import-log --unknown"):
                with self.subTest(f"{scenario}: {command}"):
                    answers = [run(*command.split(), database, "--run", "this", "--json") for database in (alone, shared)]
                    self.assertEqual(*answers)


if __name__ == "__main__":
    unittest.main()
