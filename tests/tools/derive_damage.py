"""Derived traces that are damaged or hostile, one kind of damage each."""

import copy
import json

from derived_trace import DerivedTrace, artifact, changed, load, new_record, with_pid

HOSTILE_NAMES = [
    "../../../../tmp/tracekit_escape", "/tmp/tracekit_escape", "a/b/c", "..", ".", "", "nul\0byte",
    "line\nfeed", "tab\there", "<script>alert(1)</script>", "javascript:alert(1)", "C:\\x\\y",
    "..\\..\\up", "CON", "name.", " ", "x" * 4096, "\u202egnp", "\ud800lone", "%2e%2e%2f", "-rf",
    "trace.db", "index.html", "raw.jsonl", "a" * 255 + "é",
]


def cut_files(random):
    """The file stops at a random byte: in a header, or in a payload."""
    records = load("mlp_train_2_6")
    with_payload = [index for index, record in enumerate(records) if record.payload_lines]
    for number in range(4):
        index = random.randrange(10, len(records))
        record = records[index]
        trace = DerivedTrace(f"cut_header_{number}", "cut in the middle of a header")
        trace.all(records[:index])
        at = random.randrange(1, len(record.prefix) + len(record.envelope_bytes) - 1)
        trace.chunks.append((record.prefix + record.envelope_bytes)[:at])
        # "V1122" and more are the start of a header; "] " without JSON is none.
        is_header = at > len(record.prefix) or 5 <= at < len(record.prefix)
        trace.lines["broken_header" if is_header else "foreign"] += 1
        yield trace

        index = random.choice(with_payload[2:])
        record = records[index]
        trace = DerivedTrace(f"cut_payload_{number}", "cut in the middle of a payload")
        trace.all(records[:index])
        body = b"".join(b"\t" + line + b"\n" for line in record.payload_lines)
        at = random.randrange(1, len(body) - 1)
        trace.chunks.append(record.prefix + record.envelope_bytes + b"\n" + body[:at])
        trace.record(record, state="mismatch", write=False)
        yield trace

    trace = DerivedTrace("cut_after_header", "cut before the first payload line")
    index = with_payload[5]
    trace.all(records[:index])
    trace.chunks.append(records[index].prefix + records[index].envelope_bytes)
    trace.record(records[index], state="absent", write=False)
    yield trace

    trace = DerivedTrace("no_final_line_feed", "the last line does not end")
    trace.all(records)
    trace.chunks[-1] = trace.chunks[-1][:-1]
    yield trace


def damaged_payloads(random):
    trace = DerivedTrace("flipped_byte", "one bit of some payloads is flipped")
    for index, record in enumerate(load("simple")):
        long_lines = [line for line in record.payload_lines if len(line) > 4]
        if index % 7 or not long_lines:
            trace.record(record)
            continue
        record = copy.copy(record)
        record.payload_lines = list(record.payload_lines)
        line = random.randrange(len(record.payload_lines))
        while len(record.payload_lines[line]) <= 4:
            line = random.randrange(len(record.payload_lines))
        data = bytearray(record.payload_lines[line])
        data[random.randrange(len(data))] ^= 0x80  # can't become LF or TAB
        record.payload_lines[line] = bytes(data)
        trace.record(record, state="mismatch")
    trace.query("SELECT count(*) > 0 FROM import_log WHERE severity = 'error'", [[1]])
    yield trace

    trace = DerivedTrace("payload_bytes", "NUL, invalid UTF-8, CR, form feed, U+2028 in payloads")
    records = load("simple")
    like = next(record for record in records if record.kind == "dynamo_output_graph")
    trace.all(records)
    payloads = [b"nul\0in the middle", b"\0", b"bad \xff\xfe utf-8", b"\xed\xa0\x80 surrogate",
                b"cut \xe2\x82", b"", b"\n", b"\n\n\n", b"\t", b"\ttabs\t\n\t\t", b"\r", b"a\rb",
                b"\x0b\x0c\x85\xc2\x85\xe2\x80\xa8", b"\xf4\x90\x80\x80", b"ends in line feed\n",
                b"\xef\xbb\xbfBOM", "non-BMP \U0001f600".encode(), b"V1121 not a header"]
    for number, payload in enumerate(payloads):
        trace.record(artifact(like, f"bytes_{number}", payload, "string"))
    blobs = sum(1 for payload in payloads if not storable_as_text(payload))
    trace.query("SELECT typeof(p.content), count(*) FROM record r JOIN payload p "
                "ON p.hash = r.payload_hash WHERE r.name LIKE 'bytes_%' GROUP BY 1 ORDER BY 1",
                [["blob", blobs], ["text", len(payloads) - blobs]])
    yield trace

    trace = DerivedTrace("payload_claims", "hash without lines, lines without hash, odd hashes")
    trace.all(records)
    absent = new_record(like, "artifact", {"name": "claimed", "encoding": "string"})
    absent.envelope["has_payload"] = "d41d8cd98f00b204e9800998ecf8427e"
    absent.envelope_bytes = json.dumps(absent.envelope).encode()
    trace.record(absent, state="absent")
    for claim in ("ABCDEF", "", 7, None, True, "é" * 16, ["x"], like.envelope["has_payload"]):
        odd = artifact(like, "odd_claim", b"some payload")
        odd.envelope["has_payload"] = claim
        odd.envelope_bytes = json.dumps(odd.envelope).encode()
        trace.record(odd, state="unhashed" if claim is None else "mismatch")
    unhashed = artifact(like, "unclaimed", b"some payload")
    del unhashed.envelope["has_payload"]
    unhashed.envelope_bytes = json.dumps(unhashed.envelope).encode()
    trace.record(unhashed)
    yield trace


def storable_as_text(payload):
    try:
        payload.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in payload


def odd_json():
    """Headers that json.dumps writes but strict parsers refuse, and ones nobody should write."""
    records = load("simple")
    like = next(record for record in records if record.kind == "dynamo_output_graph")
    trace = DerivedTrace("odd_json", "NaN, Infinity, lone surrogates, big integers, duplicates, …")
    trace.all(records)

    def header(text, kind, name=None):
        record = copy.copy(like)
        record.payload_lines = []
        data = text if isinstance(text, bytes) else text.encode()
        record.envelope_bytes = data
        record.envelope = {kind: {"name": name}} if kind else {"no": 1, "single": 2, "key": 3}
        trace.record(record, state="absent")

    ids = '"frame_id": 0, "frame_compile_id": 0, "attempt": 0'
    header('{"odd": {"nan": NaN, "inf": Infinity, "minus": -Infinity}, %s}' % ids, "odd")
    header('{"odd": {"text": "\\ud800 lone", "low": "\\udc00", "ok": "\\ud83d\\ude00"}, %s}' % ids,
           "odd")
    header('{"artifact": {"name": "\\udfff", "encoding": "json"}}', "artifact", "\ufffd")
    header('{"odd": {"big": %d, "negative": -%d, "float": 1e400, "long": %s}, %s}'
           % (2 ** 64, 2 ** 70, "9" * 5000, ids), "odd")
    header('{"odd": {"a": 1, "a": 2, "b": {"c": 1, "c": 3}}, "rank": 5, "rank": 0, %s}' % ids, "odd")
    header('{"artifact": {"name": "first"}, "artifact": {"name": "last", "encoding": "json"}}',
           "artifact", "last")
    header('{"frame_id": %d, "frame_compile_id": -1, "attempt": 1.5, "odd": 1}' % 2 ** 65, "odd")
    header('{"rank": "zero", "frame_id": null, "frame_compile_id": "x", "attempt": [], "odd": {}}',
           "odd")
    header('{"rank": -1, "compiled_autograd_id": {}, "stack": "none", "odd": null}', "odd")
    header('{"str": "not a list"}', "str")
    header('{"str": ["text without id"]}', "str")
    header('{"str": [7, "reversed"]}', "str")
    header('{"artifact": "no object"}', "artifact")
    header('{"artifact": {"name": 7, "encoding": 9}}', "artifact")
    header('{"odd": {}, "stack": [{"line": null, "name": "f", "filename": -1}, 3, {}, '
           '{"line": 1, "name": null, "filename": 99999}]}', "odd")
    header('{}', None)
    header('{"one": {}, "two": {}}', None)
    header('{"rank": 0, "frame_id": 0}', None)
    header('{"odd": {"raw": "nul \0 and tab \t"}}', "odd")
    header(b'{"odd": {"utf8": "bad \xff byte"}}', "odd")
    header('{"odd": {"not ascii": "größe"}}', "odd")
    header('{"odd": ' + "[" * 200 + "]" * 200 + "}", "odd")
    for broken in ('{"odd": ', '{"odd": 1} trailing', "{'odd': 1}", '{"odd": 1,}', "{",
                   '{"odd": undefined}', '{"odd": ' + "[" * 100000 + "]" * 100000 + "}"):
        trace.line(like.prefix + broken.encode(), "broken_header")
    trace.line(b"\tpayload line of a broken header", "orphan_payload")
    trace.line(like.prefix + b"[1, 2]")
    trace.line(like.prefix + b"null")
    trace.query("SELECT count(*) FROM record WHERE kind = 'odd' "
                "AND json_type(metadata, '$.nan') = 'null'", [[1]])
    trace.query("SELECT metadata ->> '$.a', metadata ->> '$.b.c' FROM record WHERE kind = 'odd' "
                "AND json_type(metadata, '$.a') = 'integer'", [[2, 3]])
    trace.query("SELECT count(*) FROM record WHERE metadata IS NOT NULL AND NOT json_valid(metadata)",
                [[0]])
    trace.query("SELECT count(*) > 0 FROM record WHERE kind = 'artifact' AND name = 'last'", [[1]])
    yield trace


def wrong_types():
    """Members of the wrong type in records and payloads that have typed tables."""
    records = load("tlparse_meta")
    trace = DerivedTrace("wrong_types", "payloads and metadata of the wrong JSON type")
    trace.all(records)
    odd_payloads = [b"", b"null", b"[]", b"{}", b"7", b'"text"', b"not JSON", b'{"ops": 3}',
                    b'{"ops": [null, 3, {"name": 7, "outputs": {}}]}', b'[[["deep"]]]',
                    b'{"key": 3, "components": {"a": 1}}', b'{"cppCodeToPost": [1]}',
                    b'{"graph_execution_order": {"a": null}}', b'{"name": null, "ts": "now"}']
    seen = set()
    for record in records:
        what = (record.kind, record.name)
        if what in seen:
            continue
        seen.add(what)
        if record.payload_lines:
            for payload in odd_payloads:
                trace.record(changed(record, payload=payload))
        if record.kind != "artifact":
            for value in (None, 7, "text", [], [1, {"a": []}], {"id": "x", "line": [], "name": {}}):
                envelope = {key: value if key == record.kind else member
                            for key, member in record.envelope.items()}
                trace.record(changed(record, envelope))
    yield trace


def hostile_names():
    """Names from which file names are made."""
    trace = DerivedTrace("hostile_names", "names with /, .., NUL, 4 kB and worse")
    records = load("aoti_2_6")
    trace.all(records)
    like = next(record for record in records if record.kind == "dynamo_output_graph")
    for name in HOSTILE_NAMES:
        trace.record(artifact(like, name, b"payload of " + repr(name).encode(), "string"))
        trace.record(artifact(like, name, b'{"a": 1}', "json"))
        trace.record(new_record(like, "graph_dump", {"name": name, "type": "cpp", "filename": name},
                                b"int main() {}"))
        trace.record(new_record(like, "dump_file", {"name": name}, b"def f(): pass"))
        trace.record(new_record(like, "optimize_ddp_split_child", {"name": name}, b"class G: pass"))
        trace.record(new_record(like, "inductor_output_code", {"filename": name}, b"# code"))
        subgraph = new_record(like, "inductor_output_code", {}, b"# code of a region")
        trace.record(changed(subgraph, {**subgraph.envelope, "subgraph_name": name}))
        trace.record(new_record(like, "link", {"name": name, "url": f"javascript:{name}"}))
    yield trace


def foreign_text():
    trace = DerivedTrace("foreign_bytes", "NUL, invalid UTF-8, blank lines and orphans around records")
    trace.line(b"\tpayload before any header", "orphan_payload")
    trace.line(b"")
    trace.lines["blank"] += trace.lines.pop("foreign")
    for index, record in enumerate(load("simple_2_6")):
        trace.record(record)
        if index % 50 == 0:
            trace.line(b"nul \0 byte")
            trace.line(b"bad \xff\xfe utf-8")
            trace.line(b"\r", "blank")
            trace.line(b"V1121 08:30:01.124000 4242 no_line_number] {}")
            trace.line(b" V1121 08:30:01.124000 4242 a.py:1] {}")
            trace.line(b"X1121 08:30:01.124000 4242 a.py:1] {}")
    yield trace


def huge_line(size_bytes):
    """A payload of one very long line, a header of a tenth of it, a foreign line of a tenth."""
    trace = DerivedTrace("huge_line", f"a line of {size_bytes} bytes")
    records = load("simple")
    like = next(record for record in records if record.kind == "dynamo_output_graph")
    trace.all(records)
    trace.record(artifact(like, "huge", b"x" * size_bytes, "string"))
    trace.record(new_record(like, "huge_header", {"text": "y" * (size_bytes // 10)}))
    trace.line(b"z" * (size_bytes // 10))
    trace.all([changed(record, prefix=with_pid(record.prefix, record.pid)) for record in records])
    yield trace


def damage(random, huge_bytes):
    yield from cut_files(random)
    yield from damaged_payloads(random)
    yield from odd_json()
    yield from wrong_types()
    yield from hostile_names()
    yield from foreign_text()
    if huge_bytes:
        yield from huge_line(huge_bytes)
