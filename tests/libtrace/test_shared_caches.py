"""Output of tlparse for caches that processes share: a race for one key whose first process is killed, and a remote
store that does not answer. test_shared_caches.py REDIS_TEST TLPARSE; skipped where no redis-server is installed."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

REDIS_TEST, TLPARSE = sys.argv[1:3]
RECORD = 'V1121 08:30:0{second}.000000 {rank} m.cc:1] {{"{kind}": {value}, "rank": {rank}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0{rest}}}\n'


def answer(*arguments):
    done = subprocess.run([TLPARSE, *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout


class SharedCaches(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def ingest(self, logs):
        self.assertEqual(answer(logs, "-o", self.folder / "out")[0], 0)
        return self.folder / "out/trace.db"

    def test_a_process_killed_while_others_wait(self):
        logs = self.folder / "logs"
        logs.mkdir()
        subprocess.run([REDIS_TEST, "A waiting process takes over from one that was killed"], check=True,
                       env={**os.environ, "LIBTRACE_RACE_TRACES": str(logs)}, stdout=subprocess.DEVNULL)
        database = self.ingest(logs)
        code, text = answer("sql", database, "--json", "SELECT rank, state, waited_ns > 0 AS waited, time_taken_ns < waited_ns AS apart"
                            " FROM cache_event ORDER BY rank")
        rows = [list(row.values()) for row in json.loads(text)["rows"]]
        self.assertEqual(rows, [[0, "miss", None, None], [1, "miss", 1, 1], [2, "hit", None, None]])
        sums = json.loads(answer("cache", "--json", database)[1])["economics"][0]
        self.assertEqual((sums["hits"], sums["misses"], sums["remote_errors"]), (1, 2, 0))
        self.assertGreater(sums["waited_ns"], 1_000_000_000)
        found = answer("findings", "--json", database)[1]
        kinds = {finding["kind"]: finding["ranks"] for finding in json.loads(found)["findings"]}
        self.assertEqual(kinds["stopped_first"], [0])
        self.assertRegex(found, r"Most of the difference in 0/0 \w+ \([0-9.]+ s more\): [0-9.]+ s of waiting for another process to compile the key of acme_kernel")

    def cache_job(self, changed, count):
        """Logs of `count` ranks that hit one key; the event of the last one has these members as well."""
        logs = self.folder / "logs"
        logs.mkdir()
        for rank in range(count):
            info = {"cache_status_detailed": "hit", "key": "k" * 52, "components": [], "cache_event_time": 1, "cache_state": "hit"}
            if rank == count - 1:
                info.update(changed)
            name = "acme_cache_" + info["cache_state"]
            (logs / f"dedicated_log_torch_trace_rank_{rank}_aaaaaaaa.log").write_text(
                RECORD.format(second=1, rank=rank, kind="dynamo_start", value='{"stack": []}', rest="")
                + RECORD.format(second=2, rank=rank, kind="artifact", value=json.dumps({"name": name, "encoding": "json"}), rest=', "has_payload": "0"')
                + "\t" + json.dumps(info) + "\n")
        return self.ingest(logs)

    def test_a_store_that_does_not_answer(self):
        database = self.cache_job({"cache_status_detailed": "remote_error", "cache_state": "miss",
                                   "remote_error": "Redis closed the connection"}, 3)
        cache = json.loads(answer("cache", "--json", database)[1])
        self.assertEqual([(one["cause"], one["text"], one["ranks"]["ranks"]) for one in cache["findings"]],
                         [("remote_error", "Redis closed the connection", "2")])
        self.assertEqual([(one["state"], one["remote_error"]) for one in cache["lookups"][0]["classes"]],
                         [("hit", None), ("remote_error", "Redis closed the connection")])
        findings = [one for one in json.loads(answer("findings", "--json", database)[1])["findings"] if "cache" in one["kind"]]
        self.assertEqual([(one["kind"], one["ranks"], one["cause"]) for one in findings],
                         [("remote_cache_error", [2], "Redis closed the connection")])
        self.assertEqual(answer("check", database, "--max-cache-misses", "0")[0], 1)

    def test_a_wait_that_was_given_up(self):
        database = self.cache_job({"cache_status_detailed": "full_miss", "cache_state": "miss", "waited_ns": 10_000_000_000,
                                   "wait_given_up": "nested"}, 2)
        self.assertEqual(json.loads(answer("cache", "--json", database)[1])["economics"][0]["waits_given_up"], 1)
        self.assertIn("acme: 1 lookup compiled a key although another thread or process was compiling it",
                      " ".join(answer("cache", database)[1].split()))


if __name__ == "__main__":
    if shutil.which("redis-server") is None:
        print("skipped: redis-server is not installed")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
