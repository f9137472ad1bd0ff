#!/usr/bin/env python3
"""Compares a database of tlparse with the logs it was made from, record by record.

The logs are read by trace_lines.py, which shares nothing with tlparse. Checked are: one row of
`record` per header line whose JSON is an object, with its line, byte offset, kind, artifact name,
source position, envelope and payload state; distinct verified payload hashes; that every
payload's hash is the MD5 of its content; foreign keys and integrity; that import_log has as many
lines of damage as the log, and no error at all for a log without damage.
Prints each difference and exits 1 if there is any.
"""

import argparse
import collections
import hashlib
import os
import sqlite3
import sys

import count_records
import trace_lines

MAX_SHOWN = 10


class Report:
    """Collects differences; shows the first few of each place."""

    def __init__(self):
        self.per_place = collections.Counter()

    def add(self, place, text):
        self.per_place[place] += 1
        if self.per_place[place] <= MAX_SHOWN:
            print(f"{place}: {text}")

    def compare(self, place, what, expected, found):
        if expected != found:
            self.add(place, f"{what}: the log has {expected!r}, the database {found!r}")

    def close(self):
        for place, number in self.per_place.items():
            if number > MAX_SHOWN:
                print(f"{place}: {number - MAX_SHOWN} more differences")
        return sum(self.per_place.values())


def expected_row(record):
    """A record as the database should show it; the same order of columns as in ROWS."""
    state, digest = record.verify()
    return {
        "line": record.line, "byte_offset": record.byte_offset, "kind": record.kind,
        "name": record.name, "source_file": record.source_file,
        "source_line": record.source_line,
        "envelope": record.envelope_bytes.decode("utf-8", "replace"),
        "payload_state": state, "payload_hash": digest,
    }


def is_text(data):
    """Whether the database keeps these bytes as TEXT: valid UTF-8 without NUL."""
    try:
        return b"\0" not in data and data.decode("utf-8") is not None
    except UnicodeDecodeError:
        return False


def compare_records(report, database, log_file_id, log):
    """Walks rows and records of one log side by side, in the order of lines."""
    columns = ["line", "byte_offset", "kind", "name", "source_file", "source_line", "envelope",
               "payload_state", "payload_hash"]
    rows = database.execute(
        f"SELECT {', '.join(columns)} FROM record WHERE log_file_id = ? ORDER BY line",
        (log_file_id,))
    counted = []

    def records():
        for item in trace_lines.read_log(log):
            counted.append(item)
            if isinstance(item, trace_lines.Record):
                yield item

    row = rows.fetchone()
    for record in records():
        while row is not None and row[0] < record.line:
            report.add(log, f"line {row[0]}: a record of the database that is none in the log")
            row = rows.fetchone()
        if row is None or row[0] != record.line:
            report.add(log, f"line {record.line}: this record is not in the database")
            continue
        expected = expected_row(record)
        found = dict(zip(columns, row))
        for column in columns:
            if column == "envelope" and not is_text(record.envelope_bytes):
                continue  # a TEXT column can't hold it byte by byte
            if expected[column] != found[column]:
                report.add(log, f"line {record.line}, {column}: the log has "
                           f"{shorten(expected[column])}, the database {shorten(found[column])}")
        row = rows.fetchone()
    while row is not None:
        report.add(log, f"line {row[0]}: a record of the database that is none in the log")
        row = rows.fetchone()
    return count_records.count(counted)


def shorten(value):
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:150]}… ({len(text)} characters)"


def check_counts(report, database, log_file_id, log, counts):
    """The counts that an issue or a person would ask for, by SQL alone."""
    def counter(column, condition="TRUE"):
        return collections.Counter(dict(database.execute(
            f"SELECT coalesce({column}, ''), count(*) FROM record "
            f"WHERE log_file_id = ? AND {condition} GROUP BY 1", (log_file_id,))))

    records, in_log_file = database.execute(
        "SELECT (SELECT count(*) FROM record WHERE log_file_id = ?1), record_count "
        "FROM log_file WHERE id = ?1", (log_file_id,)).fetchone()
    report.compare(log, "records", counts["records"], records)
    report.compare(log, "log_file.record_count", counts["records"], in_log_file)
    report.compare(log, "kinds", counts["kinds"], counter("kind"))
    report.compare(log, "artifacts", counts["artifacts"], counter("name", "kind = 'artifact'"))
    report.compare(log, "payload states", counts["payload_states"], counter("payload_state"))
    hashes = {row[0] for row in database.execute(
        "SELECT DISTINCT payload_hash FROM record "
        "WHERE log_file_id = ? AND payload_state IN ('ok', 'cr_removed')", (log_file_id,))}
    if counts["hashes"] != hashes:
        report.add(log, f"distinct verified payloads: the log has {len(counts['hashes'])}, the "
                   f"database {len(hashes)}, {len(counts['hashes'] & hashes)} in common")


def check_import_log(report, database, log_file_id, log, counts):
    """Damage in the log is in import_log, line by line; no damage, no error."""
    errors = database.execute(
        "SELECT code, message, line FROM import_log WHERE log_file_id = ? AND severity = 'error'",
        (log_file_id,)).fetchall()
    lines = counts["lines"]
    damage = (lines["broken_header"] + counts["payload_states"]["mismatch"]
              + counts["payload_claimed_but_absent"])
    # TAB lines that belong to no record are damage, or indented text of another program.
    if damage + lines["orphan_payload"] == 0:
        for code, message, line in errors:
            report.add(log, f"nothing is wrong with it, but import_log has {code}, "
                       f"line {line}: {message}")
    elif damage and not errors:
        report.add(log, f"{damage} lines or payloads are damaged, and import_log has no error")
    # A line without a home is kept as text: as many lines in import_log as in the log.
    homeless = lines["broken_header"] + lines["orphan_payload"] + lines["foreign"]
    kept = database.execute(
        "SELECT coalesce(sum(line_count), 0) FROM import_log "
        "WHERE log_file_id = ? AND text IS NOT NULL AND record_id IS NULL",
        (log_file_id,)).fetchone()[0]
    # Blank lines between foreign ones may be kept with them.
    if not homeless <= kept <= homeless + lines["blank"]:
        report.add(log, f"{homeless} lines belong to no record (and {lines['blank']} are blank), "
                   f"import_log keeps {kept}")


def check_whole(report, database, path):
    """What must hold in any database, whatever the logs."""
    for row in database.execute("PRAGMA integrity_check(10)"):
        if row[0] != "ok":
            report.add(path, f"integrity_check: {row[0]}")
    for table, row_id, parent, _ in database.execute("PRAGMA foreign_key_check"):
        report.add(path, f"foreign_key_check: {table} row {row_id} points to no row of {parent}")
    for digest, size, kind, content in database.execute(
            "SELECT hash, size_bytes, typeof(content), CAST(content AS BLOB) FROM payload"):
        report.compare(path, f"payload {digest}: MD5 of content", hashlib.md5(content).hexdigest(),
                       digest)
        report.compare(path, f"payload {digest}: size_bytes", len(content), size)
        report.compare(path, f"payload {digest}: type", "text" if is_text(content) else "blob", kind)
    for record_id, digest in database.execute(
            "SELECT r.id, r.payload_hash FROM record r LEFT JOIN payload p ON p.hash = "
            "r.payload_hash WHERE r.payload_state != 'absent' AND p.hash IS NULL LIMIT 10"):
        report.add(path, f"record {record_id}: no payload with hash {digest}")


def find_log_file(database, run, log):
    """The row of log_file that stands for this log: by the same real path, else the same name,
    else standard input."""
    rows = database.execute(
        "SELECT f.id, f.path FROM log_file f JOIN run r ON r.id = f.run_id "
        "WHERE ?1 IS NULL OR r.name = ?1 ORDER BY f.id DESC", (run,)).fetchall()
    for same in (lambda path: os.path.realpath(path) == os.path.realpath(log),
                 lambda path: os.path.basename(path) == os.path.basename(log),
                 lambda path: path == "-"):
        found = [row_id for row_id, path in rows if same(path)]
        if found:
            return found[0]
    return None


def check(database_path, logs, run=None):
    """Number of differences between the database and the logs; prints them."""
    if not os.path.exists(database_path):
        print(f"{database_path}: no such file")
        return 1
    database = sqlite3.connect(f"file:{database_path}?mode=ro", uri=True)
    # Text columns may hold what is not UTF-8 where a log does: compare as the log is decoded.
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    report = Report()
    for log in logs:
        log_file_id = find_log_file(database, run, log)
        if log_file_id is None:
            report.add(log, "no row of log_file stands for it")
            continue
        counts = compare_records(report, database, log_file_id, log)
        check_counts(report, database, log_file_id, log, counts)
        check_import_log(report, database, log_file_id, log, counts)
    check_whole(report, database, database_path)
    database.close()
    return report.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", metavar="DB")
    parser.add_argument("logs", nargs="+", metavar="LOG")
    parser.add_argument("--run", help="name of the run, if the database holds several")
    arguments = parser.parse_args()
    differences = check(arguments.database, arguments.logs, arguments.run)
    print(f"{differences} differences" if differences else
          f"{arguments.database} holds what the {len(arguments.logs)} logs hold")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
