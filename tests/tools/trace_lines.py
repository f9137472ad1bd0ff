"""Reads structured trace logs line by line, for the test tools.

Written from the format alone and sharing nothing with the C++ reader, so that the two can be
compared. A log is split at LF and nowhere else. A header is a line of the form

    V1121 08:30:01.124000 4242 torch/_x.py:28] {"str": ["a.py", 0]}

and its payload is the run of lines that start with TAB right below it, without that TAB, joined
with LF. Foreign lines may be between them as long as the payload's hash is not reached. Payload
lines that follow anything else belong to no record.
"""

import gzip
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field

HEADER = re.compile(
    rb"^(?:\[rank(\d+)\]:)?([VIWEC])(\d{4}) (\d\d:\d\d:\d\d)\.(\d{6}) +(\d+) (.+?):(\d+)\] (\{.*)$",
    re.DOTALL)

# What a file ends with that is cut off in the prefix of a header.
START = "V0000 00:00:00.000000 0"


def starts_header(line):
    text = line.decode("latin-1")
    return len(text) >= 5 and b"] " not in line and all(
        char.isdigit() and char.isascii() if shape == "0" else char == shape for char, shape in zip(text, START))


# Top-level members of an envelope that do not name its kind.
ENVELOPE_MEMBERS = frozenset([
    "rank", "compiled_autograd_id", "frame_id", "frame_compile_id", "attempt", "subgraph_name",
    "stack", "has_payload", "severity", "timestamp", "pathname", "thread",
])

# Python refuses to read integers of more than 4,300 digits unless set otherwise.
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)


def storable(text):
    """The text with U+FFFD for each lone surrogate, which UTF-8 cannot hold."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@dataclass
class Record:
    """One header line whose JSON is an object, with its payload."""
    line: int                   # 1-based
    byte_offset: int
    prefix: bytes               # everything before the JSON
    pid: int
    source_file: str
    source_line: int
    envelope_bytes: bytes       # the JSON as in the log, without a CR that ends the line
    envelope: dict
    line_end: bytes = b"\n"     # of the header
    payload_lines: list = field(default_factory=list)  # without TAB and LF

    @property
    def kind(self):
        """The record key; None if there is none or more than one candidate."""
        keys = [key for key in self.envelope if key not in ENVELOPE_MEMBERS]
        return storable(keys[0]) if len(keys) == 1 else None

    @property
    def name(self):
        """The artifact's name; None for other records and unnamed artifacts."""
        value = self.envelope.get("artifact") if self.kind == "artifact" else None
        name = value.get("name") if isinstance(value, dict) else None
        return storable(name) if isinstance(name, str) else None

    @property
    def payload(self):
        """The payload's bytes as they stand in the log; None if there is no payload line."""
        return b"\n".join(self.payload_lines) if self.payload_lines else None

    def verify(self):
        """(state, hash): absent, unhashed, ok, cr_removed, mismatch; hash = MD5 of the content."""
        if not self.payload_lines:
            return "absent", None
        digest = hashlib.md5(self.payload).hexdigest()
        claimed = self.envelope.get("has_payload")
        if claimed is None:
            return "unhashed", digest
        if digest == claimed:
            return "ok", digest
        # A log written on Windows, or damaged as if: every line ends in CR LF.
        if all(line.endswith(b"\r") for line in self.payload_lines):
            stripped = hashlib.md5(b"\n".join(line[:-1] for line in self.payload_lines)).hexdigest()
            if stripped == claimed:
                return "cr_removed", stripped
        return "mismatch", digest


@dataclass
class Other:
    """One line that is part of no record."""
    what: str                   # broken_header, foreign, blank, orphan_payload
    line: int
    byte_offset: int
    text: bytes                 # without the LF


def open_log(path):
    """A binary stream of the log's bytes: plain, gzip or zstd by the first bytes of the file."""
    if path == "-":
        return sys.stdin.buffer
    with open(path, "rb") as file:
        magic = file.read(4)
    if magic[:2] == b"\x1f\x8b":
        return gzip.open(path, "rb")
    if magic == b"\x28\xb5\x2f\xfd":
        return subprocess.Popen(["zstd", "-dcq", path], stdout=subprocess.PIPE).stdout
    return open(path, "rb")


def parse_header(line):
    """(match, envelope) of a line without its LF. No match: not a header. envelope None: broken."""
    match = HEADER.match(line)
    if not match:
        return None, None
    try:
        # Bytes that are not UTF-8 and raw control characters are damage to the text, not to the
        # record.
        envelope = json.loads(match.group(9).decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return match, None
    return match, envelope if isinstance(envelope, dict) else None


def continues(record):
    """Whether payload lines below foreign ones still belong to the record: it names a hash that
    those it has do not give."""
    claims = record.envelope.get("has_payload") is not None
    return claims and record.verify()[0] in ("absent", "mismatch")


def read(stream):
    """Yields Record and Other; a record stands before the foreign lines among its payload lines."""
    record = None               # the record that payload lines would belong to
    others = []                 # below its header
    is_below_payload = True     # the line before was the record's header or payload
    byte_offset = 0
    for number, raw in enumerate(stream, 1):
        start, byte_offset = byte_offset, byte_offset + len(raw)
        line = raw[:-1] if raw.endswith(b"\n") else raw
        if line.startswith(b"\t"):
            if record is not None and (is_below_payload or continues(record)):
                record.payload_lines.append(line[1:])
                is_below_payload = True
            else:
                others.append(Other("orphan_payload", number, start, line))
            continue
        match, envelope = parse_header(line)
        if match:
            if record is not None:
                yield record
            yield from others
            record, others = None, []
        if envelope is not None:
            text = match.group(9)
            line_end = b"\n"
            if text.endswith(b"\r"):
                text, line_end = text[:-1], b"\r\n"
            record = Record(
                line=number, byte_offset=start, prefix=line[:match.start(9)],
                pid=int(match.group(6)), source_file=match.group(7).decode("utf-8", "replace"),
                source_line=int(match.group(8)), envelope_bytes=text, envelope=envelope,
                line_end=line_end)
            is_below_payload = True
        else:
            what = ("broken_header" if match or (not raw.endswith(b"\n") and starts_header(line)) else
                    "blank" if line in (b"", b"\r") else "foreign")
            others.append(Other(what, number, start, line))
            is_below_payload = False
    if record is not None:
        yield record
    yield from others


def read_log(path):
    """Yields Record and Other of a file."""
    with open_log(path) as stream:
        yield from read(stream)
