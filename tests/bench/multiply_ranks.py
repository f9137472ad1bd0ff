#!/usr/bin/env python3
"""Makes a database of K times the ranks out of one that tlparse wrote, to time answers at sizes whose logs fill a disk.

usage: multiply_ranks.py DATABASE RESULT K

Every copy of the ranks has processes, compiles, graphs and lookups of its own, its own device indexes, and so its own components,
component sets and keys; contents (graphs, codes, schedules) are shared, as ingest shares them. Records and payloads are left
out: answers about ranks read those of the few ranks that differ only. For timing only: this writes rows
as SQL, not through the importer.
"""
import base64
import hashlib
import re
import sqlite3
import sys

# Table → {column: what it counts}. Columns that are not named are copied.
TABLES = {
    "log_file": {"id": "file", "path": "path", "name_rank": "rank"},
    "process": {"id": "process", "log_file_id": "file", "rank": "rank", "pid": "rank"},
    "compile": {"id": "compile", "process_id": "process", "rank": "rank", "first_record_id": "record", "last_record_id": "record"},
    "attempt": {"compile_id": "compile"},
    "graph": {"id": "graph", "compile_id": "compile", "record_id": "record", "code_record_id": "record", "cache_key": "key_text"},
    "graph_text_row": {"record_id": "record", "graph_id": "graph", "compile_id": "compile"},
    "guard_use": {"record_id": "record", "compile_id": "compile"},
    "output_code_row": {"record_id": "record", "graph_id": "graph", "compile_id": "compile"},
    "collective_use": {"record_id": "record", "graph_id": "graph", "compile_id": "compile"},
    "op_list_use": {"record_id": "record", "graph_id": "graph", "compile_id": "compile"},
    "graph_execution_use": {"record_id": "record", "process_id": "process"},
    "compilation_metric_row": {"record_id": "record", "compile_id": "compile"},
    "cache_event_row": {"id": "event", "record_id": "record", "compile_id": "compile", "graph_id": "graph", "key_id": "key",
                        "component_set_id": "set", "parent_event_id": "event"},
    "component_set": {"id": "set", "hash": "hash"},
    "component_run": {"set_id": "set", "list_id": "list"},
    "component_list_row": {"list_id": "list", "component_id": "component"},
    "cache_key": {"key_id": "key", "component_set_id": "set"},
}
COUNTS = {"file": "log_file.id", "process": "process.id", "compile": "compile.id", "graph": "graph.id", "record": "log_file.last_record_id",
          "event": "cache_event_row.id", "set": "component_set.id", "list": "component_list_row.list_id", "component": "component.id",
          "key": "text.id"}


def other_hash(text, copy):
    return base64.b32encode(hashlib.sha256(f"{text}/{copy}".encode()).digest()).decode().lower()[:len(text)]


def open_without_records(source, result):
    """A new database with everything of `source` but records, payloads and events."""
    db = sqlite3.connect(result, factory=Connection)
    db.executescript("PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -400000;")
    db.execute("ATTACH ? AS source", (source,))
    schema = db.execute("SELECT type, name, sql FROM source.sqlite_master WHERE sql IS NOT NULL").fetchall()
    for wanted in ("table", "view"):
        for kind, name, sql in schema:
            if kind == wanted and not name.startswith("sqlite_"):
                db.execute(sql)
                if kind == "table" and name not in ("record_row", "payload_row", "payload_hash", "chromium_event_row", "compile_record_row"):
                    db.execute(f"INSERT INTO main.{name} SELECT * FROM source.{name}")
    for pragma in ("user_version", "application_id"):
        db.execute(f"PRAGMA main.{pragma} = {db.execute(f'PRAGMA source.{pragma}').fetchone()[0]}")
    db.commit()
    db.execute("DETACH source")
    db.indexes = [sql for kind, _, sql in schema if kind == "index"]
    return db


class Connection(sqlite3.Connection):
    """One that remembers which indexes are to be made at the end."""
    indexes = ()


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    source, result, copies = sys.argv[1], sys.argv[2], int(sys.argv[3])
    db = open_without_records(source, result)
    step = {what: db.execute("SELECT max({1}) FROM {0}".format(*place.split("."))).fetchone()[0] for what, place in COUNTS.items()}
    step["rank"] = db.execute("SELECT max(rank) + 1 FROM process").fetchone()[0]
    db.create_function("other_hash", 2, lambda text, copy: None if text is None else text[:1] + other_hash(text[1:], copy), deterministic=True)
    db.create_function("other_device", 2, lambda text, copy: re.sub(
        r"(index=|cuda:)(\d+)", lambda m: m[1] + str(int(m[2]) + copy * step["rank"]), text), deterministic=True)
    db.execute("CREATE TEMP TABLE own_component AS SELECT id FROM component WHERE value LIKE '%cuda%' AND (value LIKE '%index=%' OR value LIKE '%cuda:%')")
    db.execute("CREATE UNIQUE INDEX own_component_id ON own_component(id)")
    for table in TABLES:
        db.execute(f"CREATE TEMP TABLE original_{table} AS SELECT * FROM {table}")
    db.execute("CREATE TEMP TABLE original_component AS SELECT * FROM component WHERE id IN own_component")
    db.execute("CREATE TEMP TABLE original_key AS SELECT * FROM text WHERE id IN (SELECT key_id FROM cache_event_row)")
    for copy in range(1, copies):
        db.execute("INSERT INTO component SELECT id + ?, name_id, other_hash(hash, ?), other_device(value, ?) FROM original_component",
                   (copy * step["component"], copy, copy))
        db.execute("INSERT INTO text SELECT id + ?, other_hash(text, ?) FROM original_key", (copy * step["key"], copy))
        for table, columns in TABLES.items():
            terms = []
            for _, name, *_ in db.execute(f"PRAGMA table_info({table})"):
                what = columns.get(name)
                if what is None:
                    terms.append(name)
                elif what == "path":
                    terms.append(f"{name} || '.{copy}'")
                elif what in ("key_text", "hash"):
                    terms.append(f"other_hash({name}, {copy})")
                elif what == "component":
                    terms.append(f"CASE WHEN {name} IN own_component THEN {name} + {copy * step['component']} ELSE {name} END")
                else:
                    terms.append(f"{name} + {copy * step[what]}")
            db.execute(f"INSERT INTO {table} SELECT {', '.join(terms)} FROM original_{table}")
        db.commit()
    for sql in db.indexes:
        db.execute(sql)
    db.commit()
    print(db.execute("SELECT count(*), max(rank) FROM process").fetchone())


if __name__ == "__main__":
    sys.exit(main())
