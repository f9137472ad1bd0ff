"""Playbooks: each kind of finding has a page, whose commands are run on a recorded job."""

import glob
import os
import re
import shlex
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import ROOT, AnswerTest, ask, run  # noqa: E402

# Jobs that have the finding; of the others the questions are asked of any job.
JOBS = {"compile_failed": "crash_in_compile", "stopped_first": "hang_in_compile", "missing_rank": "rank_missing", "late_rank": "straggler_late",
        "cold_cache": "one_rank_cold", "config_divergence": "diverge_config_2_6", "graph_divergence": "autocast_one", "recompile_limit": "recompile_limit_2_6",
        "one_key_two_codes": "cpu_capability", "slow_rank": "stalled_compile", "restarted": "restart_elastic", "launch_differs": "restart_manual_other_config",
        "collective_divergence": "diverge_order", "graph_break": "graph_breaks_2_6", "recompiles": "recompiles_2_6", "cache_bypassed": "cache_bypass_2_6"}
SECTIONS = ["What else looks like it", "Ask", "Try", "It helped when"]


class Playbooks(AnswerTest):
    def kinds(self):
        return sorted(os.path.basename(path)[:-len(".md")] for path in glob.glob(os.path.join(ROOT, "docs", "playbooks", "*.md")))

    def test_each_page_is_a_kind_that_a_finding_has(self):
        sources = "".join(open(path, encoding="utf-8").read() for path in glob.glob(os.path.join(ROOT, "tlparse", "src", "findings", "**", "*.cc"), recursive=True))
        for kind in self.kinds():
            self.assertIn("FindingKind::k" + kind.title().replace("_", ""), sources)
        listed = ask("explain")["kinds"]
        self.assertEqual([one["kind"] for one in listed], self.kinds())
        for one in listed:
            self.assertGreater(len(one["meaning"]), 20, one)
            self.assertNotIn("\n", one["meaning"])

    def test_the_commands_of_a_page_answer(self):
        databases = {}
        for kind in self.kinds():
            page = run("explain", kind)
            self.assertLess(len(page), 2500, kind)
            self.assertEqual(re.findall(r"(?m)^## (.*)$", page), SECTIONS, kind)
            self.assertEqual(ask("explain", kind)["kinds"][0]["text"], page)
            commands = re.findall(r"(?m)^# .+\ntlparse (.+)$", page.split("```")[1])
            self.assertEqual(len(commands), 3, kind)
            job = JOBS.get(kind, "restart_elastic")
            database = databases.get(job) or databases.setdefault(job, self.job(job))
            for command in commands:
                with self.subTest(kind=kind, command=command):
                    answer = run(*[database if word == "trace.db" else word for word in shlex.split(command)])
                    if kind in JOBS and command == f"findings trace.db --kind {kind} --evidence":
                        self.assertRegex(answer, r"(?s)(error|warning|note): .*:\d+\s+\(", "its lines")

    def test_an_unknown_kind(self):
        run("explain", "no_such_kind", code=2)


if __name__ == "__main__":
    unittest.main()
