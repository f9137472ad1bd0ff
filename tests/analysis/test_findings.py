"""`tlparse findings`: the first finding of every recorded job is what was planted in it; healthy jobs have none that alarms."""

import contextlib
import glob
import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import answers  # noqa: E402
import findings_page  # noqa: E402
from answers import LOGS, ROOT, SHARED, TLPARSE, AnswerTest, ask, run  # noqa: E402

HARMLESS = {"recompiles", "graph_break", "cache_bypassed", "import_errors"}

# What was planted: kind, ranks, what the title says. None: nothing above a note but the harmless ones.
PLANTED = {
    "jobs/crash_in_compile/logs": ("compile_failed", [1], r"1/0 grad_sync: .*ScalePass: node mul has no meta"),
    "jobs/crash_segv_in_inductor/logs": ("stopped_first", [0], r"ends first, inside 2/0 update, in code_gen, 0\.18 s before the others"),
    "jobs/hang_in_compile/logs": ("stopped_first", [2], r"ends inside 1/0 grad_sync, in pass\.post_grad.*; ranks 0,1,3 finished"),
    "jobs/straggler_late/logs": ("late_rank", [3], r"12 s after most ranks"),
    "jobs/rank_missing/logs": ("missing_rank", [2], r"No log from rank 2"),
    "jobs/one_rank_cold/logs": ("cold_cache", [2], r"missed 6 cache entries in 0/0 forward, 1/0 forward that ranks 0,1,3 hit"),
    "jobs/restart_manual_other_config/logs": ("launch_differs", [], r"Launch 2 .* launch 1: max_fusion_size 64 → 13"),
    "jobs/restart_elastic/logs": None,
    "jobs/growing/logs": None,
    "jobs/healthy_8/logs": None,
    "traces/2.14.1/cache_some_ranks": ("cold_cache", [2, 3], r"that ranks 0,1 hit under the same keys"),
    "traces/2.14.1/cache_some_ranks/1_warm_ranks_0_1": None,
    "traces/2.14.1/cache_some_ranks/2_job": ("cold_cache", [2, 3], r"that ranks 0,1 hit under the same keys"),
    "traces/2.14.1/ddp_optimizer": None,
    "traces/2.14.1/diverge_config": ("config_divergence", [2], r"max_fusion_size 64 → 13"),
    "traces/2.14.1/diverge_order": ("collective_divergence", [2], r"in 0/0 block .*all_reduce_\(.* → all_gather_into_tensor"),
    "traces/2.14.1/diverge_shape": ("extra_compile", [2], r"^Only rank 2 recompiled <lambda>: 1/1 after 1/0: .*size mismatch at index 0"),
    "traces/2.14.1/fcol_4": None,
    "traces/2.14.1/fcol_4_provenance": None,
    "traces/2.14.1/fsdp2": None,
    "traces/2.6.0/ddp_optimizer": None,
    "traces/2.6.0/diverge_config": ("config_divergence", [2], r"max_fusion_size 64 → 13"),
    "traces/2.6.0/fcol_4": None,
    "fixtures/logs/autocast_one": ("graph_divergence", [3], r"0/0 forward: linear: bf16.* → linear: f32"),
    "fixtures/logs/backward_fails_2_6": ("compile_failed", [2], r"the backward of 0/0 forward: KeyError: 'sum'"),
    "fixtures/logs/cpp_headers_missing": ("compile_failed", [], r"cpp_prefix\.h: No such file"),
    "fixtures/logs/cpu_capability": ("one_key_two_codes", [1], r"vectors of 8 floats instead of 16"),
    "fixtures/logs/export_fails": ("compile_failed", [], r"make_fx failed in log serve_pack\.py-pid14623 after serve_pack\.py:26"),
    "fixtures/logs/killed_restart_2_6": None,
    "fixtures/logs/no_compiler": ("compile_failed", [3], r"No working C\+\+ compiler found"),
    "fixtures/logs/recompile_limit_2_6": ("recompile_limit", [1], r"residual_vq: 7 times \(size 0 of x: 20, 23"),
    "fixtures/logs/source_edited": ("graph_divergence", [1], r"another text of losses\.py: 0/0 focal"),
    "fixtures/logs/stalled_compile": ("slow_rank", [2], r"Rank 2 compiled for 7\d\.\d s"),
    "fixtures/logs/suppress_errors": ("compile_failed", [1], r"1/0 time_warp: .*layout_check"),
    "fixtures/runs/frozen_parameter": ("collective_divergence", [2], r"issued barrier where ranks 0,1 issued all_reduce"),
    "fixtures/runs/hang_in_backward": ("stopped_first", [2], r"inside the backward of 0/0 forward, in pass\.post_grad"),
    "fixtures/runs/actors": None,
    "fixtures/runs/marked_sizes": None,
    "fixtures/runs/coordinator": ("compile_failed", [2], r"token 31 is not in the vocabulary"),
    "fixtures/runs/eager_rank": ("runs_eagerly", [3], r"all_reduce at main_train\.py:17, which other ranks issue from graph 1/0"),
    "fixtures/runs/hook_raises": ("stopped_first", [0], r"ends after the forward of 0/0 forward; rank 1 went on to its backward"),
    "fixtures/runs/loader_workers": None,
    "fixtures/runs/pipeline": None,
    "fixtures/runs/eval_mode": ("graph_divergence", [0], r"0/0 forward: dropout = torch\.nn\.functional\.dropout\(h, 0\.1, True → False, False\)"),
    "fixtures/runs/fewer_evaluations": ("collective_divergence", [2], r"different sizes: #5 of .*; before it ranks 0,1 compiled 0/2 forward, rank 2 did not$"),
    "fixtures/runs/mesh_full_disk": ("compile_failed", [0], r"No space left on device"),
    "fixtures/runs/own_sizes": ("slow_rank", [1], r"^Rank 1 compiled for 31\.4 s, 3 others for 7\.6 to 7\.9 s$"),
    "fixtures/runs/worker_raises": ("missing_rank", [0], r"^No log from rank 0; rank 1's log ends inside the backward of 0/0 forward, in compile_file$"),
    "fixtures/runs/segv_after_forward": ("stopped_first", [1], r"ends after the forward of 4/0 forward; ranks 0,2,3 went on to its backward"),
    "fixtures/runs/slow_loader": ("straggler", [1], r"Rank 0 waits for rank 1: it came last to 5 of 5 collectives .* at least 0\.44 s after the others"),
    "fixtures/runs/hook_raises_one_dump": ("stopped_first", [1], r"ends after the forward of 0/0 forward; rank 0 went on to its backward"),
    "fixtures/runs/bptt_raises": ("stopped_first", [1], r"^Rank 1's log ends after the forward of 1/0 total_loss; rank 0 went on to its backward$"),
    "fixtures/runs/fr_two_delays": ("straggler", [1], r"^Rank 0 waits for rank 1: it came last to 2 of 3 collectives .*, 0\.56 s after the others, 1\.17 s in all$"),
    "fixtures/runs/other_sizes_later": ("extra_compile", [1], r"^Rank 1 recompiled forward 3 times .*, rank 2 once$"),
    "fixtures/runs/threads": None,
    "fixtures/runs/two_encoders": None,
    "fixtures/runs/uneven_splits": None,
    "fixtures/runs/mesh_peer_of_failed": ("compile_failed", [3], r"No space left on device"),
    "fixtures/runs/nothing_compiled": ("nothing_compiled", [], r"^Nothing was compiled: 0/0 inner, 1/0 helper and 2 more made no graph$"),
    "fixtures/runs/modality_branches": ("graph_divergence", [], r"^Rank 0 and rank 1 compiled different graphs: forward: \(no node\) → sigmoid = "),
    "fixtures/runs/speculative_branch": ("graph_divergence", [], r"forward: sigmoid = torch\.sigmoid → \(no node\),? at .*fit\.py:27"),
    "fixtures/runs/rollout_raises": ("stopped_first", [1], r"^Rank 1's log ends after 0/0 forward; rank 0 went on to 2/0 combine$"),
    "fixtures/runs/rollout_slow_loader": ("straggler", [2], r"^Ranks 0,1,3 wait for rank 2: .* to 2 of them 0\.45 s or more after the others"),
    "fixtures/runs/fr_rollout_hang": ("collective_not_reached", [1], r"^Rank 1 had not reached broadcast #3 .*; ranks 2,3 wait in it$"),
    "fixtures/runs/slow_loader_compiles": ("straggler", [1], r"Rank 0 waits for rank 1: it came last to 3 of 3 collectives .* at least 0\.56 s after the others"),
    "fixtures/runs/break_on_one": ("graph_break_divergence", [], r"^Rank 1 breaks the graph of 0/0 forward at fit\.py:16, rank 0 does not: "),
    "fixtures/runs/killed_in_threads": ("stopped_first", [], r"^The logs of all 3 ranks end within 0\.19 s: ranks 0,1 inside compiles, rank 2 outside compiles$"),
    "fixtures/runs/goes_first": ("slow_rank", [1], r"^Rank 1 compiled for 50\.8 s, 2 others for 13\.9 to 15\.4 s$"),
    "fixtures/runs/goes_first_hook_raises": ("stopped_first", [1, 2, 3], r"end within 0\.27 s: ranks 2,3 inside the backward of 1/0 forward, rank 1 outside compiles$"),
    "fixtures/runs/exported_wrong_dtype": ("stopped_first", [1], r"^Rank 1's log ends after 0/0 forward; rank 0 went on to 1/0 objective$"),
    "fixtures/runs/restores_wrong": ("crashed", [0], r"^Rank 0 ended with exit code 1$"),
    "fixtures/runs/raises_in_graph": ("crashed", [1], r"^Rank 1 raised RuntimeError: mat1 and mat2 must have the same dtype"),
    "fixtures/runs/raises_in_kernel": ("crashed", [], r"^The command raised _LinAlgError: linalg\.cholesky: "),
    "fixtures/runs/index_out_of_bounds": ("crashed", [], r"^The command raised RuntimeError: kernel, .*, index out of bounds: 0 <= tmp7 < 10L$"),
    "fixtures/runs/slow_loader_beside_thread": ("straggler", [0], r"^Ranks 1,2 wait for rank 0: it came last to 4 of 5 collectives .* 0\.6\d s after the others"),
    "fixtures/runs/hybrid_shards": None,
    "fixtures/runs/param_server": ("straggler", [3], r"^Ranks 0-2 wait in receives and sends for rank 3: .*; 0\.\d\d s of that it was in draw_samples$"),
}
# What is reported besides: another plant, or a rank whose log is not bundled.
ALSO = {"fixtures/logs/suppress_errors": {"config_divergence", "missing_rank"}, "fixtures/logs/autocast_one": {"missing_rank"},
        "fixtures/runs/hang_in_backward": {"missing_rank"}, "fixtures/runs/fewer_evaluations": {"missing_rank"},
        "fixtures/runs/other_sizes_later": {"missing_rank"}}
# The same jobs as fixtures.
FIXTURES = {"jobs/": "", "traces/2.14.1/": "", "traces/2.6.0/": "_2_6"}


class Planted(AnswerTest):
    def check(self, database, planted, also=()):
        findings = ask("findings", database)["findings"]
        if planted is None:
            self.assertEqual([one for one in findings if one["severity"] != "note" and one["kind"] not in HARMLESS], [])
            return
        kind, ranks, title = planted
        self.assertEqual((findings[0]["kind"], findings[0]["ranks"]), (kind, ranks), findings[0])
        self.assertRegex(findings[0]["title"], title)
        # Symptoms are evidence: nothing else above a note is about these ranks.
        others = [one for one in findings[1:] if one["severity"] != "note" and one["kind"] not in HARMLESS and one["kind"] not in also]
        self.assertEqual(others, [])

    def test_recorded_jobs(self):
        if not os.path.isdir(os.path.join(SHARED, "jobs")):
            self.skipTest("the recordings are not beside this checkout; the fixtures below hold some of them")
        for name, planted in PLANTED.items():
            with self.subTest(name):
                self.check(self.ingest(findings_page.recording(name, SHARED), name=name.replace("/", "_")), planted, ALSO.get(name, ()))

    def test_every_job_that_is_beside_the_checkout_is_in_the_list(self):
        if not os.path.isdir(os.path.join(SHARED, "jobs")):
            self.skipTest("the recordings are not beside this checkout")
        found = {f"jobs/{name}/logs" for name in os.listdir(os.path.join(SHARED, "jobs")) if os.path.isdir(os.path.join(SHARED, "jobs", name))}
        self.assertEqual({name for name in PLANTED if name.startswith("jobs/")}, found)

    def test_the_page_of_recorded_jobs_is_what_is_said_of_them(self):
        if not os.path.isdir(os.path.join(SHARED, "jobs")):
            self.skipTest("the recordings are not beside this checkout")
        self.assertEqual(set(findings_page.JOBS), set(PLANTED))
        with open(os.path.join(ROOT, "docs", "findings.md")) as file:
            self.assertEqual(file.read(), findings_page.page(TLPARSE, SHARED), "docs/findings.md: write it anew with tests/analysis/findings_page.py")

    def test_fixtures(self):
        count = 0
        for name, planted in PLANTED.items():
            if name.startswith("fixtures/"):
                with self.subTest(name):
                    self.check(self.ingest(os.path.join(ROOT, name), name=name.replace("/", "_")), planted, ALSO.get(name, ()))
            for prefix, suffix in FIXTURES.items():
                scenario = name.removeprefix(prefix).removesuffix("/logs").removesuffix("/2_job") + suffix
                if not name.startswith(prefix) or not os.path.isdir(os.path.join(LOGS, scenario)):
                    continue
                with self.subTest(scenario):
                    self.check(self.job(scenario), planted)
                    count += 1
        self.assertGreater(count, 12)


class Lists(AnswerTest):
    def test_a_title_has_the_function_of_the_rank_that_compiled_it(self):
        """Ranks 0 and 1 compile other functions as 1/0, from two threads: that of rank 1 holds collectives."""
        finding, = ask("findings", self.ingest(os.path.join(ROOT, "fixtures", "runs", "killed_in_threads")))["findings"]
        titles = [one["title"] for one in finding["evidence"]]
        self.assertIn("No schedule or code with the collectives of 1/0 mean_grads [inference] is in the log of rank 0", titles)
        self.assertIn("Rank 2 did not begin to compile 1/0 score_heldout, rank 0 did", titles)

    def test_of_the_others_only_those_are_named_that_compiled_it_and_names_of_groups_are_no_other_graph(self):
        findings = ask("findings", self.ingest(os.path.join(ROOT, "fixtures", "runs", "mesh_full_disk")))["findings"]
        self.assertIn("Rank 1 did not begin to compile 1/0 margin_loss, ranks 2,3 did", [one["title"] for one in findings[0]["evidence"]])
        self.assertEqual([one["title"] for one in findings if "compiled different graphs" in one["title"] or "versions" in one["title"]], [])

    def findings(self, scenario, *arguments):
        return ask("findings", self.job(scenario), *arguments)["findings"]

    def test_queries_give_rows(self):
        for scenario in ("crash_in_compile", "one_rank_cold", "diverge_order", "restart_elastic", "recompiles_2_6", "graph_breaks_2_6"):
            database = self.job(scenario)
            connection = sqlite3.connect(database)
            self.addCleanup(connection.close)

            def check(findings):
                for one in findings:
                    with self.subTest(one["title"]):
                        self.assertTrue(connection.execute(one["query"]).fetchall(), one)
                    check(one["evidence"])
            check(ask("findings", database)["findings"])

    def test_ids_are_those_of_the_cause(self):
        ids = {one["id"] for one in self.findings("crash_in_compile")}
        self.assertEqual(ids, {one["id"] for one in self.findings("crash_in_compile")})
        # The same option, other ranks and another job.
        first = self.findings("diverge_config_2_6")[0]["id"]
        logs = sorted(glob.glob(os.path.join(LOGS, "diverge_config_2_6", "*_rank_*")))
        second = ask("findings", self.ingest(*logs[:3], name="three", run_name="three"))["findings"]
        self.assertIn(first, {one["id"] for one in second})
        for scenario in ("graph_breaks_2_6", "recompiles_2_6", "failures"):
            ids = [one["id"] for one in self.findings(scenario)]
            self.assertEqual(len(ids), len(set(ids)), scenario)

    def test_filters(self):
        everything = self.findings("recompiles_2_6")
        self.assertEqual(self.findings("recompiles_2_6", "--limit", "2"), everything[:2])
        only = self.findings("recompiles_2_6", "--kind", "recompile_limit,graph_break")
        self.assertTrue(only)
        self.assertEqual({one["kind"] for one in only}, {"recompile_limit"})
        self.assertTrue(all(one["severity"] == "error" for one in self.findings("failures", "--severity", "error")))
        run("findings", self.job("failures"), "--kind", "nothing", code=2)
        run("findings", self.job("failures"), "--launch", "2", code=2)

    def test_nothing_claims_the_end_of_a_process(self):
        """No record and no dump names it: only the run.json of `tlparse run` does (e2e_run)."""
        self.assertIn(", ".join(one["kind"] for one in ask("explain")["kinds"]), " ".join(run("findings", "--help").split()))
        self.assertEqual(self.findings("crash_segv_in_inductor", "--kind", "crashed"), [])
        states = answers.validator("status").schema["properties"]["rows"]["items"]["properties"]["state"]["enum"]
        self.assertEqual(states, ["compiling", "between_compiles", "failed"])

    def test_text_and_markdown(self):
        text = run("findings", self.job("crash_in_compile"))
        self.assertIn("error: Rank 1 failed to compile 1/0 grad_sync", text)
        markdown = run("findings", self.job("diverge_order"), "--markdown")
        self.assertRegex(markdown, r"(?m)^- \*\*error\*\*: Rank 2 schedules its collectives in another order than the others: in 0/0")
        self.assertIn("all\\_reduce\\_", markdown)
        markdown = run("findings", self.job("failures"), "--markdown")
        self.assertLessEqual(len(markdown), 2500)
        self.assertRegex(markdown, r"(?m)^$\nand \d+ more: .*\(--all\)$")
        self.assertGreater(len(run("findings", self.job("failures"), "--markdown", "--all")), 2500)
        for line in run("findings", self.job("failures")).splitlines():
            self.assertLessEqual(len(line), 80 if " " in line.strip() else 10000, line)

    def test_ranks_has_the_same_findings(self):
        database = self.job("diverge_order")
        self.assertEqual(ask("ranks", database)["findings"], ask("findings", database)["findings"])
        self.assertIn("error: Rank 2 schedules its collectives in another order", run("ranks", database))

    def test_world_size(self):
        answer = self.findings("fcol_4" if os.path.isdir(os.path.join(LOGS, "fcol_4")) else "train_order", "--world-size", "6")
        missing = [one for one in answer if one["kind"] == "missing_rank"]
        self.assertEqual([one["ranks"] for one in missing], [[4, 5]])

    def test_a_group_of_ranks_tells_how_many_there_are(self):
        logs = sorted(glob.glob(os.path.join(LOGS, "diverge_order", "*_rank_*")))
        findings = ask("findings", self.ingest(*logs[:2], name="two", run_name="two"))["findings"]
        missing = [one for one in findings if one["kind"] == "missing_rank"]
        self.assertEqual([(one["ranks"], "names a group of 4 ranks" in one["detail"]) for one in missing], [([2, 3], True)])

    def test_launches(self):
        first = self.findings("restart_elastic", "--launch", "1")
        self.assertEqual((first[0]["kind"], first[0]["ranks"], first[0]["launch"]), ("stopped_first", [2], 1))
        self.assertRegex(first[0]["title"], "ends after 0/0 forward; ranks 0,1,3 went on to 1/0 grad_sync")
        notes = [one for one in self.findings("restart_elastic") if one["kind"] == "restarted"]
        self.assertEqual([(one["launch"], one["ranks"]) for one in notes], [(1, [2]), (2, [])])
        # How the second launch ended is not in its logs, and not claimed.
        self.assertIn("not in the logs", notes[1]["detail"])
        self.assertRegex(notes[0]["title"], r"ended earlier on some ranks: Rank 2's log ends after 0/0 forward")
        self.assertRegex(notes[1]["title"], "ended with no failure in its logs: all its logs end after 1/0 grad_sync")
        self.assertEqual([one["try"] for one in notes], ["tlparse findings <db> --launch 1", "tlparse findings <db> --launch 2"])
        # The time is that of the log that ended early, not of the launch's last record.
        self.assertEqual(notes[0]["since_us"], first[0]["since_us"])
        reuse = [one for one in self.findings("restart_elastic", "--launch", "2") if one["kind"] == "launch_differs"]
        self.assertTrue(any("that earlier launches had filled" in one["title"] for one in reuse), reuse)
        database = self.job("restart_elastic")
        with contextlib.closing(sqlite3.connect(database)) as connection:
            hits, entries = connection.execute(
                "SELECT count(*), count(DISTINCT e.key) FROM cache_event e JOIN process p ON p.id = e.process_id JOIN launch n ON n.id = p.launch_id "
                "WHERE n.ordinal = 3 AND e.state = 'hit' AND e.key IN (SELECT f.key FROM cache_event f JOIN process q ON q.id = f.process_id "
                "JOIN launch m ON m.id = q.launch_id WHERE m.ordinal < 3 AND f.state = 'miss')").fetchone()
            all_hits, = connection.execute("SELECT count(*) FROM cache_event e JOIN process p ON p.id = e.process_id JOIN launch n ON n.id = p.launch_id "
                                           "WHERE n.ordinal = 3 AND e.state = 'hit'").fetchone()
        self.assertLess(entries, hits)
        self.assertLess(hits, all_hits)
        self.assertIn(f"Launch 3 had {all_hits} cache hits, {hits} of them on {entries} entries that earlier launches had filled", [one["title"] for one in ask("findings", database)["findings"]])

    def test_ranks_that_race_for_a_shared_cache_are_a_note(self):
        cold = [one for one in self.findings("restart_elastic") if one["kind"] == "cold_cache"]
        self.assertEqual([(one["severity"], one["detail"]) for one in cold],
                         [("note", "The hits came after rank 1 had compiled, as they do where ranks share a cache.")])

    def test_check(self):
        database = self.job("hang_in_compile")
        answer = ask("check", database, "--no-failures", code=1)
        offending = answer["rules"][0]["rows"]
        self.assertEqual(len(offending), 1)
        known = os.path.join(self.scratch, "known.txt")
        with open(known, "w") as file:
            file.write("# accepted\n\n" + re.search(r"\[([^\]]+)\]$", offending[0]).group(1) + " until the pass is repaired\n")
        self.assertEqual(ask("check", database, "--no-failures", "--known", known)["rules"][0]["actual"], "0 and 1 known")
        run("check", database, "--no-failures", "--known", "/nowhere", code=2)
        ask("check", database, "--no-divergence")
        ask("check", self.job("diverge_order"), "--no-divergence", code=1)
        ask("check", self.job("diverge_config_2_6"), "--no-divergence", code=1)
        ask("check", self.job("one_rank_cold"), "--no-divergence", "--no-failures")

    def test_the_last_lines_of_an_ingest_on_a_terminal(self):
        output = os.path.join(self.scratch, "out")
        controller, terminal = pty.openpty()
        process = subprocess.Popen([TLPARSE, os.path.join(LOGS, "failures"), "-o", output, "--db-only"], stdout=subprocess.PIPE, stderr=terminal)
        os.close(terminal)
        text = b""
        while True:  # read while it runs: a terminal holds 4 KB
            try:
                part = os.read(controller, 65536)
            except OSError:
                break
            if not part:
                break
            text += part
        os.close(controller)
        stdout, _ = process.communicate()
        self.assertEqual(process.returncode, 0)
        self.assertEqual(stdout.decode().strip(), os.path.join(output, "trace.db"))
        shown = text.decode().replace("\x1b[K", "").replace("\r", "\n")  # a slow ingest has a progress line before them
        lines = [line for line in shown.split("\n") if re.match(r"(error|warning|note|and \d+ more)", line)]
        self.assertEqual(len(lines), 6)
        self.assertRegex(lines[0], "^warning: user_exc is not compiled, it runs eagerly")
        self.assertRegex(lines[5], r"^and \d+ more: tlparse findings ")


if __name__ == "__main__":
    unittest.main()
