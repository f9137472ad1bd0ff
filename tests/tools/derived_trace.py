"""Used by derive_traces.py: one derived trace, and the expected result of reading it.

Counts are kept while lines are written, so that they follow from the construction and not from
reading the result.
"""

import collections
import copy
import hashlib
import json
import os

import trace_lines

KEEP = object()


def fixture(*parts):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.join(root, "fixtures", "logs", *parts)


def load(scenario, index=0):
    """Records of one log of a bundled scenario (the index-th by name)."""
    folder = fixture(scenario)
    logs = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    items = list(trace_lines.read_log(os.path.join(folder, logs[index])))
    assert all(isinstance(item, trace_lines.Record) for item in items), logs[index]
    return items


def md5(data):
    return hashlib.md5(data).hexdigest()


def with_pid(prefix, pid):
    """The prefix of a header with another number in its pid column."""
    head, _, rest = prefix.partition(b" ")             # V1121
    time, _, rest = rest.lstrip(b" ").partition(b" ")  # 08:30:01.124000
    _, _, rest = rest.lstrip(b" ").partition(b" ")     # the old pid
    return b"%s %s %d %s" % (head, time, pid, rest)


def changed(record, envelope=None, payload=KEEP, prefix=None):
    """A copy of a record. A new payload (bytes or None) gets its hash; an envelope is a dict."""
    result = copy.copy(record)
    if prefix is not None:
        result.prefix = prefix
    if envelope is not None or payload is not KEEP:
        result.envelope = dict(record.envelope if envelope is None else envelope)
        if payload is not KEEP:
            result.payload_lines = payload.split(b"\n") if payload is not None else []
            result.envelope.pop("has_payload", None)
            if payload is not None:
                result.envelope["has_payload"] = md5(payload)
        result.envelope_bytes = json.dumps(result.envelope).encode()
    return result


def artifact(like, name, payload, encoding="json", **members):
    """A new artifact record with the prefix and ids of another record. name None: no metadata."""
    metadata = {} if name is None else {"name": name, "encoding": encoding, **members}
    return new_record(like, "artifact", metadata, payload)


def new_record(like, kind, metadata, payload=None):
    """A new record of any kind with the prefix and ids of another record."""
    ids = {key: value for key, value in like.envelope.items()
           if key in trace_lines.ENVELOPE_MEMBERS and key not in ("has_payload", "stack")}
    return changed(like, {kind: metadata, **ids}, payload)


class DerivedTrace:
    """One file to be written, with what a reader must find in it."""

    def __init__(self, name, what, extension=".log"):
        self.name = name
        self.what = what
        self.extension = extension
        self.chunks = []
        self.queries = []
        self.records = 0
        self.kinds = collections.Counter()
        self.artifacts = collections.Counter()
        self.states = collections.Counter()
        self.lines = collections.Counter()
        self.hashes = set()

    def record(self, record, state=None, crlf=False, write=True):
        """Writes a record. state: of its payload, if not what a correct has_payload makes it."""
        end = b"\r\n" if crlf else b"\n"
        if write:
            self.chunks.append(record.prefix + record.envelope_bytes + end)
            self.chunks.extend(b"\t" + line + end for line in record.payload_lines)
        claimed = record.envelope.get("has_payload")
        if state is None:
            state = "absent" if not record.payload_lines else "unhashed"
            if claimed is not None and record.payload_lines:
                state = "cr_removed" if crlf else "ok"
        self.records += 1
        self.kinds[record.kind or ""] += 1
        if record.kind == "artifact":
            self.artifacts[record.name or ""] += 1
        self.states[state] += 1
        if state in ("ok", "cr_removed"):
            self.hashes.add(claimed)

    def all(self, records, **options):
        for record in records:
            self.record(record, **options)

    def line(self, text, what="foreign"):
        """Writes a line that belongs to no record: foreign, blank, broken_header, orphan_payload."""
        assert b"\n" not in text
        self.chunks.append(text + b"\n")
        self.lines[what] += 1

    def query(self, sql, rows):
        """What a query on the database of this trace alone must answer."""
        self.queries.append({"sql": sql, "rows": rows})

    def content(self):
        return b"".join(self.chunks)

    def write(self, directory):
        with open(os.path.join(directory, self.name + self.extension), "wb") as file:
            file.writelines(self.chunks)
        expected = {
            "what": self.what, "records": self.records, "kinds": dict(self.kinds),
            "artifacts": dict(self.artifacts), "payload_states": dict(self.states),
            "lines": dict(self.lines), "distinct_verified_payloads": len(self.hashes),
            "queries": self.queries,
        }
        with open(os.path.join(directory, self.name + ".expected.json"), "w",
                  encoding="utf-8") as file:
            json.dump(expected, file, indent=1)
            file.write("\n")
