"""Which side of a difference is the odd one, where logs end early: a rank that did not get there has no vote."""

import glob
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, ROOT, AnswerTest, ask, edit_log, run, trace_lines  # noqa: E402


class JobTest(AnswerTest):
    def cut(self, scenario, ends, further=0):
        """A job whose logs end behind a record: {rank: (label, kind)}, and `further` bytes."""
        folder = os.path.join(self.scratch, f"{scenario}_{len(os.listdir(self.scratch))}")
        os.mkdir(folder)
        for path in sorted(glob.glob(os.path.join(LOGS, scenario, "*_rank_*"))):
            rank = int(path.split("_rank_")[-1].split("_")[0])
            data = subprocess.run(["gzip" if path.endswith(".gz") else "zstd", "-dcqf", path], capture_output=True, check=True).stdout
            whole = os.path.join(folder, os.path.basename(path).removesuffix(".zst").removesuffix(".gz"))
            with open(whole, "wb") as file:
                file.write(data)
            if rank not in ends:
                continue
            records = [one for one in trace_lines.read_log(whole) if isinstance(one, trace_lines.Record)]
            label, kind = ends[rank]
            at = next(i for i, one in enumerate(records)
                      if one.kind == kind and f"{one.envelope.get('frame_id')}/{one.envelope.get('frame_compile_id')}" == label)
            with open(whole, "wb") as file:
                file.write(data[:records[at + 1].byte_offset + further])
        return self.ingest(folder, name=os.path.basename(folder))

    def told(self, database, kind):
        return [one for one in ask("findings", database)["findings"] if one["kind"] == kind]


class Votes(JobTest):
    def test_a_cut_rank_has_no_vote_and_is_named(self):
        database = self.cut("diverge_config_2_6", {0: ("0/0", "inductor_output_code")})
        one, = self.told(database, "config_divergence")
        self.assertEqual((one["title"], one["ranks"]), ("Rank 2 compiled with another configuration: max_fusion_size 64 → 13", [2]))
        self.assertEqual(one["detail"], "The log of rank 0 ends before that: which side it is on is not known.")
        self.assertEqual([one["ranks"]["ranks"] for one in ask("ranks", database)["classes"]], ["1,3", "0", "2"])
        self.assertIn("as ranks 1,3, as far as the log goes", run("ranks", database))

    def test_a_rank_that_got_there_has_its_vote(self):
        one, = self.told(self.cut("diverge_config_2_6", {0: ("2/0", "inductor_output_code")}), "config_divergence")
        self.assertEqual((one["ranks"], one["detail"]), ([2], ""))

    def test_where_all_logs_end_early_an_option_that_differs_is_told(self):
        ends = {0: ("1/0", "inductor_post_grad_graph"), 1: ("2/0", "dynamo_output_graph"), 2: ("2/0", "inductor_output_code"), 3: ("1/0", "inductor_output_code")}
        database = self.cut("diverge_config_2_6", ends)
        one, = self.told(database, "config_divergence")
        self.assertEqual((one["title"], one["severity"]), ("Rank 2 compiled with another configuration: max_fusion_size 64 → 13", "warning"))
        self.assertEqual(self.told(database, "graph_divergence"), [])
        ask("check", database, "--no-divergence", code=1)
        # Rank 2 went on where the others end: its collectives are in its log.
        stopped, = self.told(database, "stopped_first")
        self.assertNotIn([2], [one["ranks"] for one in stopped["evidence"] if one["kind"] == "collective_divergence"])

    def test_without_the_option_cut_logs_differ_in_nothing(self):
        ends = {0: ("0/0", "dynamo_output_graph"), 1: ("1/0", "dynamo_start"), 2: ("1/0", "dynamo_output_graph")}
        findings = ask("findings", self.cut("train_order", ends))["findings"]
        self.assertEqual([one["kind"] for one in findings if one["severity"] != "note"], ["stopped_first"])

    def test_a_payload_that_is_cut_is_not_compared(self):
        """Half of a code is no other code, half of a list of options no other option."""
        for name in (b'"inductor_output_code"', b'"torch._functorch.config"'):
            with self.subTest(name):
                folder = os.path.join(self.scratch, f"half_{len(os.listdir(self.scratch))}")
                os.mkdir(folder)
                for path in sorted(glob.glob(os.path.join(LOGS, "train_order", "*_rank_*"))):
                    data = subprocess.run(["zstd", "-dcqf", path], capture_output=True, check=True).stdout
                    if "_rank_1_" in path:
                        begin = data.index(b"\n\t", data.index(name, len(data) // 3))
                        data = data[:begin + (data.index(b"\nV", begin) - begin) // 2]
                    with open(os.path.join(folder, os.path.basename(path).removesuffix(".zst")), "wb") as file:
                        file.write(data)
                findings = ask("findings", self.ingest(folder, name=os.path.basename(folder)))["findings"]
                self.assertEqual([(one["kind"], one["title"]) for one in findings
                                  if one["kind"] in ("code_divergence", "config_divergence", "collective_divergence", "graph_divergence")], [])

    def test_a_log_that_ends_before_a_break_does_not_lack_it(self):
        findings = ask("findings", self.cut("fsdp2", {0: ("0/0", "dynamo_start"), 1: ("1/0", "dynamo_output_graph")}))["findings"]
        self.assertNotIn("graph_break_divergence", [one["kind"] for one in findings])
        self.assertIn("graph_break", [one["kind"] for one in findings])

    def test_cut_logs_are_on_the_side_that_they_show(self):
        """Ranks 0 and 1 end behind the code of 0/0: their graphs are those of rank 3."""
        ends = {rank: ("0/0", "inductor_output_code") for rank in (0, 1)}
        database = self.cut("diverge_order", ends)
        classes = ask("ranks", database)["classes"]
        self.assertEqual([one["ranks"]["ranks"] for one in classes], ["3", "0,1", "2"])
        self.assertEqual([one["area"] for one in classes[1]["aspects"] if one["area"] in ("graphs", "cache")], [])
        for one in ask("findings", database)["findings"]:
            for evidence in [one, *one["evidence"]]:
                self.assertNotRegex(evidence["title"], r"^Rank 3 and ranks 0,1 ")

    def test_another_order_is_told_of_a_log_that_ends_later_on(self):
        one, = self.told(self.cut("diverge_order", {2: ("1/0", "dynamo_output_graph")}), "collective_divergence")
        self.assertTrue(one["title"].startswith("Rank 2 schedules its collectives in another order than the others: in 0/0 block"), one["title"])

    def test_two_ranks_that_are_left_have_no_majority(self):
        ends = {0: ("0/0", "inductor_output_code"), 3: ("0/0", "dynamo_output_graph")}
        one, = self.told(self.cut("diverge_config_2_6", ends), "config_divergence")
        self.assertTrue(one["title"].startswith("Rank 1 and rank 2 compiled with different configurations"), one["title"])
        self.assertIn("There is no majority", one["detail"])
        self.assertIn("The logs of ranks 0,3 end before that: which side they are on is not known.", one["detail"])

    def test_each_rank_that_is_odd_in_one_thing_is_named_for_it(self):
        """Three of four ranks: no class is a majority."""
        path = sorted(glob.glob(os.path.join(LOGS, "train_order", "*_rank_0_*")))[0]
        directory = os.path.join(self.scratch, "odd")
        subprocess.run([sys.executable, os.path.join(ROOT, "tests", "tools", "make_job.py"), path, directory, "4", "--plant", "config,shape,order"],
                       check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(directory, "plan.json")) as file:
            planted = {row["kind"]: row["rank"] for row in json.load(file)["planted"]}
        os.unlink(os.path.join(directory, "plan.json"))
        database = self.ingest(directory, name="odd")
        self.assertEqual(len(ask("ranks", database)["classes"]), 4)
        for kind, name in (("config_divergence", "config"), ("input_divergence", "shape"), ("execution_divergence", "order")):
            one, = self.told(database, kind)
            self.assertEqual(one["ranks"], [planted[name]], one["title"])
            self.assertNotIn("no majority", one["detail"] or "")

    def test_guards_that_fail_on_one_rank_of_those_that_got_there(self):
        one, = self.told(self.cut("guard_miss", {0: ("0/0", "dynamo_output_graph")}), "input_divergence")
        self.assertTrue(one["title"].startswith("Rank 2 found cached entries whose guards do not hold in 0/0 pool: "), one["title"])
        self.assertEqual((one["ranks"], one["detail"]), ([2], "The log of rank 0 ends before that: which side it is on is not known."))


class Options(JobTest):
    def job_with(self, change, ends=()):
        """Rank 2 with another option in the metrics of its compiles; `ends`: ranks whose logs are cut in 1/0."""
        folder = os.path.join(self.scratch, f"options_{len(os.listdir(self.scratch))}")
        os.mkdir(folder)
        for rank in range(4):
            path = sorted(glob.glob(os.path.join(LOGS, "diverge_config_2_6", f"*_rank_{min(rank, 1)}_*")))[0]
            with open(path, "rb") as file:
                lines = file.read().replace(b'"rank": %d' % min(rank, 1), b'"rank": %d' % rank).split(b"\n")
            if rank in ends:
                lines = lines[:next(i for i, line in enumerate(lines) if b'"inductor_output_code"' in line and b'"frame_id": 1' in line)]
            if rank == 2:
                lines = [line.replace(*change) if b'"compilation_metrics"' in line else line for line in lines]
            with open(os.path.join(folder, f"dedicated_log_torch_trace_rank_{rank}_abcdefgh.log"), "wb") as file:
                file.write(b"\n".join(lines) + (b"" if lines[-1] == b"" else b"\n"))
        return self.ingest(folder, name=os.path.basename(folder))

    def test_an_option_that_is_in_no_key_is_found(self):
        limit = (b'\\"cache_size_limit\\": 8', b'\\"cache_size_limit\\": 16')
        for ends in ((), (0, 1, 2, 3)):
            with self.subTest(ends):
                database = self.job_with(limit, ends)
                one, = self.told(database, "config_divergence")
                self.assertEqual((one["title"], one["ranks"]), ("Rank 2 compiled with another configuration: cache_size_limit 8 → 16", [2]))
                self.assertEqual(self.aspects(database)["2"][0], "options: dynamo_config[cache_size_limit]: 8 → 16")
                ask("check", database, "--no-divergence", code=1)

    def test_what_belongs_to_the_machine_and_orders_of_sets_are_none(self):
        for change in ((b'\\"compile_threads\\": ', b'\\"compile_threads\\": 1'), (b'\\"torch._refs\\", ', b"")):
            database = self.job_with(change) if change[1] else self.ingest(os.path.join(LOGS, "diverge_config_2_6"), name="sets")
            self.assertEqual([one["title"] for one in self.told(database, "config_divergence") if "max_fusion_size" not in one["title"]], [])


class PartsOfAModel(JobTest):
    def test_an_option_of_one_rank_is_told_where_each_rank_has_its_own_graphs(self):
        """Six ranks, six graphs; one compiled with another option, also where it is the first."""
        operations = [b"relu", b"sigmoid", b"tanh", b"exp", b"sin", b"cos"]
        logs = sorted(glob.glob(os.path.join(LOGS, "diverge_config_2_6", "*_rank_*")))
        for odd in (0, 2):
            folder = os.path.join(self.scratch, f"parts_{odd}")
            os.mkdir(folder)
            for rank, operation in enumerate(operations):
                def own(item, rank=rank, operation=operation):
                    data = item.payload
                    if item.kind == "dynamo_output_graph":
                        return data.replace(b"relu", operation)
                    if "_cache_" in (item.name or ""):
                        data = re.sub(rb'"\[([a-z2-7]{51})\] gm: ((?:[^"\\]|\\.)*)"', lambda match: b'"[%s] gm: %s"' % (
                            match[1][rank + 1:] + match[1][:rank + 1], match[2].replace(b"relu", operation)), data)
                    elif item.kind != "chromium_event":
                        return data
                    return re.sub(rb"\bf([a-z2-7]{51})\b", lambda match: b"f" + match[1][rank + 1:] + match[1][:rank + 1], data)
                path = os.path.join(folder, f"dedicated_log_torch_trace_rank_{rank}_abcdefgh.log")
                source = 2 if rank == odd else 0
                edit_log(logs[source], path, own)
                with open(path, "rb") as file:
                    data = file.read()
                with open(path, "wb") as file:
                    file.write(data.replace(b'"rank": %d' % source, b'"rank": %d' % rank))
            database = self.ingest(folder, name=f"parts_{odd}")
            findings = [(one["severity"], one["title"]) for one in ask("findings", database)["findings"]]
            self.assertEqual(findings, [("warning", f"Rank {odd} compiled with another configuration: max_fusion_size 64 → 13"),
                                        ("note", "Each of the 6 ranks has a graph of its own in 0/0 block, 1/0 two and 1 more")])
            ask("check", database, "--no-divergence", code=1)


class Lookups(JobTest):
    def test_a_rank_did_not_hit_what_it_did_not_look_up(self):
        database = self.cut("one_rank_cold", {0: ("1/0", "dynamo_output_graph")})
        one, = self.told(database, "cold_cache")
        self.assertEqual(one["title"], "Rank 2 missed 6 cache entries in 0/0 forward, 1/0 forward that ranks 1,3 hit under the same keys")
        self.assertIn("Rank 0 hit only some of them.", one["detail"])
        against, = [one["against"]["ranks"] for one in ask("cache", database)["findings"] if one["cause"] == "storage"]
        self.assertEqual(against, "1,3")

    def test_a_lookup_that_a_log_ends_before_is_not_said_to_be_none(self):
        """The log is cut before the lazy backward of 0/0."""
        database = self.cut("train_order", {1: ("0/0", "compilation_metrics")}, 20)
        lookup = next(one for one in ask("cache", database)["lookups"] if one["compile"].startswith("0/0") and one["direction"] == "backward")
        self.assertEqual((lookup["without_lookup"]["ranks"], lookup["unfinished"]["ranks"]), ("", "1"))

    def test_keys_that_differ_without_a_component_are_not_explained(self):
        def other_keys(item):
            if "_cache_" not in (item.name or "") and item.kind != "chromium_event":
                return item.payload
            return re.sub(rb"\bf([a-z2-7]{51})\b", lambda match: b"f" + match[1][::-1], item.payload)
        folder = os.path.join(self.scratch, "keys")
        os.mkdir(folder)
        for path in sorted(glob.glob(os.path.join(LOGS, "train_order", "*_rank_*"))):
            edit_log(path, os.path.join(folder, os.path.basename(path).removesuffix(".zst")),
                     other_keys if "_rank_1_" in path else lambda item: item.payload)
        text = run("cache", self.ingest(folder, name="keys"))
        self.assertIn("the keys of 12 lookups differ, the log does not show why", text)
        self.assertNotIn("expected ways only", text)


class Orders(JobTest):
    def ordered(self, change):
        """A job whose rank 1 has run its graphs in another order."""
        def edited(item):
            if item.name != "graph_execution":
                return item.payload
            order = json.loads(item.payload)
            order["graph_execution_order"] = change(order["graph_execution_order"])
            return json.dumps(order, indent=0).encode()
        folder = os.path.join(self.scratch, f"orders_{len(os.listdir(self.scratch))}")
        os.mkdir(folder)
        rank_0 = sorted(glob.glob(os.path.join(LOGS, "train_order", "*_rank_0_*")))[0]
        for rank in range(3):
            path = os.path.join(folder, f"dedicated_log_torch_trace_rank_{rank}_abcdefgh.log")
            edit_log(rank_0, path, edited if rank == 1 else lambda item: item.payload)
            with open(path, "rb") as file:
                data = file.read()
            with open(path, "wb") as file:
                file.write(data.replace(b'"rank": 0', b'"rank": %d' % rank))
        return self.ingest(folder, name=os.path.basename(folder))

    def test_what_a_rank_ran_instead_is_said(self):
        cases = {"where others first ran 0/0 layer_0": lambda order: order[2:] + order[:2],
                 ", where others ran": lambda order: order[:-2],
                 "which others did not run there": lambda order: order + order[:1]}
        for sentence, change in cases.items():
            with self.subTest(sentence):
                database = self.ordered(change)
                one, = self.told(database, "execution_divergence")
                self.assertEqual(one["ranks"], [1])
                self.assertIn(sentence, one["title"])
                for text in (one["title"] + one["detail"], run("execution", database)):
                    self.assertNotIn("(nothing)", text)
                    self.assertNotIn("thread", text)


if __name__ == "__main__":
    unittest.main()
