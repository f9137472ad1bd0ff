"""What `tlparse mcp` cuts of an answer can be had: of every list that it names, nothing twice and nothing lost. What lies at the top is not cut
for what lies below."""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_protocol import ROOT, TLPARSE, request  # noqa: E402

LOGS = os.path.join(ROOT, "fixtures", "logs")
RUNS = os.path.join(ROOT, "fixtures", "runs")
ARGUMENTS = {"compile": {"compile": "0/0"}, "diff": {"ranks": "0,1"}}


class Client:
    def __init__(self, path):
        self.server = subprocess.Popen([TLPARSE, "mcp", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.count = 0

    def call(self, tool, **arguments):
        self.count += 1
        params = {"name": tool, "arguments": {**ARGUMENTS.get(tool, {}), **arguments}}
        self.server.stdin.write(request(self.count, "tools/call", params) + b"\n")
        self.server.stdin.flush()
        result = json.loads(self.server.stdout.readline())["result"]
        text = result["content"][0]["text"]
        return (text if result["isError"] else json.loads(text)), len(text.encode())

    def close(self):
        self.server.stdin.close()
        self.server.stdout.close()
        self.server.wait(60)


def mark(item):
    """What no page cuts of an item: its numbers, and its short texts."""
    if not isinstance(item, dict):
        return item
    return {key: value for key, value in item.items() if isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) < 20)}


def own_lists(document, name):
    """The items of the lists of a name, of the whole document."""
    values = [document]
    for key in name.replace("[]", "").split("."):
        values = [item for value in values if isinstance(value, dict) and value.get(key) for item in
                  (value[key] if isinstance(value[key], list) else [value[key]])]
    return values


class Pages(unittest.TestCase):
    def open(self, folder, name):
        client = Client(os.path.join(folder, name))
        self.addCleanup(client.close)
        return client

    def pages(self, client, tool, name, budget):
        items, cursor = [], "0"
        while cursor:
            page, size = client.call(tool, list=name, cursor=cursor, budget=budget)
            self.assertLessEqual(size, budget, (tool, name))
            self.assertGreater(len(page["answer"]["items"]), 0, (tool, name))
            items += page["answer"]["items"]
            cursor = page.get("next_cursor")
        return items

    def check(self, client, tool):
        answer, size = client.call(tool)
        self.assertLessEqual(size, 2000, tool)
        whole = json.loads(subprocess.run([TLPARSE, tool, client.path, "--json", *sum(([value] for value in ARGUMENTS.get(tool, {}).values()), [])],
                                          check=True, capture_output=True).stdout) if tool != "diff" else None
        count = 0
        for one in answer.get("left_out", []):
            name = one["where"]
            if name == client.rows.get(tool):
                continue
            items = self.pages(client, tool, name, 1500)
            self.assertGreaterEqual(len(items), one["of"], (tool, name))  # of other rows as well
            if whole:
                expected = own_lists(whole, name)
                self.assertEqual(len(items), len(expected), (tool, name))
                key = lambda item: json.dumps(mark(item), sort_keys=True)  # noqa: E731
                known = {}
                for item in expected:
                    known.setdefault(key(item), []).append(item)
                if any(mark(item) for item in expected):
                    for item in items:
                        self.assertTrue(any(mark(item).items() <= mark(other).items() if isinstance(item, dict) else item == other for other in expected))
            count += 1
        return count

    def test_lists_of_jobs(self):
        count = 0
        for name in ("restart_manual_other_config", "graph_breaks_2_6", "cache_some_ranks"):
            client = self.open(LOGS, name)
            client.path = os.path.join(LOGS, name)
            client.rows = {"status": "rows", "ranks": "classes", "recompiles": "series", "collectives": "classes"}
            for tool in ("status", "ranks", "cache", "collectives", "compile"):
                count += self.check(client, tool)
        self.assertGreater(count, 5)

    def test_the_evidence_of_a_finding_has_its_lines(self):
        """Not cut for the findings below it."""
        count = 0
        for name in ("hang_in_compile", "one_rank_cold", "crash_in_compile", "recompile_limit_2_6", "failures_2_6"):
            client = self.open(LOGS, name)
            for finding in client.call("findings")[0]["answer"]["findings"]:
                answer, size = client.call("evidence", id=finding["id"])
                self.assertLessEqual(size, 2000)
                one = answer["answer"]["findings"][0]
                self.assertTrue(one["rows"] and one["log_lines"], (name, one["title"]))
                self.assertIn(one["title"], [whole["title"] for whole in client.call("findings", budget=50000)[0]["answer"]["findings"]])
                count += 1
        self.assertGreaterEqual(count, 5)

    def test_what_is_alike_comes_last(self):
        client = self.open(RUNS, "fr_late")
        groups = client.call("collectives", budget=1500)[0]["answer"]["issued"]["groups"]
        odd = [one["collectives"][0] for one in groups if any(3 == line["sequence_number"] for line in one["collectives"])]
        self.assertTrue(any(not line["is_alike"] and line["sequence_number"] == 3 for line in odd), groups)

    def test_an_unknown_list_is_said(self):
        client = self.open(LOGS, "simple")
        self.assertIn("there is no list 'nonsense' in this answer", client.call("status", list="nonsense")[0])


if __name__ == "__main__":
    unittest.main()
