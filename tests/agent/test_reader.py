"""A reader that knows no log and no SQL: open, findings, evidence of the first one, its playbook, and the first other question that the
playbook names. Of each recorded job with a planted cause (key.json) it must have read the cause, in 5 calls and 10 kB.

usage: test_reader.py [--table]     with the table of jobs, calls, bytes, and what the raw logs weigh
"""

import json
import os
import re
import shlex
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
import trace_lines  # noqa: E402

TLPARSE = os.environ.get("TLPARSE", os.path.join(ROOT, "build", "bin", "tlparse"))
LOGS = os.path.join(ROOT, "fixtures", "logs")
MOST_CALLS, MOST_BYTES = 5, 10_000


class Server:
    """A client of tlparse mcp that counts what it reads."""

    def __init__(self):
        self.process = subprocess.Popen([TLPARSE, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.calls = self.bytes = 0
        self.text = ""
        self.send("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "reader", "version": "1"}})

    def send(self, method, params):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params}).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]

    def ask(self, tool, **arguments):
        self.calls += 1
        result = self.send("tools/call", {"name": tool, "arguments": arguments})
        text = result["content"][0]["text"]
        if result["isError"]:
            raise AssertionError(f"{tool} {arguments}: {text}")
        self.bytes += len(text.encode())
        self.text += text
        return result["structuredContent"]["answer"]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=10)


def follow_up(page):
    """The first question of a playbook that is a tool without arguments but the database."""
    for command in re.findall(r"(?m)^tlparse (.+)$", page):
        words = [word for word in shlex.split(command) if word not in ("trace.db", "--all")]
        if len(words) == 1:
            return words[0].replace("-", "_")
    raise AssertionError("the playbook names no other question")


def read(job):
    server = Server()
    try:
        server.ask("open", path=os.path.join(LOGS, job))
        first = server.ask("findings")["findings"][0]
        server.ask("evidence", id=first["id"])
        page = server.ask("explain", kind=first["kind"], budget=3000)["kinds"][0]["text"]
        server.ask(follow_up(page))
        return first, server
    finally:
        server.close()


def weight(job):
    folder = os.path.join(LOGS, job)
    total = 0
    for name in os.listdir(folder):
        with trace_lines.open_log(os.path.join(folder, name)) as log:
            total += sum(len(line) for line in log)
    return total


with open(os.path.join(HERE, "key.json"), encoding="utf-8") as key_file:
    KEY = json.load(key_file)


class Reader(unittest.TestCase):
    def test_it_names_the_cause_of_every_job(self):
        for job, key in KEY.items():
            with self.subTest(job=job):
                first, server = read(job)
                self.assertEqual((first["kind"], first.get("ranks", [])), (key["kind"], key["ranks"]))
                for word in key["words"]:
                    self.assertIn(word, server.text)
                self.assertLessEqual(server.calls, MOST_CALLS)
                self.assertLessEqual(server.bytes, MOST_BYTES)


if __name__ == "__main__":
    if "--table" in sys.argv:
        for name in KEY:
            found, counted = read(name)
            print(f"{name:24} {found['kind']:24} calls {counted.calls}  bytes {counted.bytes:6,}  raw logs {weight(name):12,}")
    else:
        unittest.main()
