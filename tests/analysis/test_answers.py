"""The answers on recorded jobs: the cause is named, and jobs that do the same on every rank report nothing."""

import glob
import hashlib
import json
import os
import re
import sqlite3
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import answers  # noqa: E402
from answers import LOGS, AnswerTest, another_process, ask, run  # noqa: E402


class Ranks(AnswerTest):
    def test_an_option_is_named(self):
        database = self.job("diverge_config_2_6")
        found = self.aspects(database)
        self.assertEqual(list(found), ["2"])
        self.assertEqual(len(found["2"]), 1)
        self.assertIn("inductor_config[max_fusion_size]: 64 → 13", found["2"][0])
        run("check", database, "--no-divergence", code=1)

    def test_an_exchange_of_collectives_is_named(self):
        database = self.job("diverge_order")
        found = self.aspects(database)
        self.assertEqual(list(found), ["2"])
        self.assertTrue(any(text.startswith("collectives: in 0/0 block") and "#1 all_reduce_" in text and "→ all_gather_into_tensor" in text
                            for text in found["2"]), found)
        collectives = ask("collectives", database)
        self.assertEqual([one["ranks"]["ranks"] for one in collectives["classes"]], ["0,1,3", "2"])
        first = collectives["classes"][1]["mismatches"][0]
        self.assertEqual((first["kind"], first["against_ordinal"], first["ordinal"]), ("order", 0, 1))
        # What each side has in the other's place: the collective and the process group differ.
        self.assertEqual((first["instead"], first["against_item"]), ("all_gather_into_tensor(4) [8, 16] float32 group 2", "all_reduce_('sum') [8, 16] float32 group 1"))
        self.assertEqual((first["item"], first["against_instead"]), (first["against_item"], first["instead"]))

    def test_storage_state_is_a_note(self):
        for scenario in ("fsdp2", "cache_some_ranks"):
            database = self.job(scenario)
            answer = ask("ranks", database)
            self.assertFalse(answer["has_divergence"], scenario)
            self.assertEqual(len(answer["classes"]), 1, scenario)
            self.assertTrue(any("storage state" in note for note in answer["notes"]), scenario)
            run("check", database, "--no-divergence")
            run("check", database, "--no-divergence", "--notes-are-divergence", code=1)

    def test_equal_ranks_report_nothing(self):
        answer = ask("ranks", self.job("ddp_optimizer_2_6"))
        self.assertEqual(len(answer["classes"]), 1)
        self.assertEqual(answer["notes"], [])

    def test_without_a_majority_classes_are_equals(self):
        database = self.ingest(*sorted(glob.glob(os.path.join(LOGS, "diverge_config_2_6", "*")))[1:3])
        answer = ask("ranks", database)
        self.assertFalse(answer["has_majority"])
        self.assertEqual([one["ranks"]["ranks"] for one in answer["classes"]], ["1", "2"])
        finding = ask("cache", database)["findings"][0]
        self.assertEqual((finding["has_majority"], finding["ranks"]["ranks"], finding["against"]["ranks"]), (False, "2", "1"))
        self.assertIn("rank 2 against rank 1 (there is no majority): configuration differs", run("cache", database))

    def test_where_half_of_the_ranks_are_slow_the_reason_is_named(self):
        slowest = ask("ranks", self.job("cache_some_ranks"))["slowest"]
        self.assertIn(slowest["rank"], ("2", "3"))
        self.assertGreater(slowest["compile_s"], 1.5 * slowest["median_s"])
        self.assertRegex(slowest["reason"], "miss where 2 others hit")

    def test_missing_ranks_and_further_logs(self):
        logs = sorted(glob.glob(os.path.join(LOGS, "fsdp2", "*")))
        database = self.ingest(logs[0], logs[3], run_name="job")
        answer = ask("ranks", database)
        self.assertEqual(answer["missing_ranks"], {"count": 2, "ranks": "1,2"})
        self.assertEqual(ask("ranks", database, "--world-size", "6")["missing_ranks"]["ranks"], "1,2,4,5")
        further = os.path.join(self.scratch, "again_rank_0_x.log")
        another_process(logs[0], further)
        answer = ask("ranks", self.ingest(logs[0], logs[3], further, name="twice"))
        self.assertEqual(answer["extra_logs"]["count"], 1)
        self.assertEqual(answer["participants"], 3)


class Execution(AnswerTest):
    def test_another_order_is_found(self):
        database = self.job("train_order")
        answer = ask("execution", database)
        self.assertEqual([one["ranks"]["ranks"] for one in answer["classes"]], ["0,1,3", "2"])
        first = answer["classes"][1]["differences"][0]
        self.assertEqual((first["position"], first["is_moved"]), (20, True))
        self.assertEqual(first["ran"], ["5/0 layer_5"] * 2 + ["4/0 layer_4"] * 2)
        self.assertEqual(list(self.aspects(database)), ["2"])


class FindingsOfASubject(AnswerTest):
    """What `tlparse findings` lists is in the JSON of the answer about its subject, and nothing else is."""
    MEMBERS = {"cache": "engine_findings", "collectives": "findings", "execution": "findings"}
    PLANTED = {"one_rank_cold": ("cache", "cold_cache"), "diverge_order": ("collectives", "collective_divergence"), "train_order": ("execution", "execution_divergence")}

    def test_planted(self):
        for scenario, (subject, kind) in self.PLANTED.items():
            database = self.job(scenario)
            for name, member in self.MEMBERS.items():
                with self.subTest(scenario, answer=name):
                    found = ask(name, database)[member]
                    listed = ask("findings", database)["findings"]
                    self.assertEqual([one for one in listed if one in found], found)
                    kinds = [one["kind"] for one in found]
                    self.assertEqual(kinds, [kind] if name == subject else [])

    def test_a_finding_with_evidence_of_the_subject_is_in_it(self):
        database = self.job("crash_in_compile")
        found = {name: ask(name, database)[member] for name, member in self.MEMBERS.items()}
        self.assertEqual([(one["kind"], [other["kind"] for other in one["evidence"]]) for one in found["collectives"]], [("compile_failed", ["collective_divergence"])])
        self.assertEqual((found["cache"], found["execution"]), ([], []))


class GuardMiss(AnswerTest):
    def test_the_guard_is_named(self):
        database = self.job("guard_miss")
        answer = ask("cache", database)
        misses = [finding for finding in answer["findings"] if finding["cause"] == "guard_miss"]
        self.assertTrue(misses, answer["findings"])
        self.assertEqual({finding["ranks"]["ranks"] for finding in misses}, {"2"})
        self.assertNotIn("not logged", misses[0]["text"])


class SameKey(AnswerTest):
    """One key, two generated codes, on edited copies of a real job of four ranks with one key each."""

    def edited(self, change):
        directory = os.path.join(self.scratch, "edited")
        os.makedirs(directory)
        count = 0
        for rank, log in enumerate(sorted(glob.glob(os.path.join(LOGS, "train_order", "*_rank_*")))):
            target = os.path.join(directory, re.sub(r"\.log.*", ".log", os.path.basename(log)))
            count += answers.edit_log(log, target, lambda record, rank=rank: change(rank, record))  # noqa: B023
        self.assertGreater(count, 0)
        return self.ingest(directory, name="edited")

    def test_other_code_under_the_same_key_is_an_error(self):
        def change(rank, record):
            if rank != 3 or record.kind != "inductor_output_code" or record.envelope["frame_id"] != 4:
                return record.payload
            return record.payload.replace(b"extern_kernels.mm(", b"extern_kernels.other_mm(")
        database = self.edited(change)
        odd = ask("cache", database)["same_key_codes"]
        self.assertTrue(odd)
        self.assertEqual({(one["ranks"]["ranks"], one["other_ranks"]["ranks"]) for one in odd}, {("0-2", "3")})
        self.assertTrue(all("+" in one["diff"] and "extern_kernels.other_mm(" in one["diff"] for one in odd))
        self.assertIn("one key, two generated codes", run("cache", database))
        self.assertIn("error: Rank 3 generated other code than ranks 0-2", run("ranks", database))
        answer = ask("check", database, "--no-divergence", code=1)
        self.assertTrue(any("other code than" in row for row in answer["rules"][0]["rows"]))

    def test_what_legitimately_differs_is_no_error(self):
        def change(rank, record):
            if record.kind != "inductor_output_code":
                return record.payload
            code = re.sub(rb"# AOT ID: \['\d+_", b"# AOT ID: ['%d_" % (70 + rank), record.payload)
            return code + b"\n# kernel path: /tmp/cache_%d/ab/cab%s.py at 0x7f00%08d" % (rank, b"defg"[rank:rank + 1] * 48, rank)
        self.assertEqual(ask("cache", self.edited(change))["same_key_codes"], [])


class ClosestKey(AnswerTest):
    def test_it_is_one_of_the_same_function_and_direction(self):
        for scenario, count in (("mlp_train", 0), ("recompiles_2_6", 10), ("dynamic", 5)):
            found = ask("cache", self.job(scenario))["closest_keys"]
            self.assertGreaterEqual(len(found), count, scenario)
            for closest in found:
                # "0/1 f fx_graph backward 2" and "0/0 f (backward graph)"
                function, direction = re.fullmatch(r"\S+ (.+) fx_graph ?(\w*)( \d+)?", closest["lookup"]).group(1, 2)
                self.assertEqual(closest["earlier"].split(" ", 1)[1], function + (f" ({direction} graph)" if direction else ""), closest)
        # The first keys of a function have none before them: a cold run has no closest keys.
        self.assertEqual(found and ask("cache", self.job("mlp_train"))["closest_keys"], [])

    def test_what_changed_since_the_earlier_run_is_named(self):
        self.ingest(answers.first_log("train_order"), name="two", run_name="before")
        edited = os.path.join(self.scratch, "edited.log")
        option = re.compile(rb"\[([a-z2-7]{51})\] inductor_config\[max_fusion_size\]: 64")
        def change(record):
            if not option.search(record.payload):
                return record.payload
            payload = option.sub(lambda match: b"[" + match[1][::-1] + b"] inductor_config[max_fusion_size]: 13", record.payload)
            return re.sub(rb'"key": "([fa])([a-z2-7]{51})"', lambda match: b'"key": "' + match[1] + match[2][::-1] + b'"', payload)
        self.assertGreater(answers.edit_log(answers.first_log("train_order"), edited, change), 0)
        found = ask("cache", self.ingest(edited, name="two", run_name="after"))["closest_keys"]
        self.assertEqual(len(found), 12)
        self.assertEqual({closest["earlier_run"] for closest in found}, {"before"})
        self.assertEqual({cause["text"] for closest in found for cause in closest["causes"]}, {"inductor_config[max_fusion_size]: 64 → 13"})


class Digests(AnswerTest):
    """libtrace_run_digest of two runs: what differs is named, call by call."""

    def trace(self, name, change=None, calls=3, ranks=(0, 1)):
        folder = os.path.join(self.scratch, name)
        os.makedirs(folder)
        for rank in ranks:
            lines = [f'V1121 08:30:01.000000 {40 + rank} m.cc:1] {{"dynamo_start": {{"stack": [{{"line": 1, "name": "forward", "filename": 0}}]}}, '
                     f'"rank": {rank}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}}']
            for call in range(calls):
                parts = [["kernel", "fused_mm", None, "code"], ["choice", "mm", "tile_16", "tile_16"], ["output", "0", "float32[2]", f"{rank}.{call}"]]
                for part in parts:
                    if change:
                        change(rank, call, part)
                digest = {"graph": "forward", "call": call,
                          "parts": [{"kind": kind, "name": part, "hash": hashed} | ({"text": text} if text else {}) for kind, part, text, hashed in parts]}
                lines += [f'V1121 08:30:02.000000 {40 + rank} m.cc:1] {{"artifact": {{"name": "libtrace_run_digest", "encoding": "json"}}, '
                          f'"rank": {rank}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0, "has_payload": "0"}}', "\t" + json.dumps(digest)]
            with open(os.path.join(folder, f"dedicated_log_torch_trace_rank_{rank}_aaaaaaaa.log"), "w", encoding="utf-8") as log:
                log.write("\n".join(lines) + "\n")
        return folder

    def test_runs_that_gave_the_same(self):
        a, b = self.trace("a"), self.trace("b", calls=4)
        answer = ask("diff", a, b)
        self.assertTrue(answer["is_equal"])
        self.assertEqual(answer["digests"], {"calls": 6, "kernels": 6, "choices": 6, "outputs": 6, "only_a_calls": 0, "only_b_calls": 2, "changes": []})
        text = run("diff", a, b)
        self.assertIn("6 graph runs hashed on both sides: 6 outputs, 6 kernels, 6 autotuning choices\n  all are equal\n", text)
        self.assertIn("2 graph runs hashed in b only", text)
        self.assertIsNone(ask("diff", a, answers.first_log("simple"))["digests"])

    def test_what_differs_is_named(self):
        def change(rank, call, part):
            if part[0] == "choice" and rank == 1:
                part[2] = part[3] = "tile_32"
            if part[0] == "output" and rank == 1 and call > 0:
                part[3] += " otherwise"
        a, b = self.trace("a"), self.trace("b", change)
        answer = ask("diff", a, b)
        self.assertFalse(answer["is_equal"])
        shared = {"label": "0/0", "function": "forward", "graph": "forward", "ranks": "1", "compared_calls": 6, "only_in": None}
        self.assertEqual(answer["digests"]["changes"], [
            {"kind": "choice", "name": "mm", "calls": 3, "first_call": 0, "a_value": "tile_16", "b_value": "tile_32"} | shared,
            {"kind": "output", "name": "0", "calls": 2, "first_call": 1, "a_value": "float32[2]", "b_value": "float32[2]"} | shared])
        text = " ".join(run("diff", a, b).split())
        self.assertIn("choice mm of 0/0 forward, graph forward: differs in 3 of 6 calls, first in call 0; ranks 1: tile_16 → tile_32", text)
        self.assertIn("output 0 of 0/0 forward, graph forward: differs in 2 of 6 calls, first in call 1; ranks 1: float32[2]", text)
        self.assertIn("outputs differ, the code of the kernels does not", text)
        # Of one rank alone, and of two ranks, whose data differ.
        self.assertEqual(ask("diff", a, b, "--rank", "0")["digests"]["changes"], [])
        self.assertEqual([one["kind"] for one in ask("diff", a, b, "--rank", "1")["digests"]["changes"]], ["choice", "output"])
        self.assertEqual([one["name"] for one in ask("diff", a, "--rank", "0", "--rank", "1")["digests"]["changes"]], ["0"])

    def test_a_kernel_that_one_side_lacks(self):
        def change(rank, call, part):
            if part[0] == "kernel":
                part[1] = "fused_mm_relu"
        changes = ask("diff", self.trace("a", ranks=(0,)), self.trace("b", change, ranks=(0,)))["digests"]["changes"]
        self.assertEqual([(one["kind"], one["name"], one["only_in"], one["calls"]) for one in changes],
                         [("kernel", "fused_mm", "a", 3), ("kernel", "fused_mm_relu", "b", 3)])


class Diff(AnswerTest):
    def only_comparison(self, *arguments):
        answer = ask("diff", *arguments)
        self.assertEqual(len(answer["comparisons"]), 1)
        self.assertEqual(answer["is_equal"], answer["comparisons"][0]["is_equal"])
        return answer["comparisons"][0]

    def test_cold_and_warm(self):
        for version in ("cache_cold_2_6", "cache_warm_2_6"):
            self.ingest(os.path.join(LOGS, version), name="cache", run_name=version)
        database = os.path.join(self.scratch, "cache.db")
        answer = self.only_comparison(database + ":cache_cold_2_6", database + ":cache_warm_2_6")
        changes = [cache for change in answer["compiles"] for cache in change["caches"]]
        self.assertTrue(changes)
        self.assertTrue(all(cache["has_same_key"] and (cache["a_state"], cache["b_state"]) == ("miss", "hit") for cache in changes if cache["a_state"]))
        self.assertEqual((answer["only_a"], answer["only_b"]), ([], []))
        totals = next(phase for phase in answer["phases"] if phase["phase"] == "total")
        self.assertLess(totals["b_us"], totals["a_us"])

    def test_two_ranks_and_logs(self):
        database = self.job("diverge_config_2_6")
        answer = self.only_comparison(database, "--rank", "0", "--rank", "2")
        self.assertEqual({cause["text"] for change in answer["compiles"] for cache in change["caches"] for cause in cache["causes"]},
                         {"inductor_config[max_fusion_size]: 64 → 13"})
        log = answers.first_log("simple")
        answer = self.only_comparison(log, log, "--code")
        self.assertTrue(answer["is_equal"])
        self.assertTrue(all(change["is_equal"] for change in answer["compiles"]))

    def test_two_runs_of_several_ranks(self):
        """One comparison for each class of ranks: rank 2 of the first run differs from the others, those are compared once."""
        answer = ask("diff", os.path.join(LOGS, "diverge_config_2_6"), self.job("diverge_order"))
        self.assertEqual([(one["pair_count"], one["a_ranks"], one["b_ranks"], one["a_rank"]) for one in answer["comparisons"]],
                         [(3, "0,1,3", "0,1,3", "0"), (1, "2", "2", "2")])
        self.assertEqual((answer["only_a_ranks"], answer["only_b_ranks"], answer["left_out"]), (None, None, 0))
        # Rank 2 of the second run compiled another function instead.
        self.assertEqual([one["function"] for one in answer["comparisons"][1]["only_b"]], ["block_other_order"])
        answer = ask("diff", self.job("diverge_config_2_6"), self.job("diverge_config_2_6"))
        self.assertTrue(answer["is_equal"])
        # Fewer ranks on one side, and a side of one log, which is compared with every rank of the other.
        few = self.ingest(*sorted(glob.glob(os.path.join(LOGS, "diverge_config_2_6", "*")))[:2], name="few", run_name="few")
        answer = ask("diff", few, self.job("diverge_config_2_6"))
        self.assertEqual((answer["only_a_ranks"], answer["only_b_ranks"]), (None, "2,3"))
        self.assertFalse(answer["is_equal"])
        answer = ask("diff", answers.first_log("diverge_config_2_6"), self.job("diverge_config_2_6"))
        self.assertEqual([(one["a_ranks"], one["b_ranks"]) for one in answer["comparisons"]], [("0", "0,1,3"), ("0", "2")])
        for line in run("diff", few, self.job("diverge_config_2_6")).splitlines():
            self.assertLessEqual(len(line), 80 if " " in line.strip() else 10000, line)

    def test_the_first_node_that_differs_is_named_over_two_databases(self):
        edited = os.path.join(self.scratch, "edited.log")
        change = lambda record: record.payload.replace(b" @ ", b" + ") if record.kind == "dynamo_output_graph" else record.payload  # noqa: E731
        self.assertGreater(answers.edit_log(answers.first_log("train_order"), edited, change), 0)
        changes = self.only_comparison(answers.first_log("train_order"), edited)["compiles"]
        self.assertEqual(len(changes), 6)
        self.assertTrue(all(re.search(r" @ .* → .* \+ ", change["graph_difference"]) for change in changes), changes)

    def test_bad_sides_are_named(self):
        run("diff", "/nowhere/a.db", "/nowhere/b.db", code=2)
        run("diff", answers.first_log("simple"), code=2)


class Check(AnswerTest):
    def test_budgets(self):
        database = self.job("graph_breaks_2_6")
        answer = ask("check", database, "--max-graph-breaks", "0", code=1)
        self.assertFalse(answer["is_ok"])
        self.assertTrue(answer["rules"][0]["rows"])
        count = int(answer["rules"][0]["actual"])
        ask("check", database, "--max-graph-breaks", str(count))
        ask("check", database, "--max-graph-breaks", str(count - 1), code=1)
        run("check", database, code=2)

    def test_recompiles_failures_seconds_hit_rate(self):
        database = self.job("recompiles_2_6")
        ask("check", database, "--max-recompiles", "28", code=1)
        ask("check", database, "--max-recompiles", "29")
        ask("check", database, "--max-compile-seconds", "0.001", code=1)
        ask("check", database, "--max-compile-seconds", "100000", "--min-cache-hit-rate", "0")
        ask("check", database, "--min-cache-hit-rate", "1", code=1)
        ask("check", self.job("failures_2_6"), "--no-failures", code=1)

    def test_against_and_junit(self):
        cold, warm = self.job("cache_cold_2_6"), self.job("cache_warm_2_6")
        junit = os.path.join(self.scratch, "result.xml")
        answer = ask("check", cold, "--against", warm, "--junit", junit, code=1)
        failed = {rule["name"] for rule in answer["rules"] if not rule["is_ok"]}
        self.assertEqual(failed, {"against: cache misses"})
        suite = xml.etree.ElementTree.parse(junit).getroot()
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("4", "1"))
        ask("check", warm, "--against", cold)


class Everything(AnswerTest):
    def check_answers(self, scenario):
        database = self.job(scenario)
        self.assertEqual(len(ask("cache", database)["same_key_codes"]), 3 if scenario == "cpu_capability" else 0)
        is_code = "+- @" if scenario == "cpu_capability" else "\0"  # it is shown as it is
        for name in ("cache", "collectives", "execution", "ranks"):
            ask(name, database)
            for line in (line for line in run(name, database).splitlines() if line[:1] not in is_code):
                self.assertLessEqual(len(line), 80 if " " in line.strip() else 10000, line)

    def test_views(self):
        connection = sqlite3.connect(self.job("diverge_order"))
        self.addCleanup(connection.close)
        ask_view = lambda sql: connection.execute(sql).fetchall()  # noqa: E731
        self.assertEqual(ask_view("SELECT DISTINCT label, ranks FROM cache_divergence ORDER BY ranks"), [("0/0", "0,1,3"), ("0/0", "2")])
        self.assertEqual(ask_view("SELECT DISTINCT ranks FROM collective_divergence ORDER BY 1"), [("0,1,3",), ("2",)])
        self.assertEqual(ask_view("SELECT count(*) FROM execution_divergence"), [(0,)])  # all ranks ran in one order
        self.assertEqual(ask_view("SELECT rank, compiles, cache_misses FROM rank_summary ORDER BY rank"), [(rank, 3, 6) for rank in range(4)])

    def test_view_of_orders_of_execution(self):
        paths = []
        for rank, order in enumerate((["0/0", "1/0"], ["1/0", "0/0"], ["0/0", "1/0"])):
            lines = [f'V1121 08:30:0{i}.000000 {4242 + rank} a.py:1] {{"dynamo_start": {{"stack": []}}, "rank": {rank}, "frame_id": {i}, '
                     f'"frame_compile_id": 0, "attempt": 0}}\n' for i in range(2)]
            payload = json.dumps({"graph_execution_order": order})
            lines.append(f'V1121 08:30:03.000000 {4242 + rank} a.py:1] {{"artifact": {{"name": "graph_execution", "encoding": "json"}}, '
                         f'"rank": {rank}, "has_payload": "{hashlib.md5(payload.encode()).hexdigest()}"}}\n\t{payload}\n')
            paths.append(os.path.join(self.scratch, f"order_rank_{rank}.log"))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.writelines(lines)
        connection = sqlite3.connect(self.ingest(*paths))
        self.addCleanup(connection.close)
        found = connection.execute("SELECT process_id, executions, rank_count, first_rank, ranks FROM execution_divergence ORDER BY first_rank").fetchall()
        self.assertEqual([row[1:] for row in found], [(2, 2, 0, "0,2"), (2, 1, 1, "1")])
        orders = [[label for label, in connection.execute("SELECT label FROM graph_execution WHERE process_id = ? ORDER BY ordinal", row[:1])] for row in found]
        self.assertEqual(orders, [["0/0", "1/0"], ["1/0", "0/0"]])

    def test_errors_are_one_line(self):
        database = self.job("simple_2_6")
        for arguments in (["cache", database, "--run", "none"], ["cache", database, "--rank", "77"], ["ranks", "/nowhere.db"]):
            done = answers.subprocess.run([answers.TLPARSE, *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertTrue(re.fullmatch(r"tlparse: [^\n]+\n", done.stderr), done.stderr)


for recorded in sorted(os.listdir(LOGS)):
    setattr(Everything, "test_every_answer_on_" + recorded, lambda self, scenario=recorded: self.check_answers(scenario))


if __name__ == "__main__":
    unittest.main()
