"""The names that a version of PyTorch wrote, by kind, from what was recorded with it."""
import collections
import glob
import gzip
import io
import json
import os
import pickle
import re

QUERIES = {
    "record": "SELECT DISTINCT kind FROM record WHERE kind IS NOT NULL",
    "artifact": "SELECT DISTINCT name FROM record WHERE kind = 'artifact' AND name IS NOT NULL",
    "timed event": "SELECT DISTINCT name FROM chromium_event",
    "metric": "SELECT DISTINCT j.key FROM compilation_metric m JOIN json_each(m.metrics) j",
    "component of a cache key": "SELECT DISTINCT name FROM cache_component",
}
# What differs with each run: numbers, names of functions and files.
VARYING = [(re.compile(r"^(pass)\..*"), r"\1.*"), (re.compile(r"^.*_(ORIGINAL|MODIFIED)_BYTECODE$"), r"*_\1_BYTECODE"),
           (re.compile(r"^(compile_attempt)_\d+$"), r"\1_*"), (re.compile(r"^(optimize_ddp_split_child)_.*"), r"\1_*"),
           (re.compile(r"^(optimize_ddp_split_graph)_.*"), r"\1_*"), (re.compile(r"\[.*"), "")]


def general(name):
    for pattern, text in VARYING:
        name = pattern.sub(text, name)
    return name


def in_database(database):
    names = collections.defaultdict(set)
    for kind, sql in QUERIES.items():
        names[kind] = {general(row[0]) for row in database.execute(sql)}
    return names


class _PlainValues(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"a dump names {module}.{name}")


def _content(path):
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        return file.read()


def _profile(data, names):
    trace = json.loads(data)
    names["member of a profile"] |= set(trace)
    for event in trace["traceEvents"]:
        category = event.get("cat", event["ph"])
        names["category of a profile's event"].add(category)
        names["argument of a profile's event"] |= {f"{category}: {name}" for name in event.get("args", {})}


def _dump(data, names):
    dump = json.loads(data) if data[:1] == b"{" else _PlainValues(io.BytesIO(data)).load()
    names["version of the recorder"].add(dump["version"])
    names["member of a recorder dump"] |= set(dump)
    for entry in dump.get("entries", []):
        names["member of a recorder entry"] |= set(entry)


def in_files(folder):
    """Names in profiles and dumps, and which of them there are."""
    names = collections.defaultdict(set)
    for path in glob.glob(os.path.join(folder, "*")):
        base = os.path.basename(path)
        if base.startswith("profile.json"):
            names["file"].add("profile")
            _profile(_content(path), names)
        elif base.startswith("fr_trace_rank_"):
            names["file"].add("recorder dump of gloo, " + ("JSON" if ".json" in base else "pickle"))
            _dump(_content(path), names)
        elif base.endswith(".pt2"):
            names["file"].add("AOTInductor package")
    return names
