"""Several runs in one database."""

import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, AnswerTest, ask, run  # noqa: E402


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


def ranks_of(text):
    return [rank for one in text.split(",") for rank in range(int(one.split("-")[0]), int(one.split("-")[-1]) + 1)]


class EqualRanks(AnswerTest):
    def test_provenance_has_a_row_for_equal_ranks(self):
        """Each row of each rank, and no other, is in the row that stands for it."""
        shown = ("label", "direction", "kernel", "debug_handle", "code_line", "post_grad_nodes", "pre_grad_nodes", "file", "line", "function",
                 "code", "basis", "stack_ordinal", "kernel_id", "launch", "calls", "measured_us", "peak_bytes")
        for scenario in ("train_order", "cache_some_ranks", "restart_elastic", "one_rank_cold", "diverge_config_2_6"):
            with self.subTest(scenario):
                database = self.ingest(os.path.join(LOGS, scenario), name=scenario)
                folded, each = (ask("provenance", database, *options)["kernels"] for options in ((), ("--all",)))
                self.assertLess(len(folded), len(each))
                rows = [(rank, *(row[name] for name in shown)) for row in folded for rank in ranks_of(row["ranks"]["ranks"])]
                self.assertCountEqual(rows, [(row["rank"], *(row[name] for name in shown)) for row in each])
                for row in folded:
                    self.assertIn(row["rank"], ranks_of(row["ranks"]["ranks"]))
                    self.assertEqual(row["ranks"]["count"], len(ranks_of(row["ranks"]["ranks"])))
                self.assertEqual([row["ranks"] for row in each], [{"count": 1, "ranks": str(row["rank"])} for row in each])


if __name__ == "__main__":
    unittest.main()
