"""Sentences of `findings`, `execution`, `cache` and `diff` about small and edited logs: what the logs do not show is not said."""

import glob
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, ROOT, AnswerTest, ask, record, run  # noqa: E402


class SentenceTest(AnswerTest):
    def log(self, name, *records):
        path = os.path.join(self.scratch, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"".join(one if isinstance(one, bytes) else one.encode() for one in records))
        return path

    def logs(self, scenario):
        """[(name, bytes)] of the ranked logs of a recorded job."""
        for path in sorted(glob.glob(os.path.join(LOGS, scenario, "*_rank_*"))):
            with open(path, "rb") as file:
                data = file.read()
            if path.endswith(".zst"):
                data = subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=True).stdout
            yield os.path.basename(path).removesuffix(".zst"), data

    def findings(self, database, *arguments):
        return ask("findings", database, *arguments)["findings"]


class LogsWithoutRank(SentenceTest):
    """The logs of one call are one launch; without a rank nothing shows that they were meant to do the same."""

    def unranked(self, scenario):
        folder = os.path.join(self.scratch, scenario)
        for number, (_, data) in enumerate(self.logs(scenario)):
            self.log(f"{scenario}/worker_{number}.log", re.sub(rb', "rank": \d+', b"", data))
        return self.ingest(folder, name=scenario)

    def test_the_same_program_with_another_option_is_a_note_that_names_the_log(self):
        database = self.unranked("diverge_config_2_6")
        one = self.findings(database)[0]
        self.assertEqual((one["kind"], one["severity"], one["ranks"], one["logs"]), ("config_divergence", "note", [], ["log:worker_2"]))
        self.assertRegex(one["title"], "^Log worker_2 compiled with another configuration: max_fusion_size 64 → 13$")
        self.assertIn("The logs name no rank: nothing shows that their processes were meant to do the same.", one["detail"])
        self.assertNotIn("rank", one["try"])
        ask("check", database, "--no-divergence")

    def test_other_programs_are_not_compared(self):
        database = self.ingest(os.path.join(LOGS, "simple_2_6"), os.path.join(LOGS, "mlp_train_2_6"), name="two")
        self.assertEqual([one["title"] for one in self.findings(database) if "name no rank" in (one["detail"] or "")], [])

    def test_a_log_without_rank_is_not_compared_with_ranks(self):
        inputs = sorted(glob.glob(os.path.join(LOGS, "diverge_config_2_6", "*_rank_*")))[:2]
        database = self.ingest(*inputs, os.path.join(LOGS, "simple_2_6"), name="mixed")
        self.assertEqual([one["title"] for one in self.findings(database) if one["logs"]], [])


class AnotherBuild(SentenceTest):
    def test_it_is_said_once(self):
        folder = os.path.join(self.scratch, "build")
        template = sorted(glob.glob(os.path.join(LOGS, "train_order", "*")))[0]
        subprocess.run([sys.executable, os.path.join(ROOT, "tests", "tools", "make_job.py"), template, folder, "4", "--plant", "build"],
                       check=True, capture_output=True)
        one = self.findings(self.ingest(folder, name="build"))[0]
        self.assertRegex(one["title"], r"^Rank \d runs another build: torch \S+ → 2\.13\.0$")
        self.assertNotIn(one["title"], [other["title"] for other in one["evidence"]])
        lines = ask("findings", os.path.join(self.scratch, "build.db"), "--evidence")["findings"][0]["log_lines"]
        self.assertEqual(len(lines), 2)
        for line, version in zip(lines, ("2.13.0", one["cause"].split()[1])):
            self.assertEqual((line["record"], line["text"]), ("torch_version", f'"pytorch_version": "{version}",'))


class OrderOfExecution(SentenceTest):
    def order(self, name, labels, threads):
        lines = [record({"str": ["/u/m.py", 1]})]
        for frame in range(2):
            ids = {"rank": int(name[1]), "frame_id": frame, "frame_compile_id": 0, "attempt": 0}
            lines.append(record({"dynamo_start": {"stack": []}, **ids}))
            for phase, ts in (("B", 10), ("E", 20)):
                event = {"name": "libtrace_compile", "ts": ts, "args": {"compile_id": f"{frame}/0"}, "ph": phase, "cat": "c", "pid": 0, "tid": threads[frame]}
                lines.append(record({"chromium_event": {}, **ids}, json.dumps(event)))
            lines.append(record({"compilation_metrics": {"co_name": f"f{frame}", "co_filename": "/u/m.py", "co_firstlineno": 1 + frame}, **ids}))
        payload = json.dumps({"graph_execution_order": [{"compile_id": label} for label in labels]})
        lines.append(record({"artifact": {"name": "graph_execution", "encoding": "json"}, "rank": int(name[1])}, payload))
        self.log(f"order/dedicated_log_torch_trace_rank_{name[1]}_abcdefgh.log", *lines)

    def answers(self, second, threads):
        self.order("r0", ["0/0", "1/0", "0/0", "1/0"], threads)
        self.order("r1", second, threads)
        database = self.ingest(os.path.join(self.scratch, "order"), name=f"order{len(second)}{threads[1]}")
        return database, ask("execution", database)

    def test_an_order_of_several_threads_is_no_divergence(self):
        database, answer = self.answers(["1/0", "0/0", "0/0", "1/0"], (7, 8))
        self.assertEqual([one["is_order_of_threads"] for one in answer["classes"]], [False, True])
        self.assertFalse(answer["has_divergence"])
        self.assertNotIn("execution_divergence", {one["kind"] for one in self.findings(database)})
        self.assertEqual(len(ask("ranks", database)["classes"]), 1)
        text = run("execution", database)
        self.assertIn("no divergence", text)
        self.assertNotIn("first divergence", text)

    def test_of_one_thread_it_is_one_and_no_threads_are_spoken_of(self):
        database, answer = self.answers(["1/0", "0/0", "0/0", "1/0"], (7, 7))
        self.assertTrue(answer["has_divergence"])
        one = next(one for one in self.findings(database) if one["kind"] == "execution_divergence")
        self.assertTrue(one["detail"].startswith("Both ran the same graphs equally often. "), one["detail"])
        self.assertNotIn("thread", one["title"] + one["detail"])

    def test_a_graph_less_is_one_whatever_the_threads(self):
        _, answer = self.answers(["0/0", "1/0", "0/0"], (7, 8))
        self.assertTrue(answer["has_divergence"])


class BreaksInLibraries(SentenceTest):
    """A break in PyTorch's own code: both places are said, every function is named, and nothing is advised that is not the user's to do."""

    FRAMES = ('  File "/u/train.py", line 29, in step\n    loss = model(x)\n'
              '  File "/usr/lib/python3.14/logging/__init__.py", line 109, in __init__\n    self.gen = func(*args, **kwds)\n')
    REASON = ("Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):\n\nAttempted to call function marked as skipped\n"
              "  Explanation: Dynamo developers have marked that `DDP._inside` should not be traced.\n"
              "  Hint: Avoid calling the function `DDP._inside`.\n%s  Hint: Please file an issue to PyTorch.\n\n"
              " For more details about this graph break, please visit: https://example.org/gb0007.html\n")

    def log_of(self, name, functions, hint="", frames=FRAMES):
        parts = []
        for frame, function in enumerate(functions):
            ids = {"frame_id": frame, "frame_compile_id": 0, "attempt": 0, "rank": 0}
            at = re.findall(r'File "(.*?)", line (\d+)', frames)[-1]
            text = f"Graph break in user code at {at[0]}:{at[1]}\nGraph Break Reason: {self.REASON % hint}\nUser code traceback:\n{frames}"
            parts += [record({"dynamo_start": {"stack": []}, **ids}),
                      record({"artifact": {"name": "dynamo_graph_break_reason", "encoding": "string"}, **ids}, text),
                      record({"compilation_metrics": {"co_name": function, "co_filename": "/usr/lib/python3.14/contextlib.py", "co_firstlineno": 9}, **ids})]
        return self.log(name, *parts)

    def test_both_functions_and_both_places_are_named(self):
        found = self.findings(self.ingest(self.log_of("a.log", ["helper", "__init__"])))
        self.assertEqual(len(found), 1)
        one = found[0]
        self.assertEqual(one["title"], "helper and __init__ break the graph in logging/__init__.py:109, called from train.py:29: "
                         "Attempted to call function marked as skipped")
        self.assertEqual(one["place"]["file"], "/u/train.py")
        self.assertIn("the place named is the nearest line of the user's code", one["detail"])
        self.assertIn("PyTorch: Dynamo developers have marked that `DDP._inside` should not be traced.", one["detail"])
        self.assertEqual(one["try"], "see https://example.org/gb0007.html")
        three = self.findings(self.ingest(self.log_of("b.log", ["f", "g", "h", "i"]), name="four"))[0]
        self.assertTrue(three["title"].startswith("f, g and 2 more break the graph in "), three["title"])

    def test_a_library_that_writes_to_its_log_is_a_note(self):
        reason = self.REASON.replace("Attempted to call function marked as skipped", "logging.Logger method not supported for non-export cases")
        for count, severity in ((4, "note"), (2, "warning")):
            self.REASON, frames = reason, "\n".join(self.FRAMES.split("\n")[:count]) + "\n"
            one, = self.findings(self.ingest(self.log_of(f"{count}.log", ["f"], frames=frames), name=str(count)))
            self.assertEqual(("graph_break", severity), (one["kind"], one["severity"]))

    def test_an_option_is_advised_all_the_same(self):
        one = self.findings(self.ingest(self.log_of("a.log", ["f"], "  Hint: Set `torch._dynamo.config.capture_scalar_outputs = True`.\n")))[0]
        self.assertTrue(one["try"].startswith("Set `torch._dynamo.config.capture_scalar_outputs = True`."), one["try"])

    def test_a_break_in_the_users_code_keeps_pytorchs_hint(self):
        frames = self.FRAMES.split("\n")
        one = self.findings(self.ingest(self.log_of("a.log", ["f"], frames="\n".join(frames[:2]) + "\n")))[0]
        self.assertIn(" at train.py:29: ", one["title"])
        self.assertEqual(one["place"]["code"], "loss = model(x)")
        self.assertTrue(one["try"].startswith("Avoid calling the function `DDP._inside`."))

    def test_a_break_on_one_rank_only_says_the_same(self):
        with open(self.log_of("job/dedicated_log_torch_trace_rank_0_abcdefgh.log", ["f"])) as file:
            text = file.read()
        lines = text.split("\n")
        start = next(i for i, line in enumerate(lines) if "dynamo_graph_break_reason" in line)
        end = next(i for i, line in enumerate(lines) if "compilation_metrics" in line)
        for rank in (1, 2):
            other = "\n".join(lines[:start] + lines[end:]).replace('"rank": 0', f'"rank": {rank}')
            self.log(f"job/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", other)
        one = next(one for one in self.findings(self.ingest(os.path.join(self.scratch, "job"), name="job")) if one["kind"] == "graph_break_divergence")
        self.assertTrue(one["title"].startswith("Only rank 0 breaks the graph of 0/0 f in logging/__init__.py:109, called from train.py:29: "), one["title"])
        self.assertIn("The break is in code of a library", one["detail"])
        self.assertEqual(one["try"], "see https://example.org/gb0007.html")


class EditedJobs(SentenceTest):
    """Recorded jobs with a log removed or cut: what is said stays within what is left."""

    def edited(self, scenario, change, name="edited"):
        """`change(rank, data)` gives the log, None: no log."""
        for file, data in self.logs(scenario):
            data = change(int(re.search(r"_rank_(\d+)_", file)[1]), data)
            if data is not None:
                self.log(f"{name}/{file}", data)
        return self.ingest(os.path.join(self.scratch, name), name=name)

    @staticmethod
    def until(data, label, number):
        """Up to the record of that number of a compile."""
        frame, compile_ = label.split("/")
        starts = [match.start() for match in re.finditer(rb'(?m)^V\d{4} .*"frame_id": %s, "frame_compile_id": %s' % (frame.encode(), compile_.encode()), data)]
        return data[:starts[number]]

    def test_how_many_ranks_there_were_is_not_guessed(self):
        found = self.findings(self.edited("crash_in_compile", lambda rank, data: data if rank == 1 else None))
        missing = next(one for one in found if one["kind"] == "missing_rank")
        self.assertEqual((missing["title"], missing["ranks"]), ("No log from rank 0", [0]))
        self.assertIn("how many ranks there were is not in the logs", missing["detail"])
        self.assertNotIn("compiled it", found[0]["detail"])
        missing = next(one for one in self.findings(self.job("rank_missing")) if one["kind"] == "missing_rank")
        self.assertEqual(missing["title"], "No log from rank 2 (3 of 4 ranks have one)")
        self.assertIn("names a group of 4 ranks", missing["detail"])
        # A recorder's dump shows a rank whose log is not here.
        folder = os.path.join(ROOT, "fixtures", "runs", "fr_late")
        inputs = glob.glob(os.path.join(folder, "*_rank_[012]_*")) + [os.path.join(folder, "fr_hang_trace_rank_0"), os.path.join(folder, "fr_hang_trace_rank_3")]
        found = self.findings(self.ingest(*inputs, name="dump"))
        missing = next(one for one in found if one["kind"] == "missing_rank")
        self.assertEqual((missing["title"], missing["severity"]), ("No log from rank 3 (3 of 4 ranks have one)", "warning"))
        self.assertEqual(missing["detail"], "A recorder's dump is of rank 3. A process that compiles nothing writes no log.")
        # Fewer than half of them: perhaps no others were given.
        found = self.findings(self.ingest(*(path for path in inputs if "_rank_1_" not in path and "_rank_2_" not in path), name="choice"))
        self.assertEqual([(one["ranks"], one["severity"]) for one in found if one["kind"] == "missing_rank"], [([1, 2, 3], "note")])

    def test_several_that_end_inside_one_compile(self):
        """Of ranks that end in several phases none is named for all."""
        cuts = {0: 20, 1: 40, 2: 40}
        database = self.edited("straggler_late", lambda rank, data: self.until(data, "2/0", cuts[rank]) if rank in cuts else data)
        one = self.findings(database)[0]
        self.assertRegex(one["title"], "^The logs of ranks 0-2 end inside 2/0 update; rank 3 finished that compile$")
        self.assertEqual(len({row["phase"] for row in ask("status", database)["rows"][:3]}), 2)
        self.assertRegex(one["detail"], r"^The logs do not show whether the processes died there, were ended, or hung\. Their last records are of \S+ UTC to \S+ UTC, "
                         r"the first of them \S+ s before the last of all logs\.")

    def test_a_log_that_is_cut_before_a_compile(self):
        one = self.findings(self.edited("straggler_late", lambda rank, data: self.until(data, "2/0", 0) if rank == 1 else data))[0]
        self.assertRegex(one["title"], "^Rank 1's log ends after 1/0 grad_sync; ranks 0,2,3 went on to 2/0 update$")


class RanksAnswer(SentenceTest):
    def test_one_log_is_not_compared_with_itself(self):
        text = run("ranks", self.job("mlp_train"))
        self.assertNotIn("the same thing", text)
        self.assertNotIn("median", text)

    def test_logs_are_not_called_ranks(self):
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        def compiled(function, frame, time="08:30:01.000000"):
            own = {**ids, "frame_id": frame}
            return record({"dynamo_start": {"stack": []}, **own}, time=time) + record({"compilation_metrics": {"co_name": function, "co_filename": "/u/m.py"}, **own})
        database = self.ingest(self.log("a.log", compiled("f", 0)), self.log("b.log", compiled("f", 0, time="08:30:00.000000"), compiled("g", 1)))
        text = " ".join(run("ranks", database).split())
        self.assertIn("log:a (1 log; there is no majority, the others are compared with this one)", text)
        self.assertIn("log:b (1 log)", text)
        self.assertIn("compiles: 1/0 g: compiled here only", text)
        self.assertNotIn("on the others", text)

    def test_ranks_that_differ_among_themselves_are_not_the_others(self):
        """Without a majority graphs are compared with a class of their own, which is not that of the answer."""
        for rank, (name, data) in zip((0, 1, 3), self.logs("autocast_one")):
            self.log(f"cut/{name}", data if rank == 1 else data[:len(data) * 9 // 10])
        database = self.ingest(os.path.join(self.scratch, "cut"), name="cut")
        classes = {one["ranks"]["ranks"]: one["aspects"] for one in ask("ranks", database)["classes"]}
        text, = [aspect["text"] for aspect in classes["0"] if aspect["area"] == "graphs"]
        self.assertIn("1/0 clip_loss: target = arange + 6 → target = arange + 0", text)

    def test_how_far_a_compile_came_is_no_class_of_its_own(self):
        """All four logs end inside 2/0, two of them after its generated code was logged."""
        database = self.job("crash_segv_in_inductor")
        self.assertEqual([one["ranks"]["ranks"] for one in ask("ranks", database)["classes"]], ["0-3"])

    def test_answers_about_one_of_several_launches_name_it(self):
        database = self.job("restart_elastic")
        for name in ("ranks", "cache", "collectives", "execution"):
            self.assertRegex(" ".join(run(name, database).split()), r"^run \S+, launch 3 of 3: ", name)
            self.assertIn(", launch 1 of 3: ", run(name, database, "--launch", "1").replace("\n ", ""), name)
            answer = ask(name, database, "--launch", "2")
            self.assertEqual((answer["launch"], answer["launch_count"]), (2, 3), name)
        for name in ("history", "recompiles"):
            lines = run(name, database, "--all").splitlines()
            self.assertTrue(lines[0].startswith("launch  rank"), lines[0])
            rows = json.loads(run(name, database, "--json"))[{"history": "compiles"}.get(name, name)]
            self.assertEqual([line.split()[0] for line in lines if line[:1].isdigit()], [str(row["launch"]) for row in rows])
            self.assertTrue(run(name, database, "--launch", "3").startswith("rank"), name)

    def test_equal_keys_do_not_differ_in_expected_ways(self):
        self.assertIn("no cache key differs between the participants", run("cache", self.job("one_rank_cold")))
        self.assertIn("note: cache, rank 2: storage state: ", run("ranks", self.job("one_rank_cold")))

    def test_a_compile_that_failed_has_no_collectives(self):
        text = run("collectives", self.job("crash_in_compile"))
        self.assertEqual(text.count("the compile failed here"), 1)
        self.assertIn("no collectives in 1/0 grad_sync [inference] here: the compile failed here", text)


class SlowestRank(SentenceTest):
    def test_a_rank_with_an_unfinished_compile_has_no_total_to_compare_with(self):
        database = self.ingest(os.path.join(LOGS, "hang_in_compile"), name="hang")
        totals, open_ranks = {}, set()
        for row in json.loads(run("history", database, "--json"))["compiles"]:
            if row["duration_us"] is None:
                open_ranks.add(row["rank"])
            else:
                totals[row["rank"]] = totals.get(row["rank"], 0) + row["duration_us"] + (row["backward_duration_us"] or 0)
        self.assertEqual(open_ranks, {2})
        complete = sorted(total for rank, total in totals.items() if rank not in open_ranks)
        slowest = ask("ranks", database)["slowest"]
        self.assertAlmostEqual(slowest["median_s"], complete[(len(complete) - 1) // 2] / 1e6, places=3)
        # The compile that is open is not in its time.
        self.assertRegex(run("ranks", database), r"(?m)^rank 2 \(1 rank\): compile time at least [\d.]+ s$")
        of_class = {one["ranks"]["ranks"]: (one["median_compile_s"], one["least_compile_s"]) for one in ask("ranks", database)["classes"]}
        self.assertIsNone(of_class["2"][0])
        self.assertAlmostEqual(of_class["2"][1], totals[2] / 1e6, places=3)

    def test_a_compile_is_named_only_for_most_of_the_difference(self):
        """Rank 0 of the third launch takes 0.5 s longer than half of the ranks, 0.02 s of it in one compile."""
        database = self.job("restart_elastic")
        slowest = ask("ranks", database)["slowest"]
        self.assertLess(2 * slowest["compile_excess_s"], slowest["compile_s"] - slowest["median_s"])
        self.assertNotIn(" longer", run("ranks", database))
        self.assertIn("1/0 forward takes 27.05 s longer: aotautograd miss where 3 others hit", " ".join(run("ranks", self.job("one_rank_cold")).split()))

    def test_logs_that_end_inside_a_compile_show_no_more(self):
        text = " ".join(run("ranks", self.job("crash_segv_in_inductor")).split())
        self.assertRegex(text, r"ranks 0-3 compiled the same, as far as their logs go; median compile time at least [\d.]+ s")
        # The compile that is open on every rank may take any time.
        self.assertNotIn("Rank 0 compiled for", text)
        self.assertRegex(text, r"slowest: rank 0, at least [\d.]+ s against a median of at least [\d.]+ s")
        whole = " ".join(run("ranks", self.job("train_order")).split())
        self.assertNotIn("as far as their logs go", whole)


class OneException(SentenceTest):
    def test_ranks_names_it_once(self):
        aspects = [one for one in self.aspects(self.job("crash_in_compile"))["1"] if one.startswith("failures: ")]
        self.assertEqual(aspects, ["failures: 1/0 grad_sync: ok → failed",
                                   "failures: 1/0 grad_sync: InductorError: RuntimeError: ScalePass: node mul has no meta['val'] (planted)"])


class Checks(SentenceTest):
    def test_nobody_is_named_for_nothing(self):
        rules = {rule["name"]: rule["actual"] for rule in ask("check", self.job("one_rank_cold"), "--max-recompiles", "0", "--max-cache-misses", "9")["rules"]}
        self.assertEqual(rules, {"max-recompiles": "0", "max-cache-misses": "6 (rank 2)"})

    def test_the_launch_that_is_asked_for_is_compared(self):
        """Launch 1 of the job has fewer misses than its last one."""
        database = self.job("restart_elastic")
        limits = {}
        for launch in ("1", "3"):
            rules = ask("check", database, "--launch", launch, "--against", self.job("simple_2_6"), code=1)["rules"]
            limits[launch] = next(rule["actual"] for rule in rules if rule["name"] == "against: cache misses")
        self.assertNotEqual(limits["1"].split()[0], limits["3"].split()[0])


class Times(SentenceTest):
    def test_what_two_layers_count_is_said(self):
        database = self.job("one_rank_cold")
        economics = {one["layer"]: one for one in ask("cache", database)["economics"]}
        self.assertEqual(economics["aotautograd"]["within"], [])
        inner = economics["fx_graph"]["within"]
        self.assertEqual([one["layer"] for one in inner], ["aotautograd"])
        self.assertEqual(inner[0]["time_saved_ns"], economics["fx_graph"]["time_saved_ns"])
        self.assertEqual(inner[0]["time_taken_ns"], 0)  # the log has no time of what the outer layer missed
        self.assertRegex(" ".join(run("cache", database).split()), r"\d+ s saved by fx_graph is in the time of aotautograd as well: do not add the two")

    def test_hits_without_a_time_have_not_saved_0_s(self):
        payload = json.dumps({"key": "k" + "a" * 51, "components": [], "cache_state": "hit"})
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        log = self.log("hit.log", record({"dynamo_start": {"stack": []}, **ids}), record({"artifact": {"name": "my_cache_hit", "encoding": "json"}, **ids}, payload))
        self.assertEqual([one["time_saved_ns"] for one in ask("cache", self.ingest(log))["economics"]], [None])


if __name__ == "__main__":
    unittest.main()
