"""Several runs in one database; several logs of one process."""

import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, AnswerTest, ask, run  # noqa: E402
from test_first_sentences import RankTest  # noqa: E402


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


class Copies(RankTest):
    def test_a_copy_is_no_further_log_of_its_rank(self):
        failed = {"fail_type": "ValueError", "fail_reason": "bad"}
        for suffix in ("abcdefgh", "ijklmnop"):
            self.rank(0, self.compile(0, 0), self.compile(0, 1, function="g"), suffix=suffix)
            # Of rank 1 the second one was copied before the log was complete.
            later = [self.compile(1, 1, function="g", metrics=failed)] if suffix[0] == "i" else []
            self.rank(1, self.compile(1, 0), *later, suffix=suffix)
        first, second = self.job_findings()
        self.assertEqual((first["title"], first["ranks"]), ("Rank 1 failed to compile 1/0 g: ValueError: bad", [1]))
        self.assertEqual((second["kind"], second["severity"], second["ranks"]), ("several_jobs", "note", [0, 1]))
        self.assertEqual(second["title"], "2 logs are copies of another one: dedicated_log_torch_trace_rank_0_ijklmnop.log has the same bytes as "
                                          "dedicated_log_torch_trace_rank_0_abcdefgh.log, and 1 more")
        self.assertIn("The longer one is taken", second["detail"])
        self.assertEqual([row["rank"] for row in ask("status", self.database)["rows"]], [0, 1])
        run("sql", self.database, second["query"])

    def test_a_cut_payload_is_of_a_copy_and_another_last_record_of_none(self):
        for name, last, is_copy in (("cut", self.compile(0, 1, 'y = x.cos()\n').replace("\ty = x.cos()\n", "\ty = x\n"), True),
                                    ("other", self.compile(0, 1, 'y = x.cos()\n', metrics={"duration_us": 7}), False)):
            whole = self.compile(0, 1, 'y = x.cos()\n', metrics={"duration_us": 9})
            if is_copy:  # it ends inside the payload
                last = last[:last.index("\ty = x\n") + len("\ty = x\n")]
            self.log(f"{name}/dedicated_log_torch_trace_rank_0_abcdefgh.log", self.compile(0, 0), whole)
            self.log(f"{name}/dedicated_log_torch_trace_rank_0_ijklmnop.log", self.compile(0, 0), last)
            found = self.findings(self.ingest(os.path.join(self.scratch, name), name=name))
            self.assertEqual([" copies of " in one["title"] or " copy of " in one["title"] for one in found if one["kind"] == "several_jobs"][:1], [True] * is_copy)

    def test_a_log_that_only_begins_at_the_same_time_is_no_copy(self):
        self.rank(0, self.compile(0, 0))
        self.rank(0, self.compile(0, 0, function="other"), suffix="ijklmnop")
        self.assertNotIn("several_jobs", {one["kind"] for one in self.job_findings()})


if __name__ == "__main__":
    unittest.main()
