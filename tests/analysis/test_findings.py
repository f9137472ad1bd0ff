"""`tlparse findings`: the first finding of every recorded job is what was planted in it; healthy jobs have none that alarms."""

import glob
import hashlib
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
from answers import LOGS, ROOT, TLPARSE, AnswerTest, ask, run  # noqa: E402

SHARED = os.path.join(os.path.dirname(ROOT), "shared")
HARMLESS = {"recompiles", "graph_break", "cache_bypassed", "import_errors"}

# What was planted: kind, ranks, what the title says. None: nothing above a note but the harmless ones.
PLANTED = {
    "jobs/crash_in_compile/logs": ("compile_failed", [1], r"1/0 grad_sync: .*ScalePass: node mul has no meta"),
    "jobs/crash_segv_in_inductor/logs": ("stopped_first", [0], r"ends first, inside 2/0 update, in code_gen, 0\.18 s before the next"),
    "jobs/hang_in_compile/logs": ("stopped_first", [2], r"ends inside 1/0 grad_sync, in pass\.post_grad.*; ranks 0,1,3 finished"),
    "jobs/straggler_late/logs": ("late_rank", [3], r"12 s after most ranks"),
    "jobs/rank_missing/logs": ("missing_rank", [2], r"No log from rank 2"),
    "jobs/one_rank_cold/logs": ("cold_cache", [2], r"missed 6 cache entries in 0/0 forward, 1/0 forward that ranks 0,1,3 hit"),
    "jobs/restart_manual_other_config/logs": ("launch_differs", [], r"Launch 2 .* launch 1: max_fusion_size 64 → 13"),
    "jobs/restart_elastic/logs": None,
    "jobs/growing/logs": None,
    "jobs/healthy_8/logs": None,
    "traces/2.14.1/cache_some_ranks/1_warm_ranks_0_1": None,
    "traces/2.14.1/cache_some_ranks/2_job": ("cold_cache", [2, 3], r"that ranks 0,1 hit under the same keys"),
    "traces/2.14.1/ddp_optimizer": None,
    "traces/2.14.1/diverge_config": ("config_divergence", [2], r"max_fusion_size 64 → 13"),
    "traces/2.14.1/diverge_order": ("collective_divergence", [2], r"order in 0/0 block .*all_reduce_ .* → all_gather_into_tensor"),
    "traces/2.14.1/diverge_shape": ("extra_compile", [2], r"1/1 <lambda>, recompiled because .*size mismatch at index 0"),
    "traces/2.14.1/fcol_4": None,
    "traces/2.14.1/fcol_4_provenance": None,
    "traces/2.14.1/fsdp2": None,
    "traces/2.6.0/ddp_optimizer": None,
    "traces/2.6.0/diverge_config": ("config_divergence", [2], r"max_fusion_size 64 → 13"),
    "traces/2.6.0/fcol_4": None,
}
# The same jobs as fixtures.
FIXTURES = {"jobs/": "", "traces/2.14.1/": "", "traces/2.6.0/": "_2_6"}


class Planted(AnswerTest):
    def check(self, database, planted):
        findings = ask("findings", database)["findings"]
        if planted is None:
            self.assertEqual([one for one in findings if one["severity"] != "note" and one["kind"] not in HARMLESS], [])
            return
        kind, ranks, title = planted
        self.assertEqual((findings[0]["kind"], findings[0]["ranks"]), (kind, ranks), findings[0])
        self.assertRegex(findings[0]["title"], title)
        # Symptoms are evidence: nothing else above a note is about these ranks.
        others = [one for one in findings[1:] if one["severity"] != "note" and one["kind"] not in HARMLESS]
        self.assertEqual(others, [])

    def test_recorded_jobs(self):
        if not os.path.isdir(os.path.join(SHARED, "jobs")):
            self.skipTest("the recordings are not beside this checkout; the fixtures below hold some of them")
        for name, planted in PLANTED.items():
            with self.subTest(name):
                self.check(self.ingest(os.path.join(SHARED, name), name=name.replace("/", "_")), planted)

    def test_damage_of_one_log_is_no_difference_between_ranks(self):
        folder = os.path.join(self.scratch, "damaged")
        os.mkdir(folder)
        for path in sorted(glob.glob(os.path.join(LOGS, "straggler_late", "*.log*"))):
            with open(path, "rb") as file:
                data = file.read()
            if path.endswith(".zst"):
                data = subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=True).stdout
            name = os.path.basename(path).removesuffix(".zst")
            if "_rank_1_" in name:
                changed = data.replace(b"\n\tfrom torch import device", b"\n\tFrom torch import device", 1)
                self.assertNotEqual(data, changed)
                data = changed
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        findings = ask("findings", self.ingest(folder, name="damaged"))["findings"]
        self.assertEqual([("late_rank", [3]), ("import_errors", [])],
                         [(one["kind"], one["ranks"]) for one in findings if one["severity"] != "note"])
        self.assertIn("What sets rank 1 apart from the others may be the damage", findings[1]["detail"])

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
            for prefix, suffix in FIXTURES.items():
                scenario = name.removeprefix(prefix).removesuffix("/logs").removesuffix("/2_job") + suffix
                if not name.startswith(prefix) or not os.path.isdir(os.path.join(LOGS, scenario)):
                    continue
                with self.subTest(scenario):
                    self.check(self.job(scenario), planted)
                    count += 1
        self.assertGreater(count, 12)


class Lists(AnswerTest):
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
        """No record and no dump names it: neither a kind of finding nor a state does."""
        kinds = answers.validator("findings").schema["definitions"]["finding"]["properties"]["kind"]["enum"]
        self.assertIn(", ".join(kinds), " ".join(run("findings", "--help").split()))
        self.assertNotIn("crashed", kinds)
        run("findings", self.job("crash_segv_in_inductor"), "--kind", "crashed", code=2)
        states = answers.validator("status").schema["properties"]["rows"]["items"]["properties"]["state"]["enum"]
        self.assertEqual(states, ["compiling", "between_compiles", "failed"])

    def test_text_and_markdown(self):
        text = run("findings", self.job("crash_in_compile"))
        self.assertIn("error: Rank 1 failed to compile 1/0 grad_sync", text)
        markdown = run("findings", self.job("diverge_order"), "--markdown")
        self.assertRegex(markdown, r"(?m)^- \*\*error\*\*: Rank 2 schedules other collectives")
        self.assertIn("all\\_reduce\\_", markdown)
        for line in run("findings", self.job("failures")).splitlines():
            self.assertLessEqual(len(line), 80 if " " in line.strip() else 10000, line)

    def test_ranks_has_the_same_findings(self):
        database = self.job("diverge_order")
        self.assertEqual(ask("ranks", database)["findings"], ask("findings", database)["findings"])
        self.assertIn("error: Rank 2 schedules other collectives", run("ranks", database))

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
        # Which rank failed in the second launch is not in its logs, and not claimed.
        self.assertIn("not in the logs", notes[1]["detail"])
        self.assertIn("all its logs end after 1/0 grad_sync", notes[1]["title"])
        reuse = [one for one in self.findings("restart_elastic", "--launch", "2") if one["kind"] == "launch_differs"]
        self.assertTrue(any("that earlier launches had filled" in one["title"] for one in reuse), reuse)

    def test_ranks_that_race_for_a_shared_cache_are_a_note(self):
        cold = [one for one in self.findings("restart_elastic") if one["kind"] == "cold_cache"]
        self.assertEqual([one["severity"] for one in cold], ["note"])

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
        done = subprocess.run([TLPARSE, os.path.join(LOGS, "failures"), "-o", output, "--db-only"], stdout=subprocess.PIPE, stderr=terminal)
        os.close(terminal)
        text = b""
        while True:
            try:
                part = os.read(controller, 65536)
            except OSError:
                break
            if not part:
                break
            text += part
        os.close(controller)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout.decode().strip(), os.path.join(output, "trace.db"))
        lines = [line for line in text.decode().replace("\r", "\n").split("\n") if re.match(r"(error|warning|note|and \d+ more)", line)]
        self.assertEqual(len(lines), 6)
        self.assertRegex(lines[0], "^error: The compile of 0/0")
        self.assertRegex(lines[5], r"^and \d+ more: tlparse findings ")


class Recompiles(AnswerTest):
    def test_grouped_by_function_with_what_varied(self):
        findings = {one["title"].split()[0]: one for one in ask("findings", self.job("recompiles_2_6"))["findings"]}
        # What the limit refused is no recompile. A function that is refused again had not been left to run eagerly: its caller got an error.
        self.assertEqual(findings["limit_fullgraph"]["title"], "limit_fullgraph was recompiled 3 times (n: 1, 2, 3, 4); "
                         "4 further attempts were refused at the recompile limit, which is an error with fullgraph=True")
        self.assertEqual(findings["limit_fullgraph"]["severity"], "error")
        self.assertRegex(findings["by_shape"]["title"], r"recompiled 3 times \(size 0 of x: 2, 3, 4, 5, 6\); 1 further attempt was refused .*: it runs "
                         "eagerly from then on where no compile fits, or fails with fullgraph=True")
        self.assertIn("mark_dynamic(x, 0)", findings["by_shape"]["try"])
        self.assertRegex(findings["by_dtype"]["title"], r"recompiled 3 times \(dtype of x: Float, Double, Half, BFloat16, Int\); 1 further")
        self.assertRegex(findings["by_global"]["title"], "recompiled 3 times")
        self.assertRegex(findings["by_const"]["title"], "recompiled twice")
        count = sum(len(one["compiles"]) for one in findings.values())
        connection = sqlite3.connect(self.job("recompiles_2_6"))
        self.addCleanup(connection.close)
        self.assertEqual(count, connection.execute("SELECT count(DISTINCT compile_id) FROM recompile").fetchone()[0])

    def test_code_and_line_are_of_one_origin(self):
        """A guard may come from several lines; paths are cut at the left by PyTorch."""
        first = ("0/0: 2 <= x.size()[0] <= 31  # n = x.shape[0]  # ser/jobs/job.py:114 in f (user code shown is first use (of this, value)) "
                 "and if n < 32: s = x.sin()  # ser/jobs/job.py:115 in f (_dynamo/variables/tensor.py:2849 in evaluate_expr)")
        place = self.place(first)
        self.assertEqual((place["file"], place["line"], place["code"]), ("/u/jobs/job.py", 115, "if n < 32: s = x.sin()"))
        place = self.place("0/0: x == 2  # a = b  # c  # k/other/model.py:7 in g (HINT: a hint)")
        self.assertEqual((place["file"], place["line"], place["code"]), ("…/other/model.py", 7, "c"))
        place = self.place('0/0: x == 2\nUser stack trace:\n  File "/u/jobs/job.py", line 9, in f\n    y = x + 1\n')
        self.assertEqual((place["file"], place["line"], place["code"]), ("/u/jobs/job.py", 9, "y = x + 1"))

    def place(self, reason):
        path = os.path.join(self.scratch, f"{abs(hash(reason))}.log")
        with open(path, "w") as file:
            for number in range(2):
                ids = {"frame_id": 0, "frame_compile_id": number, "attempt": 0}
                file.write(record({"dynamo_start": {"stack": []}, **ids}))
                if number:
                    file.write(record({"artifact": {"name": "recompile_reasons", "encoding": "json"}, **ids}, json.dumps([reason])))
                file.write(record({"compilation_metrics": {"co_name": "f", "co_filename": "/u/jobs/job.py", "co_firstlineno": 100}, **ids}))
        findings = ask("findings", self.ingest(path, name=os.path.basename(path)))["findings"]
        return next(one for one in findings if one["kind"] == "recompiles")["place"]

    def test_once_on_each_rank_is_once(self):
        findings = ask("findings", self.job("fsdp2"))["findings"]
        self.assertIn("forward was recompiled once on each of the 4 ranks", [one["title"].split(" (")[0] for one in findings])


class Failures(AnswerTest):
    def test_one_exception_is_one_finding(self):
        findings = [one for one in ask("findings", self.job("failures"))["findings"] if one["kind"] == "compile_failed"]
        connection = sqlite3.connect(self.job("failures"))
        self.addCleanup(connection.close)
        # A function that PyTorch skips after a graph break is no failure.
        failed = connection.execute("""SELECT count(*) FROM compile c WHERE status = 'failed' AND NOT EXISTS (SELECT 1 FROM graph_break g
            WHERE g.compile_id = c.id AND g.reason LIKE '%Skipping the function and falling back to eager%')""").fetchone()[0]
        self.assertEqual(sum(len(one["compiles"]) for one in findings), failed)
        self.assertTrue(all("Set TORCHDYNAMO_VERBOSE" not in one["title"] for one in findings))
        self.assertNotIn("the graph so far", json.dumps(findings))


class GraphBreaks(AnswerTest):
    def test_the_cause_is_said_and_the_announcement_left_out(self):
        for scenario in ("ddp_optimizer_2_6", "graph_breaks_2_6", "fsdp2"):
            for one in ask("findings", self.job(scenario))["findings"]:
                self.assertNotIn("Encountered graph break", one["title"])
                self.assertNotIn("Failed to handle graph break gracefully", one["title"])


    def test_a_frame_that_runs_eagerly_is_no_failed_compile(self):
        findings = ask("findings", self.job("graph_breaks_2_6"))["findings"]
        self.assertEqual([one["title"] for one in findings if one["severity"] == "error"], [])
        self.assertEqual([one["title"] for one in findings if "32/0" in one["compiles"]],
                         ["tolist is not compiled, it runs eagerly: graph break at s_graph_breaks.py:84: DataDependentOutputException: "
                          "aten._local_scalar_dense.default"])
        self.assertRegex(next(one["title"] for one in findings if "14/0" in one["compiles"]), "^in_loop is not compiled, it runs eagerly: graph break at")
        # PyTorch 2.6 logs an unsupported construct with and without fullgraph=True alike.
        in_try = next(one for one in findings if "15/0" in one["compiles"])
        self.assertRegex(in_try["title"], "^15/0 in_try is not compiled: Unsupported: ")
        self.assertIn("does not show which", in_try["detail"])

    def test_the_place_is_the_users_line_and_a_break_of_a_library_is_not_said_to_be_there(self):
        stack = ('  File "/u/train.py", line 11, in opt_step\n    opt.step()\n'
                 '  File "/usr/lib/python3/dist-packages/torch/optim/optimizer.py", line 78, in _use_grad\n    torch._dynamo.graph_break()\n')
        text = ("Graph break in user code at /usr/lib/python3/dist-packages/torch/optim/optimizer.py:78\nGraph Break Reason: Call to "
                "`torch._dynamo.graph_break()`\n  Hint: Remove the `torch._dynamo.graph_break()` call.\n\nUser code traceback:\n" + stack)
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        path = os.path.join(self.scratch, "library.log")
        with open(path, "w") as file:
            file.write(record({"dynamo_start": {"stack": []}, **ids}))
            file.write(record({"artifact": {"name": "dynamo_graph_break_reason", "encoding": "string"}, **ids}, text))
            file.write(record({"compilation_metrics": {"co_name": "opt_step", "co_filename": "/u/train.py", "co_firstlineno": 9}, **ids}))
        one = ask("findings", self.ingest(path))["findings"][0]
        self.assertEqual(one["place"], {"file": "/u/train.py", "line": 11, "code": None})
        self.assertIn(" in optimizer.py:78, called from train.py:11: ", one["title"])
        self.assertIn("The break is in code of a library, /usr/lib/python3/dist-packages/torch/optim/optimizer.py:78 "
                      "(torch._dynamo.graph_break()); the place named is the nearest line of the user's code.", one["detail"])
        self.assertIsNone(one["try"])


class UnfinishedWork(AnswerTest):
    def test_an_exception_that_pytorch_does_not_name_is_a_failure(self):
        """KeyboardInterrupt inside Inductor: a graph, metrics without an exception, no code."""
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        path = os.path.join(self.scratch, "interrupted.log")
        with open(path, "w") as file:
            file.write(record({"dynamo_start": {"stack": []}, **ids}) + record({"dynamo_output_graph": {"sizes": {}}, **ids}, "class GraphModule: pass"))
            file.write(record({"compilation_metrics": {"co_name": "f", "fail_type": None, "has_guarded_code": False}, **ids}))
        logs = {"synthetic": path}
        for version in ("2.6.0", "2.14.1"):
            shared = os.path.join(SHARED, "traces", version, "killed", "exception")
            if os.path.isdir(shared):
                logs[version] = shared
        for name, log in logs.items():
            with self.subTest(name):
                database = self.ingest(log, name=name)
                findings = ask("findings", database)["findings"]
                self.assertRegex(findings[0]["title"], "ended without code, and the log names no exception")
                self.assertEqual(findings[0]["kind"], "compile_failed")
                self.assertEqual({row["state"] for row in ask("status", database)["rows"]}, {"failed"})

    def test_only_a_log_that_ends_inside_a_compile_is_said_to(self):
        for scenario in ("export", "exotic", "compiled_autograd", "aoti_2_6", "dtrace", "mlp_train", "tlparse_meta"):
            if os.path.isdir(os.path.join(LOGS, scenario)):
                with self.subTest(scenario):
                    self.assertNotIn("stopped_first", {one["kind"] for one in ask("findings", self.job(scenario))["findings"]})
        killed = ask("findings", self.ingest(os.path.join(LOGS, "killed"), name="killed"))["findings"]
        self.assertIn("stopped_first", {one["kind"] for one in killed})


def record(envelope, payload=None, time="08:30:01.000000"):
    envelope = dict(envelope)
    if payload is not None:
        envelope["has_payload"] = hashlib.md5(payload.encode()).hexdigest()
    text = f"V1121 {time} 4242 torch/_dynamo/convert_frame.py:304] {json.dumps(envelope)}\n"
    return text + ("\t" + payload.replace("\n", "\n\t") + "\n" if payload is not None else "")


class Sides(AnswerTest):
    """Two ranks that differ: neither is the odd one."""

    def two(self, scenario):
        logs = sorted(glob.glob(os.path.join(LOGS, scenario, "*_rank_*")))
        database = self.ingest(logs[0], logs[2], name=scenario, run_name="two")
        return [one for one in ask("findings", database)["findings"] if one["kind"] != "missing_rank"]

    def test_configuration(self):
        one = self.two("diverge_config_2_6")[0]
        self.assertRegex(one["title"], r"^Rank 0 and rank 2 compiled with different configurations: max_fusion_size 64 → 13 \(from rank 0 to rank 2\)$")
        self.assertEqual((one["ranks"], one["rank_count"]), ([], 2))
        self.assertIn("no majority", one["detail"])

    def test_collectives(self):
        one = self.two("diverge_order")[0]
        self.assertRegex(one["title"], "^Rank 0 and rank 2 schedule different collectives: ")
        self.assertNotIn("others", one["title"])


class Once(AnswerTest):
    def test_every_bypass_is_reported(self):
        for scenario in ("cache_bypass_2_6",):
            database = self.job(scenario)
            connection = sqlite3.connect(database)
            self.addCleanup(connection.close)
            groups = connection.execute("SELECT count(DISTINCT layer || ' ' || ifnull(bypass_reason, '')) FROM cache_event WHERE state = 'bypass'").fetchone()[0]
            self.assertGreater(groups, 1)
            self.assertEqual(len([one for one in ask("findings", database)["findings"] if one["kind"] == "cache_bypassed"]), groups)

    def test_a_recompile_that_follows_from_another_cause_is_its_evidence(self):
        findings = ask("findings", self.job("libtrace_collectives"))["findings"]
        self.assertEqual([one["kind"] for one in findings], ["config_divergence"])
        self.assertIn("recompiles", {one["kind"] for one in findings[0]["evidence"]})
        # What rank 2 issued in another order, as libtrace recorded it, follows from its schedule.
        self.assertIn("Rank 1 issued #0 of group data_parallel before #0 of group statistics, rank 2 the other way round",
                      {one["title"] for one in findings[0]["evidence"]})


class CacheAnswers(AnswerTest):
    """A cache that a C++ program writes itself."""

    def lookup(self, state, components, frame_compile_id, **more):
        ids = {"frame_id": 0, "frame_compile_id": frame_compile_id, "attempt": 0}
        payload = json.dumps({"key": "k" + components[0][1:52], "components": components, "cache_state": state, **more})
        artifact = {"artifact": {"name": f"my_cache_{state}", "encoding": "json"}, **ids}
        return record({"dynamo_start": {"stack": []}, **ids}) + record(artifact, payload)

    def test_guards_explain_a_guard_miss_and_unknown_times_are_not_zero(self):
        path = os.path.join(self.scratch, "cache.log")
        with open(path, "w") as file:
            file.write(self.lookup("miss", [f"[{'a' * 51}] batch: small"], 0) + self.lookup("miss", [f"[{'b' * 51}] batch: large"], 1,
                                                                                     cache_status_detailed="guard_miss", cache_status_guard_expr="s0 <= 64"))
        database = self.ingest(path)
        answer = ask("cache", database)
        closest = [one for one in answer["closest_keys"] if "guard_miss" in one["state"]]
        self.assertEqual([[(cause["cause"], cause["text"]) for cause in one["causes"]] for one in closest], [[("guard_miss", "s0 <= 64")]])
        text = run("cache", database)
        self.assertIn("guards do not hold: s0 <= 64", text)
        self.assertNotIn("process setting", text)
        self.assertEqual([layer["time_taken_ns"] for layer in answer["economics"]], [None])
        self.assertRegex(text, r"my .*–")


class EmptyLogs(AnswerTest):
    def test_a_log_without_records_is_said(self):
        folder = os.path.join(self.scratch, "logs")
        os.mkdir(folder)
        for rank in (0, 2):
            with open(os.path.join(folder, f"dedicated_log_torch_trace_rank_{rank}_abcdefgh.log"), "w") as file:
                if rank == 0:
                    file.write(record({"dynamo_start": {"stack": []}, "rank": 0, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}))
        database = self.ingest(folder)
        self.assertEqual([one["rank"] for one in ask("status", database)["logs_without_records"]], [2])
        self.assertRegex(run("status", database), r"(?m)^2 +no r")
        logged = [(one["severity"], one["code"], os.path.basename(one["path"])) for one in json.loads(run("import-log", database, "--json"))["rows"] if one["severity"] != "info"]
        self.assertEqual(logged, [("warning", "log_without_records", "dedicated_log_torch_trace_rank_2_abcdefgh.log")])
        self.assertIn("log_without_records: The log holds no record", run("import-log", database))


class WrongAnswers(AnswerTest):
    """What was said wrongly of small logs."""

    def test_an_unknown_time_is_not_zero(self):
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        a = self.save("a.log", record({"dynamo_start": {"stack": []}, **ids}))
        b = self.save("b.log", record({"dynamo_start": {"stack": []}, **{**ids, "frame_id": 1}}),
                      self.compiled(0, "g", "mul"))
        answer = ask("diff", a, b)["comparisons"][0]
        self.assertIn(None, [one["duration_us"] for one in answer["only_a"] + answer["only_b"]])
        self.assertNotIn(" 0 µs", run("diff", a, b))

    def save(self, name, *records):
        path = os.path.join(self.scratch, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write("".join(records))
        return path

    def compiled(self, frame, function, operation, rank=0, inputs='L_x_: "f32[4][1]cuda:0"'):
        ids = {"rank": rank, "frame_id": frame, "frame_compile_id": 0, "attempt": 0}
        graph = (f"class GraphModule(torch.nn.Module):\n    def forward(self, {inputs}):\n        l_x_ = L_x_\n"
                 f'        {operation}: "f32[4][1]cuda:{rank}" = l_x_ + 1;  l_x_ = None\n        return ({operation},)\n')
        metrics = {"co_name": function, "co_filename": "/u/m.py", "co_firstlineno": 10, "compile_id": f"{frame}/0"}
        stack = [{"line": 10, "name": function, "filename": 1, "loc": "x"}]
        return (record({"dynamo_start": {"stack": stack}, **ids}) + record({"dynamo_output_graph": {"sizes": {}}, **ids}, graph)
                + record({"compilation_metrics": metrics, **ids}))

    def test_the_processor_takes_no_part_in_device_numbering(self):
        folder = os.path.join(self.scratch, "devices")
        for rank in (0, 3):
            inputs = f'L_x_: "f32[4][1]cpu:0", L_y_: "f32[4][1]cuda:{rank}"'
            self.save(f"devices/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", record({"str": ["/u/m.py", 1]}),
                      self.compiled(0, "f", "add", rank, inputs))
        answer = ask("ranks", self.ingest(folder, name="devices"))
        self.assertEqual(len(answer["classes"]), 1, answer["classes"])

    def test_diff_finds_a_function_whose_frame_moved_and_whose_graph_was_edited(self):
        name = record({"str": ["/u/m.py", 1]})
        a = self.save("a.log", name, self.compiled(0, "f", "add"))
        b = self.save("b.log", name, self.compiled(0, "g", "mul"), self.compiled(1, "f", "sub"))
        answer = ask("diff", a, b)["comparisons"][0]
        self.assertEqual([one["function"] for one in answer["only_a"]], [])
        self.assertEqual([one["function"] for one in answer["only_b"]], ["g"])
        self.assertEqual([(one["a_label"], one["b_label"], one["function"]) for one in answer["compiles"]], [("0/0", "1/0", "f")])

    def test_the_total_of_a_compile_has_its_backward(self):
        connection = sqlite3.connect(self.job("mlp_train"))
        self.addCleanup(connection.close)
        rows = connection.execute("SELECT duration_us, backward_duration_us, total_us FROM compile_history WHERE backward_duration_us > 0").fetchall()
        self.assertTrue(rows)
        self.assertTrue(all(total == own + backward for own, backward, total in rows), rows)

    def test_equal_collectives_in_graphs_that_are_cut_differently_are_no_divergence(self):
        """Rank 1 has the two collectives of rank 0's graph in two graphs."""
        folder = os.path.join(self.scratch, "cut")
        cuts = {0: [["all_reduce_", "broadcast_"]], 1: [["all_reduce_"], ["broadcast_"]], 2: [["all_reduce_", "broadcast_"]]}
        schedule = {"name": "inductor_collective_schedule", "encoding": "json"}
        for rank, graphs in cuts.items():
            parts = [record({"str": ["/u/m.py", 1]})]
            for frame, ops in enumerate(graphs):
                ids = {"rank": rank, "frame_id": frame, "frame_compile_id": 0, "attempt": 0}
                text = json.dumps([f"torch.ops._c10d_functional.{op}.default" for op in ops])
                parts += [record({"dynamo_start": {"stack": []}, **ids}), record({"artifact": schedule, **ids}, text),
                          record({"compilation_metrics": {"co_name": f"f{frame}", "co_filename": "/u/m.py", "co_firstlineno": 1}, **ids})]
            self.save(f"cut/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", *parts)
        database = self.ingest(folder, name="cut")
        connection = sqlite3.connect(database)
        self.addCleanup(connection.close)
        self.assertEqual(connection.execute("SELECT count(*) FROM collective").fetchone(), (6,))
        self.assertEqual(connection.execute("SELECT * FROM collective_divergence").fetchall(), [])
        self.assertEqual(len(ask("collectives", database)["classes"]), 1)
        self.assertNotIn("collective_divergence", {one["kind"] for one in ask("findings", database)["findings"]})

    def test_a_rank_beyond_all_sense_costs_nothing(self):
        for rank in (3_000_000_000, 2**63 - 1):
            ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
            path = self.save(f"{rank}/a.log", record({"dynamo_start": {"stack": []}, "rank": 0, **ids}),
                             record({"dynamo_start": {"stack": []}, "rank": rank, **ids}))
            answer = ask("ranks", self.ingest(path, name=str(rank)))
            self.assertEqual(answer["missing_ranks"]["count"], 0)
            # The number is no rank: all records are those of rank 0.
            self.assertEqual([one["ranks"] for one in answer["findings"] if one["kind"] == "stopped_first"], [[0]])
            self.assertIn("compile time unknown", run("ranks", self.ingest(path, name=f"{rank}_again")))


if __name__ == "__main__":
    unittest.main()
