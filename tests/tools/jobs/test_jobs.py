#!/usr/bin/env python3
"""Tests of the tools around recorded jobs; each tool has something that it must refuse."""

import copy
import glob
import json
import os
import shutil
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, HERE)
import check_sentences  # noqa: E402
import claims  # noqa: E402
import faults  # noqa: E402
import key  # noqa: E402
import names  # noqa: E402
import plan as plan_of  # noqa: E402
import plans  # noqa: E402
import rawlogs  # noqa: E402
import score  # noqa: E402
import shapes  # noqa: E402
import template  # noqa: E402

TLPARSE = os.environ.get("TLPARSE")
LOGS = os.path.join(ROOT, "fixtures", "logs")


class Templates(unittest.TestCase):
    TEXT = "#= about: x\nfrom $rig_file import *\n#~\ndef $load(step):\n    #: batch\n    return $dim  #! end\n#: nothing\n"

    def test_points_marks_and_names(self):
        drawn = names.Names(3)
        text, marks = template.render(
            self.TEXT, drawn, {"batch": "if RANK == 1:\n    pass  #! cause"}, "a.py"
        )
        lines = text.split("\n")
        self.assertEqual(lines[marks["cause"][0][1] - 1], "        pass")
        self.assertEqual(lines[marks["end"][0][1] - 1], f"    return {drawn['dim']}")
        self.assertNotRegex(text, r"\$|#:|#!|#~|#=")

    def test_a_seed_gives_one_program_and_another_seed_another_one(self):
        texts = [template.render(self.TEXT, names.Names(seed), {}, "a.py")[0] for seed in (1, 1, 2, 3, 4)]
        self.assertEqual(texts[0], texts[1])
        self.assertGreater(len(set(texts)), 2)

    def test_a_name_without_pool_is_an_error(self):
        with self.assertRaises(KeyError):
            template.render("$nothing_of_that_name", names.Names(1), {}, "a.py")


class Plans(unittest.TestCase):
    def test_every_combination_renders_to_python(self):
        all_shapes = shapes.load_all()
        combinations = plans.combinations(all_shapes, "all")
        self.assertGreater(len(combinations), 140)
        self.assertEqual(len(set(combinations)), len(combinations))
        for shape, fault, inputs in combinations:
            plan = plan_of.Plan(all_shapes[shape], faults.FAULTS[fault], inputs, 0)
            for name, text in plan.files.items():
                compile(text, name, "exec")
            if faults.FAULTS[fault].place:
                self.assertIn("cause", plan.marks, plan.name)
            self.assertLess(plan.victim, plan.world)
            self.assertEqual(
                len(plan.job(0)["ranks"]), 1 if all_shapes[shape].options.get("spawns") else plan.world
            )

    def test_a_fault_without_its_point_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "no point"):
            plan_of.Plan(shapes.load_all()["single"], faults.FAULTS["skip_late"], "logs", 0)

    def test_every_class_has_kinds(self):
        classes = {one for fault in faults.FAULTS.values() for one in fault.sees.values() if one} - {
            "preempted"
        }
        self.assertEqual(set(), classes - set(key.CLASSES))


def finding(**members):
    return {
        "severity": "error",
        "kind": "stopped_first",
        "ranks": [1],
        "title": "Rank 1's log ends inside 0/0 forward",
        "detail": "",
        "place": None,
        "evidence": [],
        "compiles": ["0/0"],
        **members,
    }


def answer(*findings):
    return {"error": None, "findings": list(findings)}


class Judging(unittest.TestCase):
    META = {
        "world_size": 3,
        "victim": 1,
        "ended_well": False,
        "logs": [{"rank": 0}, {"rank": 1}, {"rank": 2}],
        "cause": {
            "class": "ended",
            "ranks": [1],
            "visible": True,
            "words": [["forward", "sync"]],
            "says": [],
            "place": [],
        },
    }

    def judge(self, *findings, **changes):
        meta = copy.deepcopy(self.META)
        if "cause" in changes and changes["cause"] is None:
            meta["cause"] = None
        else:
            meta["cause"].update(changes)
        return score.judge(answer(*findings), meta)

    def test_the_cause(self):
        self.assertTrue(self.judge(finding())["right"])

    def test_what_is_not_the_cause(self):
        for wrong in (
            {"ranks": [0]},
            {"ranks": [0, 1]},
            {"ranks": []},
            {"kind": "late_rank"},
            {"severity": "note"},
            {"title": "Rank 1's log ends inside 1/0 update"},
        ):
            self.assertFalse(self.judge(finding(**wrong))["right"], wrong)
        self.assertFalse(self.judge()["right"])
        self.assertFalse(self.judge(finding(ranks=[0]), finding())["right"], "the cause is the second")

    def test_the_place(self):
        place = [["train.py", 12]]
        self.assertFalse(self.judge(finding(), place=place)["right"])
        self.assertTrue(
            self.judge(finding(place={"file": "/a/train.py", "line": 12, "code": None}), place=place)["right"]
        )
        self.assertFalse(
            self.judge(finding(place={"file": "/a/train.py", "line": 13, "code": None}), place=place)["right"]
        )
        self.assertTrue(self.judge(finding(detail="It waits at train.py:12."), place=place)["right"])

    def test_healthy_jobs_have_notes_at_most(self):
        self.assertTrue(self.judge(finding(severity="note"), cause=None)["right"])
        self.assertFalse(self.judge(finding(severity="warning"), cause=None)["right"])
        self.assertFalse(
            self.judge(finding(severity="note"), finding(severity="warning"), cause=None)["right"]
        )

    def test_causes_that_no_input_shows(self):
        self.assertTrue(self.judge(visible=False)["right"])
        self.assertTrue(self.judge(finding(), visible=False)["right"])
        self.assertFalse(self.judge(finding(ranks=[0]), visible=False)["right"])
        self.assertTrue(self.judge(finding(ranks=[]), visible=False)["right"], "all logs end there")

    def test_bystanders(self):
        self.assertEqual(self.judge(finding(), finding(ranks=[0, 2], severity="warning"))["blamed"], [0, 2])
        self.assertEqual(self.judge(finding(), finding(ranks=[0], severity="note"))["blamed"], [])
        # The only log of a job that was ended from outside.
        cause = {"class": "preempted", "ranks": [], "visible": False}
        meta = {**self.META, "cause": cause, "logs": [{"rank": 0}]}
        for kind, blamed in (("stopped_first", []), ("straggler", [0])):
            self.assertEqual(score.judge(answer(finding(kind=kind, ranks=[0])), meta)["blamed"], blamed)

    def test_processes(self):
        meta = {**self.META, "launched": [[10, 11], [20, 21]]}
        status = [{"pid": pid} for pid in (20, 21)]
        right = {**answer(), "launch_count": 2, "status": status}
        self.assertEqual(score.judge_processes(right, meta), [])
        self.assertTrue(score.judge_processes({**right, "launch_count": 3}, meta))
        self.assertTrue(score.judge_processes({**right, "status": status[:1]}, meta))

    def test_an_answer_that_failed_is_wrong(self):
        self.assertFalse(
            score.judge({"error": "ingest ended with 3", "findings": []}, {**self.META, "cause": None})[
                "right"
            ]
        )

    def test_what_changed(self):
        rows = [
            {"job": "a", "right": right, "why": ["no finding"], "first": None, "findings": []}
            for right in (False, True)
        ]
        self.assertIn("Better: 1", score.compare(rows[:1], rows[1:]))
        self.assertIn("Worse: 1", score.compare(rows[1:], rows[:1]))


class Recording(unittest.TestCase):
    """A recording made of logs that are bundled."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name

    def recording(self, scenario, name="job", **meta):
        folder = os.path.join(self.scratch, name)
        os.makedirs(os.path.join(folder, "logs"))
        for path in glob.glob(os.path.join(LOGS, scenario, "*.log*")):
            shutil.copy(path, os.path.join(folder, "logs"))
        with open(os.path.join(folder, "meta.json"), "w", encoding="utf-8") as file:
            json.dump(
                {
                    "name": name,
                    "shape": "dp",
                    "fault": "x",
                    "inputs": "logs",
                    "problems": [],
                    "world_size": 4,
                    "ended_well": False,
                    **meta,
                },
                file,
            )
        return folder

    @staticmethod
    def cause(what, ranks, *words):
        words = [list(words)] if words else []
        return {"class": what, "ranks": ranks, "visible": True, "words": words, "says": [], "place": []}


class NotScored(Recording):
    def test_a_job_that_wrote_no_input_is_not_scored(self):
        self.assertEqual(score.why_not_scored(self.recording("rank_missing")), [])
        self.assertEqual(score.why_not_scored(self.recording("no such", name="empty")), ["no input was written"])
        self.assertEqual(score.why_not_scored(self.recording("rank_missing", "odd", problems=["x"])), ["x"])


class RawLogs(Recording):
    def test_what_a_failed_job_shows(self):
        job = rawlogs.Job(self.recording("crash_in_compile"))
        (log,) = job.of_rank(1)
        self.assertEqual(
            [(one.label, one.function, one.done, bool(one.failures)) for one in log.compiles.values()],
            [("0/0", "forward", True, False), ("1/0", "grad_sync", True, True)],
        )
        self.assertEqual(log.open_events, [])

    def test_what_an_end_shows(self):
        job = rawlogs.Job(self.recording("hang_in_compile"))
        shows = key.what_end_shows(job, 2, [0, 1, 3])
        self.assertTrue(shows["visible"])
        self.assertIn("grad_sync", shows["functions"])
        self.assertFalse(key.what_end_shows(job, 0, [1, 3])["visible"], "it ends where the others do")

    def test_a_rank_without_a_log_shows_by_a_higher_rank(self):
        job = rawlogs.Job(self.recording("rank_missing"))
        for victim in (2, 4):
            cause, context = {"class": "missing"}, {"victim": victim, "pids": None, "shown_otherwise": False}
            key.finish_cause(cause, job, context)
            self.assertEqual(cause["visible"], victim == 2)

    def test_a_dump_is_read_as_plain_values_only(self):
        path = os.path.join(self.scratch, "fr_trace_rank_0")
        with open(path, "wb") as file:
            file.write(b"\x80\x02cos\nsystem\n(S'true'\ntR.")
        with self.assertRaises(Exception):
            rawlogs.read_dump(path)


class Sentences(Recording):
    def refuted(self, scenario, one):
        facts = claims.Facts(
            rawlogs.Job(self.recording(scenario, name=str(len(os.listdir(self.scratch))))), 4
        )
        return [
            claim
            for row in check_sentences.check_finding(facts, one)
            for claim in check_sentences.refuted(row)
        ]

    def test_true_sentences_pass_and_false_ones_do_not(self):
        why = "InductorError: RuntimeError: ScalePass: node mul has no meta['val'] (planted)"
        for scenario, true, wrongs in (
            (
                "crash_in_compile",
                {
                    "kind": "compile_failed",
                    "compiles": ["1/0"],
                    "title": f"Rank 1 failed to compile 1/0 grad_sync: {why}",
                    "detail": "Ranks 0,2,3 compiled it. It is the last compile in the log of rank 1.",
                },
                [
                    {"title": f"Rank 2 failed to compile 1/0 grad_sync: {why}"},
                    {"title": f"Rank 1 failed to compile 0/0 forward: {why}"},
                    {"title": "Rank 1 failed to compile 1/0 grad_sync: KeyError: 'sum'"},
                    {"detail": "Ranks 0,1,2,3 compiled it."},
                    {"ranks": [7]},
                    {"detail": "It is the last compile in the log of rank 0.", "compiles": ["0/0"]},
                ],
            ),
            (
                "hang_in_compile",
                {
                    "ranks": [2],
                    "title": "Rank 2's log ends inside 1/0 grad_sync, in pass.post_grad_passes.post_grad_custom_post_pass; ranks 0,1,3 finished that compile",
                },
                [
                    {"title": "Rank 1's log ends inside 1/0 grad_sync"},
                    {"title": "Rank 2's log ends inside 1/0 grad_sync, in code_gen"},
                    {"title": "Rank 2's log ends inside 1/0 grad_sync; ranks 0,1,2 finished that compile"},
                    {"title": "Rank 2's log ends inside 0/0 block"},
                ],
            ),
            (
                "straggler_late",
                {"kind": "late_rank", "ranks": [3], "title": "Rank 3 began to compile 12 s after most ranks"},
                [{"title": f"Rank {n} began to compile {s} s after most ranks"} for n, s in ((3, 5), (2, 12))],
            ),
            (
                "../runs/slow_loader_compiles",
                {
                    "title": "",
                    "detail": "Guards that failed: 0/1 after 0/0: tensor 'self.head.bias' requires_grad mismatch.",
                },
                [{"detail": "Guards that failed: 0/1 after 0/0: tensor 'self.tail.bias' requires_grad mismatch."}],
            ),
            (
                "rank_missing",
                {"kind": "missing_rank", "ranks": [2], "title": "No log from rank 2 (3 of 4 ranks have one)"},
                [{"title": f"No log from rank {n} ({m} of 4 ranks have one)"} for n, m in ((1, 3), (2, 2))],
            ),
        ):
            true = finding(**{"ranks": [1], **true})
            self.assertEqual([], self.refuted(scenario, true), scenario)
            for wrong in wrongs:
                self.assertTrue(self.refuted(scenario, {**true, **wrong}), wrong)

    def test_sentences_about_dumps(self):
        folder = self.recording("nothing", name="dumps")
        os.makedirs(os.path.join(folder, "fr"))
        for path in glob.glob(os.path.join(ROOT, "fixtures", "runs", "fr_wrong_op", "fr_hang_trace_rank_?")):
            shutil.copy(path, os.path.join(folder, "fr"))
        facts = claims.Facts(rawlogs.Job(folder), 4)
        for sentence, is_true in (
            ("Rank 2 issued all_gather where ranks 0,1,3 issued all_reduce: #3 of group dp (1)", True),
            ("Rank 1 issued all_gather where ranks 0,2,3 issued all_reduce: #3 of group dp (1)", False),
            ("Rank 2 issued all_gather where ranks 0,1,3 issued all_reduce: #2 of group dp (1)", False),
            ("Rank 2 had not reached all_reduce #2 of group dp (1) when the recorder was dumped", False),
            ("Rank 2 had not reached all_reduce #9 of group dp (1) when the recorder was dumped", True),
            ("Rank 2 had not reached all_reduce #9 of group dp (1) at fr_job.py:45 when the recorder was dumped", True),
            ("Rank 2 did not compile or call second, in whose all_reduce #3 of group dp (1) ranks 0,1 wait", False),
            ("Rank 2's dump ends before all_reduce #9 of group dp (1), the last call of ranks 0,1", False),
            ("Rank 2's dump ends before all_reduce #2 of group dp (1), the last call of rank 0; rank 1 left no dump", False),
            ("Rank 3 had issued nothing on group dp (1)", False),
        ):
            found, is_known = claims.check(facts, sentence, finding())
            self.assertTrue(is_known, sentence)
            self.assertEqual(all(verdict for _, verdict in found), is_true, (sentence, found))

    def test_lines_that_no_stack_has(self):
        one = finding(title="x", place={"file": "/a/job.py", "line": 51, "code": None})
        self.assertEqual([], self.refuted("crash_in_compile", one))
        self.assertTrue(
            self.refuted(
                "crash_in_compile", {**one, "place": {"file": "/a/job.py", "line": 52345, "code": None}}
            )
        )


@unittest.skipUnless(TLPARSE, "TLPARSE names no program")
class Whole(Recording):
    def test_recordings_are_scored_by_their_keys(self):
        right = self.recording(
            "crash_in_compile", "right", cause=self.cause("compile_failed", [1], "ScalePass"), victim=1
        )
        wrong = self.recording(
            "crash_in_compile", "wrong", cause=self.cause("compile_failed", [2], "ScalePass"), victim=2
        )
        alarm = self.recording("one_rank_cold", "alarm", cause=None, victim=None, ended_well=True)
        rows = {row["job"]: row for row in (score.score(TLPARSE, folder) for folder in (right, wrong, alarm))}
        self.assertEqual([name for name, row in rows.items() if row["right"]], ["right"])
        self.assertEqual(rows["wrong"]["blamed"], [1])
        self.assertEqual(score.totals(list(rows.values()))["false_alarms"], 1)

    def test_findings_of_a_recording_are_checked(self):
        folder = self.recording("straggler_late", cause=self.cause("late", [3]), victim=3)
        findings = score.ask(TLPARSE, folder)["findings"]
        rows = check_sentences.check_job(folder, findings, 4)
        self.assertTrue(any(row["known"] for row in rows))
        self.assertEqual([], [row for row in rows if check_sentences.refuted(row)])

    def test_an_input_that_cannot_be_read_is_an_error(self):
        folder = self.recording("hang_in_compile", cause=None, victim=None)
        self.assertIn("ingest ended with", score.ask("/bin/false", folder)["error"])


if __name__ == "__main__":
    unittest.main()
