#!/usr/bin/env python3
"""Holds the fleet on ClickHouse 18.16 (Debian's server) against the engine of today (chDB of PyPI or npm, behind the front of
tests/fleet/chdb_server.py): every statement that tlparse sends, the rows of every table, and every answer.

usage: fleet_engines.py [--keep]          (TLPARSE names the program; the Python that runs it needs the package chdb, or CHDB_LIBRARY is set)
    --keep         writes fixtures/compatibility/clickhouse.json and the tables of docs/measurements/clickhouse-versions.md

Exit code 1: rows or answers differ, a statement is refused, a setting is obsolete.
"""
import collections
import gzip
import hashlib
import http.client
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "fleet"), os.path.join(ROOT, "tests", "e2e"), os.path.join(ROOT, "tests", "tools")]
import chdb_server  # noqa: E402
import clickhouse  # noqa: E402
import kept  # noqa: E402
from harness import TLPARSE, bundled  # noqa: E402

SCENARIOS = ["train_order", "cache_some_ranks", "diverge_config_2_6", "graph_breaks_2_6", "recompiles_2_6"]
QUESTIONS = [["jobs"], ["time"], ["time", "--job", "train_order"], ["cache"], ["cache", "--job", "cache_some_ranks"],
             ["ranks", "--job", "diverge_config_2_6"], ["breaks"], ["recompiles"], ["code"], ["findings"],
             ["kernel", "extern_kernels.mm"]]
# The moment of a push and the number of a load, which are others on each engine (tlparse/src/fleet/push.cc).
MOMENTS = {"load_id", "push.pushed_us", "push.version", "schema_version.made_us"}
KINDS = re.compile(r"\s*((?:CREATE|ALTER|DROP|INSERT|OPTIMIZE|TRUNCATE)\s+\w+|\w+)", re.IGNORECASE)


class Counted:
    """Before a server: counts the statements that tlparse sends there, and what the server refuses."""

    def __init__(self, upstream):
        self.upstream, self.sent, self.texts, self.refused = urllib.parse.urlsplit(upstream).netloc, collections.Counter(), collections.defaultdict(set), []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def count(self, path, body, status, answer):
        parameters = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)
        text = parameters["query"][0] if "query" in parameters else body.decode("utf-8", "replace")
        kind = KINDS.match(text).group(1).upper()
        self.sent[kind] += 1
        self.texts[kind].add(re.sub(r"'(?:[^'\\]|\\.)*'|\b\d+\b", "?", text))
        if status != 200:
            self.refused.append([text[:300], answer[:300].decode("utf-8", "replace")])

    def handler(outer):  # noqa: N805
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                server = http.client.HTTPConnection(outer.upstream, timeout=300)
                server.request("POST", self.path, body, {name: value for name, value in self.headers.items() if name.lower() != "host"})
                reply = server.getresponse()
                answer = reply.read()
                plain = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
                outer.count(self.path, plain, reply.status, answer)
                self.send_response(reply.status)
                for name, value in reply.getheaders():
                    if name.lower() == "content-encoding" or name.lower().startswith("x-clickhouse"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
                server.close()

            def log_message(self, *_):
                pass
        return Handler


class OneServer:
    """The old server, with what chdb_server.ChdbServer has."""

    def __init__(self, folder):
        ports = clickhouse.free_ports(3)
        self.server = clickhouse.Server(f"{folder}/old", ports, [ports[1]])
        self.server.start()
        self.url, self.query, self.stop = self.server.url, self.server.query, self.server.stop


def tlparse(*arguments):
    done = subprocess.run([TLPARSE, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"tlparse {' '.join(arguments)}: {done.stderr.strip()[:500]}")
    return done.stdout


def columns(server, table):
    return [name for name in server.query(f"SELECT name FROM system.columns WHERE database = 'tlparse' AND table = '{table}' ORDER BY name").split()
            if not {name, f"{table}.{name}"} & MOMENTS]


def content(server, table, names):
    """(number of rows, hash of the rows in the order of their columns)."""
    shown = ", ".join(f"`{name}`" for name in names)
    request = urllib.request.Request(f"{server.url}/?database=tlparse",
                                     data=f"SELECT {shown} FROM {table} ORDER BY {shown} FORMAT TabSeparated".encode())
    data = urllib.request.urlopen(request, timeout=300).read()
    return data.count(b"\n"), hashlib.md5(data).hexdigest()


def compare_tables(engines):
    """[[table, rows of one, rows of the other, whether they are the same]]."""
    found = []
    for table in engines[0].query("SELECT name FROM system.tables WHERE database = 'tlparse' AND engine NOT LIKE '%View' ORDER BY name").split():
        names = columns(engines[0], table)
        contents = [content(engine, table, names) for engine in engines]
        found.append([table, contents[0][0], contents[1][0], contents[0] == contents[1] and names == columns(engines[1], table)])
    return found


def ask(url, question):
    return json.loads(tlparse("fleet", *question, "--url", url, "--since", "2026-01-01", "--json"))


def compare_answers(fronts):
    """[[question, whether the answers are the same]]; findings are made by the first question and read by the second."""
    found = []
    for question in QUESTIONS:
        answers = [[ask(front.url, question) for front in fronts] for _ in range(2)]
        found.append([" ".join(["fleet", *question]), all(one == other for one, other in answers)])
    return found


def statements(fronts):
    """[[kind, number of distinct texts at each engine, number sent to each]]."""
    return [[kind, *(len(front.texts[kind]) for front in fronts), *(front.sent[kind] for front in fronts)]
            for kind in sorted(fronts[0].sent | fronts[1].sent)]


def compare(folder, engines):
    fronts = [Counted(engine.url) for engine in engines]
    for front in fronts:
        tlparse("fleet", "init", "--url", front.url)
    for name in SCENARIOS:
        tlparse(os.path.dirname(bundled(name)), "--db-only", "--db", f"{folder}/{name}.db", "--run", name)
        for front in fronts:
            tlparse("push", f"{folder}/{name}.db", "--url", front.url, "--job", name, "--day", "2026-10-01")
    new = engines[1]
    return {"engines": [engine.query("SELECT version()").strip() for engine in engines], "tables": compare_tables(engines),
            "answers": compare_answers(fronts), "statements": statements(fronts), "refused": [front.refused for front in fronts],
            "obsolete settings": new.query("SELECT name FROM system.settings WHERE changed AND is_obsolete").split(),
            "warnings": new.query("SELECT message FROM system.warnings").strip().splitlines()}


def main():
    if sys.argv[1:] not in ([], ["--keep"]):
        sys.exit(__doc__)
    clickhouse.skip_without_server()
    if not chdb_server.library():
        print("skipped: chDB is not installed (pip install chdb)")
        return clickhouse.SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        engines = [OneServer(folder), chdb_server.ChdbServer(folder)]
        try:
            found = compare(folder, engines)
        finally:
            for engine in engines:
                engine.stop()
    print(json.dumps(found, indent=1))
    differs = [row[0] for row in found["tables"] + found["answers"] if not row[-1]]
    faults = [*differs, *sum(found["refused"], []), *found["obsolete settings"]]
    print(f"{len(found['tables'])} tables, {len(found['answers'])} answers, {sum(row[-1] for row in found['statements'])} statements; "
          + (f"NOT THE SAME, or refused: {faults}" if faults else "all the same, none refused"), file=sys.stderr)
    if sys.argv[1:]:
        kept.keep("clickhouse", found)
    sys.stdout.flush()
    os._exit(1 if faults else 0)  # libchdb's threads do not outlive an ordinary exit unharmed


if __name__ == "__main__":
    sys.exit(main())
