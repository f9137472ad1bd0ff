#!/usr/bin/env python3
"""Holds the fleet on ClickHouse 18.16 (Debian's server) against the engine of today (chDB of PyPI or npm, behind the front of
tests/fleet/chdb_server.py): the rows of every table, and every answer. Prints the tables of docs/measurements/clickhouse-versions.md.

usage: fleet_engines.py          (TLPARSE names the program; the Python that runs it needs the package chdb, or CHDB_LIBRARY is set)

Exit code 1: rows or answers differ.
"""
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "fleet"), os.path.join(ROOT, "tests", "e2e")]
import chdb_server  # noqa: E402
import clickhouse  # noqa: E402
from harness import TLPARSE, bundled  # noqa: E402

SCENARIOS = ["train_order", "cache_some_ranks", "diverge_config_2_6", "graph_breaks_2_6", "recompiles_2_6"]
QUESTIONS = [["jobs"], ["time"], ["time", "--job", "train_order"], ["cache"], ["cache", "--job", "cache_some_ranks"],
             ["ranks", "--job", "diverge_config_2_6"], ["breaks"], ["recompiles"], ["code"], ["findings"],
             ["kernel", "extern_kernels.mm"]]
ROUNDS = 5


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
    """Without the moment of a push, which is another on each engine."""
    return server.query(f"SELECT name FROM system.columns WHERE database = 'tlparse' AND table = '{table}' AND name != 'load_id' "
                        "AND NOT (table IN ('push', 'schema_version') AND type LIKE 'DateTime%') ORDER BY name").split()


def content(server, table, names):
    """(number of rows, hash of the rows in the order of their columns)."""
    shown = ", ".join(f"`{name}`" for name in names)
    request = urllib.request.Request(f"{server.url}/?database=tlparse",
                                     data=f"SELECT {shown} FROM {table} ORDER BY {shown} FORMAT TabSeparated".encode())
    data = urllib.request.urlopen(request, timeout=300).read()
    return data.count(b"\n"), hashlib.md5(data).hexdigest()


def print_tables(engines):
    old = engines[0]
    print("| table | rows, 18.16 | rows, chDB | the same |\n|---|---|---|---|")
    differs, empty = False, 0
    for table in old.query("SELECT name FROM system.tables WHERE database = 'tlparse' AND engine NOT LIKE '%View' ORDER BY name").split():
        names = columns(old, table)
        found = [content(engine, table, names) for engine in engines]
        same = found[0] == found[1] and names == columns(engines[1], table)
        differs = differs or not same
        if same and found[0][0] == 0:
            empty += 1
        else:
            print(f"| {table} | {found[0][0]} | {found[1][0]} | {'yes' if same else '**no**'} |", flush=True)
    print(f"\n{empty} more tables have the same columns and no rows on both.")
    return differs


def ask(engine, question):
    """(answer, milliseconds)."""
    start = time.monotonic()
    text = tlparse("fleet", *question, "--url", engine.url, "--since", "2026-01-01", "--json")
    return json.loads(text), (time.monotonic() - start) * 1e3


def print_answers(engines):
    print("\n| answer | 18.16, ms | chDB, ms | the same |\n|---|---|---|---|")
    differs = False
    for question in QUESTIONS:
        rounds = [[ask(engine, question) for engine in engines] for _ in range(ROUNDS)]
        same = all(one[0][0] == one[1][0] for one in rounds)
        differs = differs or not same
        times = [statistics.median(one[i][1] for one in rounds) for i in range(2)]
        print(f"| `fleet {' '.join(question)}` | {times[0]:.0f} | {times[1]:.0f} | {'yes' if same else '**no**'} |", flush=True)
    return differs


def main():
    clickhouse.skip_without_server()
    if not chdb_server.library():
        print("skipped: chDB is not installed (pip install chdb)")
        return clickhouse.SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        engines = [OneServer(folder), chdb_server.ChdbServer(folder)]
        try:
            for engine in engines:
                tlparse("fleet", "init", "--url", engine.url)
            for name in SCENARIOS:
                tlparse(os.path.dirname(bundled(name)), "--db-only", "--db", f"{folder}/{name}.db", "--run", name)
                for engine in engines:
                    tlparse("push", f"{folder}/{name}.db", "--url", engine.url, "--job", name, "--day", "2026-10-01")
            print("Engines: " + ", ".join(engine.query("SELECT version()").strip() for engine in engines) + "\n")
            differs = print_tables(engines)
            differs = print_answers(engines) or differs
            new = engines[1]
            print("\nObsolete settings that differ from their defaults: "
                  + (new.query("SELECT name FROM system.settings WHERE changed AND is_obsolete").split() or ["none"])[0])
            print("Warnings of the server: " + (new.query("SELECT message FROM system.warnings").strip() or "none"))
        finally:
            for engine in engines:
                engine.stop()
    sys.stdout.flush()
    os._exit(1 if differs else 0)  # libchdb's threads do not outlive an ordinary exit unharmed


if __name__ == "__main__":
    sys.exit(main())
