#!/usr/bin/env python3
"""same_rows.py A.db B.db: whether two databases hold the same rows, ids and times of the ingest aside.

Ids are compared by what they refer to: a column that REFERENCES a table is replaced by the row there, whose own ids are resolved likewise.
Left out: what names the ingest itself (run), which of several records content was first derived from (and so the addresses in its
guards and components), and how component sets are stored (differences from an earlier one: the view cache_component is compared instead). Exit code 1 with the first differences.
"""

import collections
import hashlib
import sqlite3
import sys

# Columns that hold ids of records without a declared foreign key.
RECORD_COLUMNS = {"first_record_id", "last_record_id", "begin_record_id"}
# (table, column); None: any table.
IGNORED = {("run", "uuid"), ("run", "created_at"), ("run", "tool_version"), ("content_row", "record_id"), ("guard_row", "expression"), ("cache_component", "value"),
           ("log_file", "first_content_id"), ("log_file", "last_content_id")}
# Strings and frames that nothing refers to any more stay where a log was read anew; how sets are stored depends on the order.
# record_kind_row follows from the ids of records: in each database it has to find them all.
LEFT_OUT = {"text_row", "stack_frame", "import_code", "record_kind_row"}
NOT_FOUND = """SELECT count(*) FROM record_row r LEFT JOIN record v ON v.id = r.id LEFT JOIN text_row k ON k.id = r.kind_id
  WHERE v.kind IS NOT k.text OR v.compile_id IS NOT r.compile_id OR v.payload_hash IS NOT (SELECT hash FROM payload_row WHERE id = r.payload_id)"""
VIEWS = ("cache_component", "payload", "cache_event", "rank_status", "compile_history", "kernel_provenance", "import_log")


def quoted(value):
    return hashlib.md5(repr(value).encode("utf-8", "surrogateescape")).hexdigest() if isinstance(value, (str, bytes)) and len(
        value) > 200 else value


class Reader:
    def __init__(self, path):
        self.connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        self.tables = {}
        for name, in self.connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"):
            columns = [(row[1], row[5]) for row in self.connection.execute(f'PRAGMA table_info("{name}")')]
            references = {row[3]: row[2] for row in self.connection.execute(f'PRAGMA foreign_key_list("{name}")')}
            self.tables[name] = (columns, references)
        self.by_id = {}
        self.canon = {}
        self.is_open = set()

    def rows_by_id(self, table):
        if table not in self.by_id:
            columns = [column for column, _ in self.tables[table][0]]
            if "id" not in columns:
                self.by_id[table] = {}
            else:
                index = columns.index("id")
                self.by_id[table] = {row[index]: row for row in self.connection.execute(f'SELECT * FROM "{table}"')}
        return self.by_id[table]

    def resolve(self, table, row_id):
        """A text that stands for the row, whatever its id."""
        key = (table, row_id)
        if key not in self.canon:
            row = self.rows_by_id(table).get(row_id)
            if row is None or key in self.is_open:
                return "missing" if row is None else "cycle"
            self.is_open.add(key)
            self.canon[key] = hashlib.md5(repr(self.plain(table, row)).encode("utf-8", "surrogateescape")).hexdigest()
            self.is_open.discard(key)
        return self.canon[key]

    def plain(self, table, row):
        columns, references = self.tables[table]
        if table == "record_row":
            # What names a record: enough, and free of cycles.
            values = dict(zip([column for column, _ in columns], row))
            process = self.rows_by_id("process").get(values["process_id"])
            names = [column for column, _ in self.tables["process"][0]]
            log = process[names.index("log_file_id")] if process else None
            log_row = self.rows_by_id("log_file").get(log)
            path = log_row[[column for column, _ in self.tables["log_file"][0]].index("path")] if log_row else None
            return (path, values["line"])
        return self.full(table, row)

    def full(self, table, row):
        columns, references = self.tables[table]
        result = []
        for (column, _), value in zip(columns, row):
            if column == "id" or (table, column) in IGNORED:
                continue
            if value is None:
                result.append((column, None))
            elif column in references and "id" in [name for name, _ in self.tables[references[column]][0]]:
                result.append((column, self.resolve(references[column], value)))
            elif column in RECORD_COLUMNS:
                result.append((column, self.resolve("record_row", value)))
            else:
                result.append((column, quoted(value)))
        return tuple(result)

    def contents(self, table):
        return collections.Counter(self.full(table, row) for row in self.connection.execute(f'SELECT * FROM "{table}"'))

    def view(self, name):
        columns = [row[1] for row in self.connection.execute(f'PRAGMA table_info("{name}")')]
        kept = [column for column in columns if column != "id" and not column.endswith("_id") and (name, column) not in IGNORED]
        names = ", ".join(f'"{column}"' for column in kept)
        return collections.Counter(tuple(zip(kept, map(quoted, row))) for row in self.connection.execute(
            f'SELECT {names} FROM "{name}"'))


def differences(first, second, most=20):
    """Lines that say what differs; empty: nothing does."""
    a, b = Reader(first), Reader(second)
    found = []
    names = sorted((a.tables.keys() | b.tables.keys()) - LEFT_OUT)
    for name in names:
        if name not in a.tables or name not in b.tables:
            found.append(f"{name}: only in one of them")
        elif name.startswith("component") or name.startswith("cache_key"):
            continue
        else:
            found += compare(name, a.contents(name), b.contents(name))
    for database, reader in ((first, a), (second, b)):
        for count, in reader.connection.execute(NOT_FOUND):
            if count > 0:
                found.append(f"{database}: the view record lacks something of {count} records")
    for name in VIEWS:
        found += compare(f"view {name}", a.view(name), b.view(name))
    return found[:most]


def compare(name, a, b):
    lines = []
    for sign, rows in (("-", a - b), ("+", b - a)):
        for row, count in list(rows.items())[:3]:
            text = ", ".join(f"{column}={value!r}" for column, value in row)
            lines.append(f"{name}: {sign} {count}x {text[:600]}")
    return lines


if __name__ == "__main__":
    lines = differences(*sys.argv[1:3])
    print("\n".join(lines) or "the same rows")
    sys.exit(1 if lines else 0)
