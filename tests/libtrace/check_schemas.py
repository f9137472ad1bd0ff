#!/usr/bin/env python3
"""Validates every record of the given logs against the JSON Schemas of what libtrace emits.

usage: check_schemas.py SCHEMA_DIRECTORY LOG_DIRECTORY [--all]

Exit status 1 if a record has no schema or does not fit it; with --all also if a schema was not used. A
record key with the prefix `user_` or `detail_` is of another program.
"""
import json
import pathlib
import re
import sys

import jsonschema

HEADER = re.compile(rb"^V\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ [^\n]+?:\d+\] (\{.*\})$")
ENVELOPE = ("rank", "compiled_autograd_id", "frame_id", "frame_compile_id", "attempt",
            "subgraph_name", "stack", "has_payload")


def records(path):
    """Yields (line number, envelope, payload or None) of a log."""
    pending = None
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if line.startswith(b"\t"):
            pending[2].append(line[1:])
            continue
        if pending:
            yield pending[0], pending[1], b"\n".join(pending[2]).decode() if pending[2] else None
            pending = None
        if line:
            pending = (number, json.loads(HEADER.match(line)[1], object_pairs_hook=unique), [])
    if pending:
        yield pending[0], pending[1], b"\n".join(pending[2]).decode() if pending[2] else None


def unique(pairs):
    """A JSON object with a name twice is legal and never meant."""
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"member twice: {names}"
    return dict(pairs)


def stem(key, metadata):
    if key != "artifact":
        return "compilation_metrics" if "compilation_metrics" in key else key
    name = metadata["name"]
    return "cache_event" if re.search(r"_cache_(hit|miss|bypass)$", name) else name


def check(validators, path, used):
    complaints = []
    for line, envelope, payload in records(path):
        keys = [key for key in envelope if key not in ENVELOPE]
        where = f"{path.name}:{line}: {keys}"
        if len(keys) != 1:
            complaints.append(f"{where}: not exactly one record key")
            continue
        metadata = envelope[keys[0]]
        rest = {key: value for key, value in envelope.items() if key != keys[0]}
        for error in validators["envelope"].iter_errors(rest):
            complaints.append(f"{where}: envelope: {error.message}")
        if keys[0].startswith(("user_", "detail_")):
            continue
        name = stem(keys[0], metadata)
        if name not in validators:
            complaints.append(f"{where}: no schema {name}.schema.json")
            continue
        instance = {"metadata": metadata}
        if payload is not None:
            is_json = name == "chromium_event" or metadata.get("encoding") == "json"
            instance["payload"] = json.loads(payload, object_pairs_hook=unique) if is_json else payload
        for error in validators[name].iter_errors(instance):
            complaints.append(f"{where}: {'/'.join(map(str, error.absolute_path))}: {error.message}")
        used.add(name)
    return complaints


def main():
    schemas, logs = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    validators = {}
    for path in schemas.glob("*.schema.json"):
        schema = json.loads(path.read_text())
        del schema["$id"]  # relative: jsonschema before 4.18 would look for references inside the file elsewhere
        jsonschema.Draft7Validator.check_schema(schema)
        validators[path.name.removesuffix(".schema.json")] = jsonschema.Draft7Validator(schema)
    used, complaints, paths = {"envelope"}, [], sorted(logs.glob("*.log"))
    for path in paths:
        complaints += check(validators, path, used)
    if not paths:
        complaints.append(f"no logs in {logs}")
    if "--all" in sys.argv:
        complaints += [f"nothing emitted for {name}.schema.json" for name in validators if name not in used]
    print("\n".join(complaints) or f"{len(paths)} logs, {len(used)} schemas: all fit")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
