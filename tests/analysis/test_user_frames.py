"""--stack: the user's frames of what rows show, wherever the inputs have a stack; none of PyTorch's."""

import json
import os
import pickle
import re
import shutil
import unittest

from answers import ROOT, AnswerTest, ask, run

RUNS = os.path.join(ROOT, "fixtures", "runs")


def stacks(*arguments):
    """The lines that begin with "stack of", each whole."""
    found, indent = [], None
    for line in run(*arguments).splitlines():
        own = len(line) - len(line.lstrip())
        if line.lstrip().startswith("stack of"):
            found.append(line.strip())
            indent = own
        elif indent is not None and own == indent + 2:
            found[-1] += " " + line.strip()
        else:
            indent = None
    return found


class UserFrames(AnswerTest):
    def check(self, lines, *arguments):
        self.assertTrue(lines, arguments)
        for line in lines:
            self.assertRegex(line, r"^stack of .*: [\w.]+:\d+ in .", arguments)
            self.assertNotRegex(line, r"torch/|distributed_c10d\.py|eval_frame\.py", arguments)
        without = [one for one in arguments if one != "--stack"]
        self.assertNotIn("stack of", run(*without))

    def test_calls_of_dumps(self):
        database = self.ingest(os.path.join(RUNS, "fr_wrong_op"), name="wrong_op")
        asked = ("collectives", database, "--stack", "--all")
        lines = stacks(*asked)
        self.check(lines, *asked)
        with open(os.path.join(RUNS, "fr_wrong_op", "fr_hang_trace_rank_2"), "rb") as file:
            entries = pickle.load(file)["entries"]
        entry = next(one for one in entries if one["process_group"][0] == "1" and one["collective_seq_id"] == 3)
        frames = [f"{os.path.basename(frame['filename'])}:{frame['line']} in {frame['name']}" for frame in entry["frames"]
                  if os.path.basename(frame["filename"]) in ("fr_job.py", "common.py")]
        own, = [line for line in lines if line.startswith("stack of #3 all_gather (rank 2)")]
        self.assertEqual(own.partition(": ")[2], ", ".join(frames))
        self.assertTrue([line for line in lines if line.startswith("stack of #3 all_reduce (rank 0)")], lines)

    def test_lines_of_source(self):
        database = self.ingest(os.path.join(RUNS, "p_ddp"), name="ddp")
        asked = ("source", database, "p_ddp.py:16", "--stack")
        lines = stacks(*asked)
        self.check(lines, *asked)
        caller = ask("compile", database, "4/0")["callers"][0]
        self.assertIn(f"{os.path.basename(caller['file'])}:{caller['line']} in {caller['function']}", " ".join(lines))

    def test_graph_breaks(self):
        """As Dynamo printed it, innermost first."""
        database = self.job("graph_breaks_2_6")
        printed = json.loads(run("sql", database, "--json", "SELECT user_stack, user_file, user_line FROM graph_break WHERE user_stack IS NOT NULL"))["rows"]
        self.assertTrue(printed)
        for name, asked in (("history", ["history", database]), ("source", ["source", database, os.path.basename(printed[0]["user_file"])])):
            lines = [line for line in stacks(*asked, "--stack", "--all") if line.startswith("stack of a graph break in ")]
            self.check(lines, *asked, "--stack", "--all")
            for row in printed:
                frames = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', row["user_stack"])
                said = ", ".join(f"{os.path.basename(file)}:{line} in {function}" for file, line, function in reversed(frames)
                                 if "/site-packages/" not in file and "/dist-packages/" not in file)
                self.assertTrue([line for line in lines if line.partition(": ")[2] == said], (name, said, lines))

    def test_where_processes_stand(self):
        database = self.job("hang_in_compile")
        asked = ("status", database, "--stack")
        self.check(stacks(*asked), *asked)
        row, = [one for one in ask("status", database)["rows"] if one["state"] == "compiling"]
        self.assertEqual([re.match(r"stack of (\S+) .*\(rank (\d+)\)", one).groups() for one in stacks(*asked)], [(row["compile"], str(row["rank"]))])

    def test_blocks(self):
        snapshot = os.path.join(self.scratch, "snapshot.pickle")
        shutil.copy(os.path.join(ROOT, "tests", "fuzz", "corpus", "memory", "ring.pickle"), snapshot)
        database = self.ingest(snapshot, name="memory")
        asked = ("memory", database, "--stack", "--top", "2")
        self.check(stacks(*asked), *asked)
        rows = ask("memory", database, "--by", "stack", "--top", "2")["devices"][0]["rows"]
        frames = [", ".join(re.sub(r"^.*/(\S+) ", r"\1 in ", frame) for frame in row["frames"]) for row in rows]
        self.assertEqual([line.partition(": ")[2] for line in stacks(*asked)], frames)


if __name__ == "__main__":
    unittest.main()
