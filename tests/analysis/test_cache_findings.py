"""Findings and answers about caches."""

import json
import os
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import SHARED, AnswerTest, ask, record, run  # noqa: E402


class CacheAnswers(AnswerTest):
    """A cache that a C++ program writes itself."""

    def lookup(self, state, components, frame_compile_id, **more):
        ids = {"frame_id": 0, "frame_compile_id": frame_compile_id, "attempt": 0}
        payload = json.dumps({"key": "k" + components[0][1:52], "components": components, "cache_state": state, **more})
        artifact = {"artifact": {"name": f"my_cache_{state}", "encoding": "json"}, **ids}
        return record({"dynamo_start": {"stack": []}, **ids}) + record(artifact, payload)

    def test_lookups_of_a_hit_rate_are_counted_alike(self):
        # A hit, a miss, a remote store that gave no usable answer, a bypass: 1 hit of 3 lookups.
        logs = os.path.join(self.scratch, "logs")
        os.makedirs(logs)
        states = [("hit", {}), ("miss", {}), ("miss", {"cache_status_detailed": "remote_error", "remote_error": "refused"}),
                  ("bypass", {"cache_bypass_reason": "test"})]
        with open(os.path.join(logs, "dedicated_log_torch_trace_rank_0.log"), "w", encoding="utf-8") as file:
            for i, (state, more) in enumerate(states):
                file.write(self.lookup(state, [f"[{str(i) * 51}] batch: {i}"], i, cache_event_time=i + 1, **more))
        database = self.ingest(logs)
        rule = ask("check", database, "--min-cache-hit-rate", "1", code=1)["rules"][0]
        self.assertEqual((rule["actual"], rule["rows"]), ("0.333", ["1 hit in 3 lookups"]))
        live = [json.loads(line) for line in run("watch", logs, "--once", "--json", "-o", os.path.join(self.scratch, "live")).splitlines()]
        status, = [one for one in live if one["event"] == "status"]
        self.assertEqual((status["cache_hits"], status["cache_lookups"]), (1, 3))
        with sqlite3.connect(database) as connection:
            self.assertEqual(connection.execute("SELECT cache_hits, cache_misses, cache_bypasses FROM rank_summary").fetchall(), [(1, 2, 1)])

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

    def guard_misses(self, guards):
        """Of two ranks whose keys differ: None is a plain miss."""
        folder = f"guards_{len(os.listdir(self.scratch))}"
        for rank, guard in enumerate(guards):
            more = {} if guard is None else {"cache_status_detailed": "guard_miss", "cache_status_guard_expr": guard}
            self.save(f"{folder}/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", self.lookup("miss", [f"[{'ab'[rank] * 51}] batch: {rank}"], 0, **more))
        answer = ask("cache", self.ingest(os.path.join(self.scratch, folder), name=folder))
        return [one["text"] for one in answer["findings"] if one["cause"] == "guard_miss"]

    def test_guards_that_hold_on_no_rank_set_none_apart(self):
        self.assertEqual(self.guard_misses(["s0 <= 64", "s0 <= 64"]), [])
        self.assertEqual(self.guard_misses([None, "s0 <= 64"]), ["s0 <= 64"])
        self.assertEqual(self.guard_misses(["s0 <= 64", None]), ["on the others: s0 <= 64"])

    def test_how_urgent_missed_guards_are(self):
        """Guards of cached entries are of sizes: a few ranks with sizes of their own lose time where the others hit, ranks of which each has its own are as meant."""
        for guards, said in (([None, None, None, "s0 <= 64"], [("warning", [3])]), ([None, "s0 <= 64"], [("note", [1])]),
                             ([None, "s0 <= 64", "s0 <= 64", "s0 <= 64"], [("note", [1, 2, 3])])):
            folder = f"urgent_{len(guards)}_{guards.count(None)}"
            for rank, guard in enumerate(guards):
                state, more = ("hit", {}) if guard is None else ("miss", {"cache_status_detailed": "guard_miss", "cache_status_guard_expr": guard})
                end = record({"compilation_metrics": {"co_name": "f"}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0})
                self.save(f"{folder}/dedicated_log_torch_trace_rank_{rank}_abcdefgh.log", self.lookup(state, [f"[{'a' * 51}] batch: 1"], 0, **more) + end)
            found = ask("findings", self.ingest(os.path.join(self.scratch, folder), name=folder))["findings"]
            self.assertEqual(said, [(one["severity"], one["ranks"]) for one in found if "cached entries whose guards do not hold" in one["title"]], found)


class SharedCaches(CacheAnswers):
    START_NS = 1_763_713_801_000_000_000

    def rank(self, rank, state, begin_s, taken_s=None):
        """The log of a rank that looks one key up, `begin_s` after the start of the job."""
        begin_ns = self.START_NS + int(begin_s * 1e9)
        times = {"cache_event_time": begin_ns, **({} if taken_s is None else {"time_taken_ns": int(taken_s * 1e9)})}
        path = os.path.join(self.scratch, f"dedicated_log_torch_trace_rank_{rank}_abcdefgh.log")
        with open(path, "w") as file:
            file.write(self.lookup(state, [f"[{'a' * 51}] graph: one"], 0, **times).replace('{"dynamo_start"', f'{{"rank": {rank}, "dynamo_start"')
                       .replace('{"artifact"', f'{{"rank": {rank}, "artifact"'))
        return path

    def cold(self, *logs):
        found = [one for one in ask("findings", self.ingest(*logs))["findings"] if one["kind"] == "cold_cache"]
        return sorted((one["severity"], one["ranks"], one["detail"]) for one in found)

    def test_who_misses_what_another_had_stored_shares_no_cache_with_it(self):
        race = [self.rank(0, "miss", 0, 2), self.rank(1, "miss", 1, 2), self.rank(2, "hit", 30)]
        note = ("note", [0, 1], "The hits came after one of ranks 0,1 had compiled, as they do where ranks share a cache.")
        self.assertEqual(self.cold(*race), [note])
        # Another 4 s after the entry was stored may be due to clocks, 58 s are not.
        self.assertEqual(self.cold(*race, self.rank(3, "miss", 6, 2))[0][:2], ("note", [0, 1, 3]))
        late = self.cold(*race, self.rank(3, "miss", 60, 2))
        self.assertEqual([one[:2] for one in late], [("note", [0, 1]), ("warning", [3])])

    def test_logs_of_a_warm_up_are_no_ranks_that_missed(self):
        shared = os.path.join(SHARED, "traces", "2.14.1", "cache_some_ranks")
        if not os.path.isdir(shared):
            self.skipTest("the recordings are not here")
        with_warm_up = self.cold(shared)
        self.assertEqual([one[:2] for one in with_warm_up], [("warning", [2, 3])])
        self.assertEqual(with_warm_up, self.cold(os.path.join(shared, "2_job")))


class Unfinished(AnswerTest):
    def test_a_lookup_of_a_compile_that_did_not_end_well_is_not_in_the_log(self):
        for scenario, rank, state in (("hang_in_compile", "2", "is unfinished"), ("crash_in_compile", "1", "failed")):
            database = self.job(scenario)
            lookups = [one for one in ask("cache", database)["lookups"] if one["layer"] == "fx_graph" and one["compile"].startswith("1/0")]
            self.assertEqual([(one["unfinished"]["ranks"], one["without_lookup"]["ranks"]) for one in lookups], [(rank, "")])
            text = run("cache", database)
            self.assertIn(f"{rank}: not in log ({state.removeprefix('is ')})", text)
            self.assertNotIn("no lookup", text)
            diff = run("diff", database, "--rank", "0", "--rank", rank)
            self.assertRegex(" ".join(diff.split()), rf"miss → not in the log \(the compile {state}\)")
            self.assertNotIn("no lookup", diff)


class Bypasses(AnswerTest):
    def test_a_bypass_that_loses_no_time_is_a_note(self):
        """DistributedDataParallel splits the graph at its buckets: no cache holds it. Where all caches are empty, no cache would have had it."""
        of_graph, frozen = "Won't cache a graph with fakify_first_call enabled", "Cannot cache a graph with freezing enabled"
        for number, (reason, other, severity) in enumerate(((of_graph, "hit", "note"), (frozen, "hit", "warning"), (frozen, "miss", "note"))):
            ids, others = ({"frame_id": frame, "frame_compile_id": 0, "attempt": 0} for frame in (0, 1))
            bypass = {"artifact": {"name": "aotautograd_cache_bypass", "encoding": "json"}, **ids}
            lookup = {"artifact": {"name": f"fx_graph_cache_{other}", "encoding": "json"}, **others}
            path = self.save(f"bypass_{number}.log", record({"dynamo_start": {"stack": []}, **ids}),
                             record(bypass, json.dumps({"cache_bypass_reason": reason, "cache_state": "bypass", "components": []})),
                             record({"compilation_metrics": {"co_name": "f", "co_filename": "/u/m.py", "co_firstlineno": 9}, **ids}),
                             record({"dynamo_start": {"stack": []}, **others}), record(lookup, json.dumps({"key": "fa", "cache_state": other, "components": []})),
                             record({"compilation_metrics": {"co_name": "g", "co_filename": "/u/m.py", "co_firstlineno": 19}, **others}))
            one, = [one for one in ask("findings", self.ingest(path, name=f"bypass_{number}"))["findings"] if one["kind"] == "cache_bypassed"]
            self.assertEqual((one["severity"], one["cause"]), (severity, reason))

    def test_every_bypass_is_reported(self):
        for scenario in ("cache_bypass_2_6",):
            database = self.job(scenario)
            connection = sqlite3.connect(database)
            self.addCleanup(connection.close)
            groups = connection.execute("SELECT count(DISTINCT layer || ' ' || ifnull(bypass_reason, '')) FROM cache_event WHERE state = 'bypass'").fetchone()[0]
            self.assertGreater(groups, 1)
            bypassed = [one for one in ask("findings", database)["findings"] if one["kind"] == "cache_bypassed"]
            self.assertEqual(len(bypassed), groups)
            for one in bypassed:
                self.assertIn("These compiles take nothing from this cache and store nothing in it", one["detail"])
            frozen, = [one["detail"] for one in bypassed if "freezing" in one["title"]]
            self.assertRegex(frozen, r"The compile took \d+\.\d s\.$")
            self.assertTrue(any("The fx_graph cache was asked in them" in one["detail"] for one in bypassed))


if __name__ == "__main__":
    unittest.main()
