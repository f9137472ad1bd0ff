#!/usr/bin/env python3
"""Ingests a job of N ranks without ever having all its logs: batch after batch, each by tlparse itself.

usage: many_ranks.py TLPARSE TEMPLATE_LOG DATABASE N [--batch N] [--stages N] [--verify]

The ranks are those of tests/tools/make_job.py --slim, divergences planted. Each batch of logs is written to --folder, appended to the
run by `tlparse --run job --db DATABASE`, and removed; then the records and payloads that no answer about ranks reads are deleted, so
that the database stays small. Everything else is what the importer wrote.

--stages N: the ranks are N stages, one after the other, each with functions of a file of its own: N roles.

--verify compares the database, table by table and row by row, with one that the same logs were ingested into at once.
DATABASE.plan.json lists the planted divergences.
"""
import argparse
import collections
import dataclasses
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import make_job  # noqa: E402
import trace_lines  # noqa: E402

# Tables of records and payloads, and what of them answers read: the configuration of a compile and generated codes.
RECORDS = ("record_row", "compile_record_row", "record_kind_row", "payload_row", "payload_hash_row", "payload_content_row")
KEPT = "SELECT r.id FROM record_row r WHERE r.name_id IN (SELECT id FROM text_row WHERE text = 'torch._functorch.config') " \
       "OR r.id IN (SELECT record_id FROM output_code_row) OR r.id = (SELECT max(id) FROM record_row)"


FUNCTION_FILE = re.compile(rb'("co_filename": "[^"]*/)[^"/]*\.py"')


class Ranks:
    """Renders logs of single ranks."""

    def __init__(self, template, count, stages=1):
        records = [item for item in trace_lines.read_log(template)
                   if isinstance(item, trace_lines.Record) and item.kind not in make_job.SLIM]
        self.stage_of = lambda rank: rank * stages // count
        self.stages = [records] if stages == 1 else [[self.of_stage(record, stage) for record in records] for stage in range(stages)]
        self.records = self.stages[0]
        kinds = make_job.KINDS[:count // 4]
        self.placed = make_job.place_plants(kinds, count)
        self.kind_of_rank = {rank: kind for kind, rank in self.placed.items()}
        self.common = [make_job.Template(one) for one in self.stages]
        self.size = 0

    @staticmethod
    def of_stage(record, stage):
        """The record with functions of another file."""
        def change(text):
            return FUNCTION_FILE.sub(rb'\1stage_%d.py"' % stage, text)
        envelope = change(record.envelope_bytes)
        return dataclasses.replace(record, envelope_bytes=envelope, envelope=json.loads(envelope), payload_lines=[change(line) for line in record.payload_lines])

    def write(self, rank, folder):
        """The path of the rank's log; None if it is planted to have none."""
        kind = self.kind_of_rank.get(rank)
        if kind == "no_log":
            return None
        stage = self.stage_of(rank)
        template = make_job.Template(self.stages[stage], make_job.Plan(kind, self.stages[stage])) if kind else self.common[stage]
        path = os.path.join(folder, f"dedicated_log_torch_trace_rank_{rank}_{rank:08d}.log")
        with open(path, "wb") as out:
            self.size += out.write(template.render(rank))
        return path

    def plan(self):
        rows = []
        for kind, rank in self.placed.items():
            area, text = make_job.Plan(kind, self.records).expectation()
            rows.append({"kind": kind, "rank": rank, "area": area, "text": text})
        return rows


def ingest(tlparse, database, logs):
    started = time.monotonic()
    before = os.times()
    subprocess.run([tlparse, *logs, "--run", "job", "--db", database, "--db-only"], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return time.monotonic() - started, after.children_user + after.children_system - before.children_user - before.children_system


def drop_records(database):
    db = sqlite3.connect(database)
    db.executescript(f"""
        PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
        CREATE TEMP TABLE kept AS {KEPT};
        CREATE TEMP TABLE kept_payload AS SELECT DISTINCT payload_id AS id FROM record_row WHERE id IN kept
          UNION SELECT max(id) FROM payload_row;
        DELETE FROM compile_record_row WHERE record_id NOT IN kept;
        DELETE FROM record_row WHERE id NOT IN kept;
        DELETE FROM payload_content_row WHERE payload_id NOT IN kept_payload;
        DELETE FROM payload_hash_row WHERE id NOT IN kept_payload;
        DELETE FROM payload_row WHERE id NOT IN kept_payload;""")
    db.close()


def rows_of(db, table):
    # Where logs lie, and when the run was, is not what is compared.
    columns = [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})") if (table, name) not in (("run", "created_at"), ("run", "uuid"), ("log_file", "path"))]
    return collections.Counter(db.execute(f"SELECT {', '.join(columns)} FROM {table}"))


def compare(database, other):
    """Prints the tables that differ; True if none does."""
    a, b = sqlite3.connect(database), sqlite3.connect(other)
    tables = [name for name, in a.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")]
    different = 0
    for table in tables:
        if table in RECORDS:
            continue
        x, y = rows_of(a, table), rows_of(b, table)
        if x != y:
            different += 1
            print(f"{table}: {(x - y).total()} rows only in batches, {(y - x).total()} only at once, e.g. {sorted(map(repr, x - y))[:1]} {sorted(map(repr, y - x))[:1]}")
    print(f"{len(tables) - len(RECORDS)} tables compared, {different} differ")
    return different == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tlparse")
    parser.add_argument("template")
    parser.add_argument("database")
    parser.add_argument("count", type=int)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--stages", type=int, default=1)
    parser.add_argument("--folder", default="/dev/shm/many_ranks", help="for the logs of a batch")
    parser.add_argument("--verify", action="store_true")
    arguments = parser.parse_args()
    ranks = Ranks(arguments.template, arguments.count, arguments.stages)
    wall = processor = 0.0
    for begin in range(0, arguments.count, arguments.batch):
        os.makedirs(arguments.folder, exist_ok=True)
        logs = [ranks.write(rank, arguments.folder) for rank in range(begin, min(begin + arguments.batch, arguments.count))]
        took = ingest(arguments.tlparse, arguments.database, [log for log in logs if log])
        wall, processor = wall + took[0], processor + took[1]
        drop_records(arguments.database)
        shutil.rmtree(arguments.folder)
        print(f"{begin + len(logs)} ranks: {ranks.size / 1e6:.0f} MB of logs, ingest {wall:.1f} s, processor {processor:.1f} s", flush=True)
    db = sqlite3.connect(arguments.database)
    db.execute("VACUUM")
    with open(arguments.database + ".plan.json", "w") as out:
        json.dump({"ranks": arguments.count, "size_bytes": ranks.size, "planted": ranks.plan()}, out, indent=1)
    if not arguments.verify:
        return 0
    os.makedirs(arguments.folder, exist_ok=True)
    logs = [ranks.write(rank, arguments.folder) for rank in range(arguments.count)]
    ingest(arguments.tlparse, arguments.database + ".at_once", [log for log in logs if log])
    shutil.rmtree(arguments.folder)
    return 0 if compare(arguments.database, arguments.database + ".at_once") else 1


if __name__ == "__main__":
    sys.exit(main())
