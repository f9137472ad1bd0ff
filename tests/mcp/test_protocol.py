"""tlparse mcp is sent what no client sends: it answers with errors of JSON-RPC, and goes on."""

import collections
import json
import os
import random
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TLPARSE = os.environ.get("TLPARSE", os.path.join(ROOT, "build", "bin", "tlparse"))
JOB = os.path.join(ROOT, "fixtures", "logs", "simple")
BATCHES, COUNT = (200, 5000) if os.environ.get("TRACEKIT_LONG") else (1, 3000)


def request(number, method, params=None):
    message = {"jsonrpc": "2.0", "id": number, "method": method}
    return json.dumps(message if params is None else {**message, "params": params}).encode()


def talk(lines, *names):
    done = subprocess.run([TLPARSE, "mcp", *names], input=b"\n".join(lines) + b"\n", capture_output=True, timeout=1200)
    if done.returncode != 0:
        raise AssertionError(f"code {done.returncode}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


class Protocol(unittest.TestCase):
    def test_versions(self):
        for asked, expected in (("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25"), (7, "2025-11-25")):
            answer, = talk([request(1, "initialize", {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})])
            self.assertEqual(answer["result"]["protocolVersion"], expected)

    def test_errors(self):
        for line, code in ((b"no JSON", -32700), (b"[1, 2]", -32600), (b"{}", -32600), (b"7", -32600), (b"\xff\xfe", -32700), (b"[" * 5000, -32700),
                           (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600), (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600),
                           (request(1, "no/such"), -32601), (request(1, "tools/call"), -32602), (request(1, "tools/call", []), -32602),
                           (request(1, "tools/call", {"name": 7}), -32602), (request(1, "tools/call", {"name": "x"}), -32602),
                           (request(1, "tools/list", "text"), -32600), (b'"' + b"a" * 2_000_000 + b'"', -32600)):
            answers = talk([line, request("last", "ping")])  # a ping is answered at once
            self.assertEqual([one["error"]["code"] for one in answers if "error" in one], [code], line[:60])
            self.assertEqual([one["id"] for one in answers if "result" in one], ["last"])

    def test_what_needs_no_answer_has_none(self):
        self.assertEqual([one["id"] for one in talk([b"", b"  ", b'{"jsonrpc": "2.0", "method": "notifications/initialized"}',
                                                     b'{"jsonrpc": "2.0", "id": 3, "result": {}}', b'{"jsonrpc": "2.0", "method": "no/such"}',
                                                     b'{"jsonrpc": "2.0", "method": "notifications/cancelled"}', request(1, "ping")])], [1])

    def test_requests_in_the_queue_can_be_cancelled(self):
        slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n LIMIT 1"
        cancel = [json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}).encode() for number in (2, 1)]
        calls = [request(number, "tools/call", {"name": "sql", "arguments": {"query": slow}}) for number in (1, 2)]
        self.assertEqual([one["id"] for one in talk([*calls, *cancel, request(3, "ping")], JOB)], [3])

    def test_documents_are_resources(self):
        listed, = talk([request(1, "resources/list")])
        documents = [one for one in listed["result"]["resources"] if "/document/" in one["uri"]]
        self.assertGreater(len(documents), 5)
        for one, answer in zip(documents, talk([request(number, "resources/read", {"uri": one["uri"]}) for number, one in enumerate(documents)])):
            name = one["uri"].rpartition("/")[2]
            with open(os.path.join(ROOT, "schemas/README.md" if name == "tables" else f"docs/{name}.md"), encoding="utf-8") as file:
                self.assertEqual(answer["result"]["contents"], [{"uri": one["uri"], "mimeType": "text/markdown", "text": file.read()}])
            self.assertEqual((one["name"], one["mimeType"]), (name, "text/markdown"))
        for uri in ("tlparse://document/", "tlparse://document/README", "tlparse://document/../playbooks/stuck", "tlparse://document/questions.md"):
            answer, = talk([request(1, "resources/read", {"uri": uri})])
            self.assertIn("error", answer, uri)

    def test_random_messages(self):
        """Each is answered at most once, nearly all at once: only some start a tool."""
        counts = collections.Counter()
        for batch in range(BATCHES):
            self.send_random_messages(random.Random(36 + batch), counts)
        print(f"{BATCHES * COUNT} messages:", ", ".join(f"{count} {what}" for what, count in counts.most_common()), file=sys.stderr)
        for what in ("results", "errors of tools", -32700, -32600, -32601, -32602):
            self.assertGreater(counts[what], 0, what)

    def send_random_messages(self, choice, counts):
        names = ["findings", "evidence", "sql", "status", "open", "diff", "", "\u0000", "résumé"]
        values = [None, 0, -1, 2**63, 1e300, "", "x" * 300, "\u0000", "--help", "-o", "../../etc", [], {}, [[]], {"a": {"b": []}}, True, "'; DROP"]
        keys = ["name", "arguments", "uri", "query", "db", "id", "path", "budget", "cursor", "limit", "run", "launch", "protocolVersion", "requestId"]
        methods = ["ping", "initialize", "tools/list", "resources/read", "resources/list", "no/such", "", "notifications/cancelled"] + ["tools/call"] * 2

        def value(depth=0):
            if depth < 3 and choice.random() < 0.3:
                return {choice.choice(keys): value(depth + 1) for _ in range(choice.randrange(4))}
            return choice.choice(values + names)

        lines = []
        for number in range(COUNT):
            message = {"jsonrpc": "2.0", "id": number, "method": choice.choice(methods), "params": {"name": choice.choice(names[:1] + [value()]), "arguments": value()}}
            for _ in range(choice.randrange(3)):
                message[choice.choice(list(message))] = value()
            line = json.dumps(message).encode()
            if choice.random() < 0.4:
                line = bytearray(line)
                for _ in range(choice.randrange(1, 6)):
                    line[choice.randrange(len(line))] = choice.randrange(256)
            lines.append(bytes(line).replace(b"\n", b" "))
        answers = talk([*lines, request("last", "ping")])
        self.assertIn("last", [one["id"] for one in answers])
        self.assertLessEqual(len(answers), COUNT + 1)
        for one in answers:
            self.assertEqual(one["jsonrpc"], "2.0")
            self.assertTrue(("result" in one) != ("error" in one))
            counts[one["error"]["code"] if "error" in one else "errors of tools" if one["result"].get("isError") else "results"] += 1


if __name__ == "__main__":
    unittest.main()
