"""tlparse mcp answers again without computing again, while the database is as it was, and not when it has changed."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_protocol import ROOT, TLPARSE, request  # noqa: E402

LOGS = os.path.join(ROOT, "fixtures", "logs")


class Client:
    def __init__(self, database):
        self.server = subprocess.Popen([TLPARSE, "mcp", database], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.count = 0

    def ask(self, method, params):
        self.count += 1
        self.server.stdin.write(request(self.count, method, params) + b"\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())["result"]

    def call(self, tool, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": {"budget": 50000, **arguments}})["structuredContent"]["answer"]

    def faults_of_children(self):
        """Page faults of all children that have ended: each answer that is computed has some."""
        with open(f"/proc/{self.server.pid}/stat", encoding="ascii") as file:
            return int(file.read().rsplit(")", 1)[1].split()[8])

    def close(self):
        self.server.stdin.close()
        self.server.stdout.close()
        self.server.wait(60)


class KnownAnswers(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.database = os.path.join(scratch.name, "job.db")
        self.add("cache_some_ranks")
        self.client = Client(self.database)
        self.addCleanup(self.client.close)

    def add(self, name):
        subprocess.run([TLPARSE, os.path.join(LOGS, name), "--run", name, "--db", self.database, "--db-only"], check=True, capture_output=True)
        time.sleep(0.2)  # what was written just now may be written again unseen

    def test_a_known_answer_is_not_computed_again(self):
        findings = self.client.call("findings")
        faults = self.client.faults_of_children()
        self.assertGreater(faults, 0)
        self.assertEqual(self.client.call("findings"), findings)
        self.assertNotIn("log_lines", findings["findings"][0])
        one = self.client.call("evidence", id=findings["findings"][0]["id"])
        self.assertEqual(self.client.faults_of_children(), faults)
        self.assertEqual([finding["id"] for finding in one["findings"]], [findings["findings"][0]["id"]])
        self.assertTrue(one["findings"][0]["log_lines"])
        self.client.call("findings", severity="error")
        self.assertGreater(self.client.faults_of_children(), faults)

    def test_the_evidence_is_that_of_the_command(self):
        for finding in self.client.call("findings")["findings"]:
            known = self.client.call("evidence", id=finding["id"])
            other = Client(self.database)
            self.addCleanup(other.close)
            self.assertEqual(other.call("evidence", id=finding["id"]), known)

    def test_a_changed_database_is_asked_again(self):
        before = self.client.call("findings")
        self.assertEqual(before["run"], "cache_some_ranks")
        self.add("diverge_config_2_6")
        after = self.client.call("findings")
        self.assertEqual(after["run"], "diverge_config_2_6")
        self.assertNotEqual(after["findings"], before["findings"])

    def test_an_idle_server_prepares_what_is_asked_most(self):
        self.client.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
        faults, last = 0, time.monotonic()
        while faults == 0 or time.monotonic() - last < 2:  # until no child has ended for a while
            time.sleep(0.05)
            if self.client.faults_of_children() > faults:
                faults, last = self.client.faults_of_children(), time.monotonic()
        self.assertTrue(self.client.call("findings")["findings"])
        for tool in ("ranks", "cache", "status", "collectives", "recompiles", "history"):
            self.client.ask("tools/call", {"name": tool})
        self.assertEqual(self.client.faults_of_children(), faults)
        self.client.ask("tools/call", {"name": "execution"})
        self.assertGreater(self.client.faults_of_children(), faults)

    def test_pages_of_history_are_all_its_compiles(self):
        """The server asks for those alone that it can show."""
        def printed(*options):
            return json.loads(subprocess.run([TLPARSE, "history", self.database, "--json", *options], check=True, capture_output=True).stdout)

        whole = printed()
        ids = [one["compile_id"] for one in whole["compiles"]]
        self.assertGreater(len(ids), 4)
        self.assertNotIn("compile_count", whole)
        for arguments in ({"limit": 1}, {"limit": 3}, {"budget": 3000}):
            shown, cursor, pages = [], "0", 0
            while cursor is not None:
                page = self.client.ask("tools/call", {"name": "history", "arguments": {**arguments, "cursor": cursor}})["structuredContent"]
                self.assertNotIn("compile_count", page["answer"])
                rows = [one["compile_id"] for one in page["answer"]["compiles"]]
                self.assertLessEqual(len(rows), arguments.get("limit", len(ids)))
                self.assertEqual([[one["shown"], one["of"]] for one in page.get("left_out", []) if one["where"] == "compiles"], [[len(rows), len(ids)]])
                shown, cursor, pages = shown + rows, page.get("next_cursor"), pages + 1
            self.assertEqual(shown, ids, arguments)
            self.assertGreater(pages, 1)
        for rank in ((), ("--rank", "1")):
            of_rank = printed(*rank)["compiles"]
            part = printed(*rank, "--skip", "1", "--limit", "2")
            self.assertEqual(part["compiles"], of_rank[1:3])
            self.assertEqual(part["compile_count"], len(of_rank))
            self.assertEqual(printed(*rank, "--skip", "2")["compiles"], of_rank[2:])

    def test_pages_of_provenance_are_all_its_rows(self):
        def key(row):
            return row["graph_id"], row["kernel_id"], row.get("stack_ordinal")

        printed = subprocess.run([TLPARSE, "provenance", self.database, "--json"], check=True, capture_output=True).stdout
        rows = [key(row) for row in json.loads(printed)["kernels"]]
        shown, cursor, pages = [], "0", 0
        while cursor is not None:
            page = self.client.ask("tools/call", {"name": "provenance", "arguments": {"limit": 3, "cursor": cursor}})["structuredContent"]
            shown, cursor, pages = shown + [key(row) for row in page["answer"]["kernels"]], page.get("next_cursor"), pages + 1
        self.assertEqual(shown, rows)
        self.assertGreater(pages, 1)


if __name__ == "__main__":
    unittest.main()
