#!/usr/bin/env python3
"""How long joins of a profile that users write by hand take, with the indexes of the schema and with those it had before.

usage: profile_joins.py [--keep] [--megabytes N] [--limit S] PROFILE.json[.gz]      (TLPARSE names the program)
    --keep         writes fixtures/compatibility/joins.json and docs/compatibility.md

The profile is repeated, with later times and other ids, until it has N MB (118). CPU seconds of Python's SQLite; a join that takes more than
S of them (60) is ended. Exit code 1: one takes more than a second with the indexes of the schema.
"""
import argparse
import gzip
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time

import kept

TLPARSE = os.environ.get("TLPARSE", os.path.join(kept.ROOT, "build", "bin", "tlparse"))
SECONDS = 1.0  # aim
TIME = re.compile(r'"ts": ?(\d+)')
IDS = re.compile(r'"(External id|correlation|Ev Idx|Record function id|Sequence number|id)": ?(\d+)')
# The tables that had one index, of profile_id alone, until 2026-11-26.
BEFORE = ["device_copy", "device_launch", "kernel_run", "op_run"]
SUM = "SELECT count(*), sum(b.duration_ns) FROM "
JOINS = {
    "launch to kernel": SUM + "device_launch_row a JOIN kernel_run_row b ON b.profile_id = a.profile_id AND b.correlation = a.correlation",
    "launch to kernel, the id alone": SUM + "device_launch_row a JOIN kernel_run_row b ON b.correlation = a.correlation",
    "launch to copy": SUM + "device_launch_row a JOIN device_copy_row b ON b.profile_id = a.profile_id AND b.correlation = a.correlation",
    "op to kernel": SUM + "op_run_row a JOIN kernel_run_row b ON b.profile_id = a.profile_id AND b.external_id = a.external_id",
    "op to copy": SUM + "op_run_row a JOIN device_copy_row b ON b.profile_id = a.profile_id AND b.external_id = a.external_id",
    "kernel to the innermost op (`kernel_run_link_row`)": SUM + "op_run_row a JOIN kernel_run_link_row l ON l.launch_op_id = a.id "
                                                                "JOIN kernel_run_row b ON b.id = l.kernel_run_id",
    "flow of forward to backward": SUM + "op_run_row a JOIN op_run_row b ON b.profile_id = a.profile_id AND b.sequence_number = a.sequence_number "
                                         "AND b.start_ns > a.start_ns",
}


def repeat(source, target, megabytes):
    """Writes the larger profile; returns how often it is repeated."""
    with gzip.open(source) if source.endswith(".gz") else open(source, "rb") as file:
        text = file.read().decode()
    begin, end = text.index("[", text.index('"traceEvents"')) + 1, text.rindex("]")
    end = text.rindex("}", begin, end) + 1 if '"traceName"' not in text[begin:end] else text.rindex("]", begin, text.index('"traceName"'))
    events = text[begin:end].rstrip()
    times = [int(found) for found in TIME.findall(events)]
    step = max(times) - min(times) + 1_000_000
    highest = max(int(value) for _, value in IDS.findall(events)) + 1
    written = turn = 0
    with open(target, "w", encoding="utf-8") as file:
        file.write(text[:begin])
        while written < megabytes * 1_000_000:
            moved = TIME.sub(lambda match: f'"ts": {int(match[1]) + turn * step}', events)
            moved = IDS.sub(lambda match: f'"{match[1]}": {int(match[2]) + turn * highest}', moved)
            file.write(("," if turn else "") + moved)
            written += len(moved)
            turn += 1
        file.write(text[end:])
    return turn


def cpu_seconds(database, sql, limit):
    """(CPU seconds, answer); (limit, None) of a query that took longer."""
    start = time.process_time()
    database.set_progress_handler(lambda: time.process_time() - start > limit, 100_000)
    try:
        answer = database.execute(sql).fetchone()
    except sqlite3.OperationalError as error:
        if str(error) != "interrupted":
            raise
        return limit, None
    finally:
        database.set_progress_handler(None, 0)
    return time.process_time() - start, answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--megabytes", type=int, default=118)
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("profile")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        turns = repeat(arguments.profile, f"{folder}/large.json", arguments.megabytes)
        subprocess.run([TLPARSE, f"{folder}/large.json", "--db", f"{folder}/large.db", "--db-only"], check=True, stdout=subprocess.DEVNULL)
        database = sqlite3.connect(f"{folder}/large.db")
        now = {name: cpu_seconds(database, sql, arguments.limit) for name, sql in JOINS.items()}
        for table in BEFORE:
            for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql NOT NULL", [table + "_row"]).fetchall():
                database.execute(f"DROP INDEX {name}")
            database.execute(f"CREATE INDEX {table}_before ON {table}_row(profile_id)")
        rows = []
        for name, sql in JOINS.items():
            before, answer = cpu_seconds(database, sql, arguments.limit)
            assert answer in (None, now[name][1]), f"{name}: {answer}, with indexes {now[name][1]}"
            rows.append([name, now[name][1] and now[name][1][0], round(before, 2) if answer else None, round(now[name][0], 2) if now[name][1] else None])
            print(*rows[-1], sep="\t", flush=True)
        size = os.path.getsize(f"{folder}/large.json")
        found = {"profile": re.sub(r"\.json(\.gz)?$", "", os.path.basename(arguments.profile)), "times": turns, "bytes": size, "limit": arguments.limit,
                 "aim": SECONDS, "rows": rows}
    if arguments.keep:
        kept.keep("joins", found)
    print(json.dumps(found), file=sys.stderr)
    return 1 if any(row[3] is None or row[3] > SECONDS for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
