"""Findings and answers about caches."""

import json
import os
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from answers import AnswerTest, ask, record, run  # noqa: E402


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


class Bypasses(AnswerTest):
    def test_every_bypass_is_reported(self):
        for scenario in ("cache_bypass_2_6",):
            database = self.job(scenario)
            connection = sqlite3.connect(database)
            self.addCleanup(connection.close)
            groups = connection.execute("SELECT count(DISTINCT layer || ' ' || ifnull(bypass_reason, '')) FROM cache_event WHERE state = 'bypass'").fetchone()[0]
            self.assertGreater(groups, 1)
            self.assertEqual(len([one for one in ask("findings", database)["findings"] if one["kind"] == "cache_bypassed"]), groups)


if __name__ == "__main__":
    unittest.main()
