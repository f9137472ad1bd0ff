"""Sentences of `findings`, `execution`, `cache` and `diff` about small and edited logs: what the logs do not show is not said."""

import glob
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import LOGS, ROOT, AnswerTest, ask, run  # noqa: E402
from test_findings import record  # noqa: E402


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

    def test_of_one_thread_it_is_one_and_the_log_does_not_tell_threads_apart(self):
        database, answer = self.answers(["1/0", "0/0", "0/0", "1/0"], (7, 7))
        self.assertTrue(answer["has_divergence"])
        one = next(one for one in self.findings(database) if one["kind"] == "execution_divergence")
        self.assertIn("the log does not tell which thread ran a graph", one["detail"])

    def test_a_graph_less_is_one_whatever_the_threads(self):
        _, answer = self.answers(["0/0", "1/0", "0/0"], (7, 8))
        self.assertTrue(answer["has_divergence"])


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


class Versions(SentenceTest):
    def test_a_version_that_is_not_in_a_log_is_said_to_be_so(self):
        ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
        compile_ = record({"dynamo_start": {"stack": []}, **ids}) + record({"compilation_metrics": {"co_name": "f"}, **ids})
        version = record({"artifact": {"name": "torch_version", "encoding": "json"}}, '{"pytorch_version": "2.14.1"}')
        a, b = self.log("a.log", compile_), self.log("b.log", version, compile_)
        self.assertIn("torch (not in the log) → 2.14.1", run("diff", a, b))
        answer = ask("diff", a, b)["comparisons"][0]
        self.assertEqual((answer["a_torch_version"], answer["b_torch_version"], answer["is_equal"]), (None, "2.14.1", True))


if __name__ == "__main__":
    unittest.main()
