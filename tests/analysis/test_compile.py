"""tlparse compile: one compile on one rank, beside the same one of the others of its role."""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, TLPARSE, ask, run  # noqa: E402
from test_first_sentences import RankTest, graph  # noqa: E402


def guards_of(*lines):
    return "\nTREE_GUARD_MANAGER:\n+- RootGuardManager\n" + "".join(
        f"| +- LAMBDA_GUARD: x > {line}  # if x > {line}:  # m.py:{line} in f\n" for line in lines)


def node(line, code, folder="/u"):
    return [f"# File: {folder}/m.py:{line} in f, code: {code}", f'y{line}: "f32[4]" = l_x_.add({line})']


class OneCompile(RankTest):
    def job(self):
        self.database = self.ingest(os.path.join(self.scratch, "job"), name="job")
        return self.database

    def branch(self, *lines, **more):
        nodes = ["l_x_ = L_x_"] + [part for line in lines for part in node(line, f"y = x + {line}")] + ["y = l_x_"]
        return self.compile(0, 0, graph('L_x_: "f32[4]"', *nodes), guards_of(12), **more)

    def test_a_log_that_ends_inside_the_backward_says_so(self):
        database = self.ingest(os.path.join(os.path.dirname(LOGS), "runs", "hang_in_backward"), name="hang_in_backward")
        answers = {rank: ask("compile", database, "0/0", "--rank", rank) for rank in ("0", "2")}
        self.assertEqual({rank: (one["status"], one["ends_in_backward"]) for rank, one in answers.items()}, {"0": ("ok", False), "2": ("ok", True)})
        text = run("compile", database, "0/0", "--rank", "2")
        self.assertIn("forward on rank 2: its backward is unfinished", text)
        self.assertIn("status: ok, and the log ends inside its backward", text)

    def test_lines_that_only_one_side_traced(self):
        for rank in range(3):
            lines = (11, 13, 14) if rank == 2 else (11, 16)
            self.rank(rank, self.branch(*lines).replace('"rank": 0', f'"rank": {rank}'))
        answer = ask("compile", self.job(), "0/0", "--rank", "2")
        self.assertEqual([one["line"] for one in answer["traced"]["lines"]], [11, 12, 13, 14])
        other, = answer["other_lines"]
        self.assertEqual((other["ranks"], [one["line"] for one in other["only_here"]], [one["line"] for one in other["only_there"]]),
                         ("ranks 0,1", [13, 14], [16]))
        text = " ".join(run("compile", self.database, "0/0", "--rank", "2").split())
        self.assertIn("traced: m.py:11-14 ranks 0,1 went m.py:11, 12, 16. here, not there: m.py:13 y = x + 13; m.py:14 y = x + 14. there, not here: m.py:16 y = x + 16", text)
        self.assertEqual(ask("compile", self.database, "0/0", "--rank", "0")["other_lines"][0]["ranks"], "rank 2")

    def test_equal_ranks_are_said_to_be_equal(self):
        for rank in range(2):
            self.rank(rank, self.branch(11).replace('"rank": 0', f'"rank": {rank}'))
        self.assertEqual(ask("compile", self.job(), "0/0")["other_lines"], [])
        self.assertIn("the others the same", " ".join(run("compile", self.database, "0/0").split()))

    def test_the_rank_that_failed_is_taken_and_its_message_is_whole(self):
        message = "the first line\n\n" + "".join(f"line {number} of the message\n" for number in range(400)) + "the last line"
        for rank in range(3):
            failed = {"fail_type": "ValueError", "fail_reason": message} if rank == 1 else {}
            self.rank(rank, self.compile(rank, 0, metrics=failed), self.compile(rank, 1, function="g", time="08:30:05.000000"))
        answer = ask("compile", self.job(), "0/0")
        self.assertEqual((answer["rank"], answer["status"]), (1, "failed"))
        self.assertEqual(answer["exceptions"][0]["message"], message)
        self.assertEqual(answer["statuses"], [{"ranks": "ranks 0,2", "text": "empty"}])
        self.assertEqual((answer["next"]["compile"], answer["next"]["function"]), ("1/0", "g"))
        text = run("compile", self.database, "0/0")
        self.assertLessEqual(len(text), 2500)
        self.assertIn("ValueError: the first line", text)
        self.assertIn("the last line", " ".join(text.split()))

    def test_options_that_one_side_has_are_not_compared(self):
        config = {"recompile_limit": 8, "suppress_errors": True}
        for rank in range(3):
            more = {0: {}, 1: {"dynamo_config": json.dumps(config)}, 2: {"dynamo_config": json.dumps({**config, "recompile_limit": 64})}}[rank]
            self.rank(rank, self.compile(rank, 0, metrics=more))
        answer = ask("compile", self.job(), "0/0", "--rank", "2")
        self.assertEqual(answer["option_changes"], [{"ranks": "rank 1", "text": "dynamo_config[recompile_limit]: 8 → 64"}])
        self.assertEqual(answer["options_unknown_of"], "rank 0")
        text = " ".join(run("compile", self.database, "0/0", "--rank", "2").split())
        self.assertIn("those of rank 0 are not in their logs", text)
        self.assertIn("dynamo_config[suppress_errors] = True", text)
        self.assertEqual(ask("compile", self.database, "0/0", "--rank", "0")["option_changes"], [])

    def test_what_is_not_there_is_said_in_one_line(self):
        self.rank(0, self.compile(0, 0), self.compile(0, 1, function="g"))
        self.job()
        for arguments, expected in ((("7/0",), "this launch has no compile '7/0'; it has 0/0, 1/0"), (("0/0", "--rank", "5"), "no input is of rank 5 in launch 1; there is rank 0"),
                                    (("0/0", "--process", "1"), "no input is of process 1 in launch 1; there are rank 0, process 4242"), (("0/0#2",), "'0/0#2'")):
            message = self.error("compile", self.database, *arguments)
            self.assertIn(expected, message)
            self.assertEqual(message.count("\n"), 1)

    def error(self, *arguments):
        done = subprocess.run([TLPARSE, *arguments], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        return done.stderr

    def test_the_use_of_a_label_after_a_reset(self):
        self.rank(0, self.compile(0, 0), self.compile(0, 0, function="again", time="08:30:09.000000"))
        self.job()
        self.assertEqual(ask("compile", self.database, "0/0")["function"]["function"], "f")
        second = ask("compile", self.database, "0/0#2")
        self.assertEqual((second["function"]["function"], second["next"]), ("again", None))


class RecordedJobs(RankTest):
    def test_every_compile_fits_and_says_what_the_log_has(self):
        for scenario in ("hang_in_compile", "diverge_config_2_6", "cache_some_ranks", "recompiles_2_6", "failures_2_6", "graph_breaks_2_6", "no_compiler"):
            database = self.ingest(os.path.join(LOGS, scenario), name=scenario)
            rows = json.loads(run("sql", database, "--json", "SELECT DISTINCT label, rank, status FROM compile WHERE NOT is_synthetic AND generation = 0"))["rows"]
            self.assertTrue(rows)
            for row in rows[:12]:
                of_rank = [] if row["rank"] is None else ["--rank", str(row["rank"])]
                answer = ask("compile", database, row["label"], *of_rank)
                self.assertEqual((answer["compile"], answer["rank"]), (row["label"], row["rank"]))
                text = run("compile", database, row["label"], *of_rank)
                self.assertLessEqual(len(text), 2500, (scenario, row))
                self.assertIn(f"status: {answer['status']}", text)

    def test_the_frames_above_it_are_not_said_to_call_it(self):
        """PyTorch 2.14 leaves out the frame of train(), which calls the lambda."""
        text = run("compile", self.ingest(os.path.join(LOGS, "cache_some_ranks"), name="frames"), "1/0")
        self.assertIn("called from: d_cache.py:15 in <module>: train()", text)

    def test_the_cause_of_a_miss_is_that_of_tlparse_cache(self):
        database = self.ingest(os.path.join(LOGS, "diverge_config_2_6"), name="d")
        answer = ask("compile", database, "0/0", "--rank", "2")
        self.assertTrue(any("inductor_config[max_fusion_size]: 64 → 13" in one["text"] for one in answer["cache_causes"]), answer["cache_causes"])


if __name__ == "__main__":
    unittest.main()
