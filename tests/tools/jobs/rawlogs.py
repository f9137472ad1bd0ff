"""What the raw files of a job say, read without the program under test.

Logs are read line by line (trace_lines), dumps by pickle, profiles by json. Times are seconds of the
day, as in the headers of the logs: local time of the job.
"""

import glob
import gzip
import io
import json
import os
import pickle
import re
import subprocess
import sys
from dataclasses import dataclass, field

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import trace_lines  # noqa: E402

NAME = re.compile(r"dedicated_log_torch_trace_(?:rank_(\d+)_)?[a-z0-9_]{8}\.log")
TIME = re.compile(rb"^(?:\[rank\d+\]:)?[VIWEC]\d{4} (\d\d):(\d\d):(\d\d)\.(\d{6})")


@dataclass
class Compile:
    label: str
    function: str = None
    file: str = None
    line: int = None
    start_s: float = None
    last_s: float = None
    metrics: list = field(default_factory=list)  # of the forward
    backward_metrics: list = field(default_factory=list)
    backward_began: bool = False
    failures: list = field(default_factory=list)  # (type, reason)
    restarts: list = field(default_factory=list)
    reasons: list = field(default_factory=list)  # of the recompile
    breaks: list = field(default_factory=list)  # texts of graph breaks
    hits: list = field(default_factory=list)  # cache keys
    misses: list = field(default_factory=list)
    collectives: list = field(default_factory=list)
    starts: int = 0  # dynamo_start records: more than one after a reset

    @property
    def done(self):
        return bool(self.metrics)


@dataclass
class Log:
    path: str
    pid: int
    rank: int = None
    first_s: float = None
    last_s: float = None
    records: int = 0
    compiles: dict = field(default_factory=dict)  # label: Compile
    open_events: list = field(default_factory=list)  # (name, label) innermost last
    strings: dict = field(default_factory=dict)
    files: set = field(default_factory=set)  # (file, line) of all stack frames
    unresolved: bool = False  # names strings that it does not define: a forked child
    text: str = ""  # everything, for searches
    durations: dict = field(default_factory=dict)  # (name, label): seconds, summed
    clock_offset_s: float = None  # epoch minus time of day
    texts: dict = field(default_factory=dict)  # label: payloads of its records

    def text_of(self, label):
        return "\n".join(self.texts.get(label, ()))

    @property
    def name(self):
        return os.path.basename(self.path)


def label_of(envelope):
    if envelope.get("frame_id") is None:
        return None
    text = f"{envelope['frame_id']}/{envelope.get('frame_compile_id')}"
    autograd = envelope.get("compiled_autograd_id")
    return f"!{autograd}/{text}" if autograd is not None else text


def frames_in(value, strings):
    """(file, line) of all stack frames anywhere in a JSON value."""
    if isinstance(value, dict):
        if "filename" in value and "line" in value:
            number = value["filename"]
            yield (strings.get(number) if isinstance(number, int) else number), value["line"]
        for one in value.values():
            yield from frames_in(one, strings)
    elif isinstance(value, list):
        for one in value:
            yield from frames_in(one, strings)


def read_bytes(path):
    """The bytes of a file, decompressed."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    if data[:4] == b"\x28\xb5\x2f\xfd":
        return subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, check=True).stdout
    return data


class Reader:
    def __init__(self, path):
        match = NAME.search(os.path.basename(path))
        self.log = Log(path, 0, int(match[1]) if match and match[1] else None)
        self.texts = []
        self.stack = []

    def read(self):
        log = self.log
        for record in trace_lines.read(io.BytesIO(read_bytes(log.path))):
            if not isinstance(record, trace_lines.Record):
                continue
            log.records += 1
            log.pid = record.pid
            match = TIME.match(record.prefix)
            time_s = int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3]) + int(match[4]) / 1e6
            log.first_s = time_s if log.first_s is None else log.first_s
            log.last_s = time_s
            if record.envelope.get("rank") is not None:
                log.rank = record.envelope["rank"]
            self.take(record, time_s)
        log.open_events = [(name, label) for name, label, _ in self.stack]
        log.text = "\n".join(self.texts)
        return log

    def take(self, record, time_s):
        log, envelope, kind = self.log, record.envelope, record.kind
        payload = record.payload.decode("utf-8", "replace") if record.payload is not None else ""
        self.texts.append(record.envelope_bytes.decode("utf-8", "replace"))
        self.texts.append(payload)
        if kind == "str":
            log.strings[envelope["str"][1]] = envelope["str"][0]
            return
        for file, line in frames_in(envelope, log.strings):
            log.unresolved |= file is None
            log.files.add((file, line))
        label = label_of(envelope)
        one = None
        if label is not None:
            one = log.compiles.setdefault(label, Compile(label))
            one.start_s = time_s if one.start_s is None else one.start_s
            one.last_s = time_s
            log.texts.setdefault(label, []).append(payload)
        if kind == "chromium_event":
            self.event(payload, time_s)
        elif one is not None:
            self.of_compile(record, one, payload)

    def of_compile(self, record, one, payload):
        kind, name, envelope = record.kind, record.name, record.envelope
        if kind == "dynamo_start":
            one.starts += 1
            stack = envelope["dynamo_start"].get("stack") or []
            if stack:
                one.function = stack[-1]["name"]
                one.line = stack[-1]["line"]
                one.file = self.log.strings.get(stack[-1]["filename"])
        elif kind and "compilation_metrics" in kind:
            metrics = envelope[kind]
            if metrics.get("co_name") and not one.function:
                one.function, one.file, one.line = (
                    metrics["co_name"],
                    metrics.get("co_filename"),
                    metrics.get("co_firstlineno"),
                )
            (one.backward_metrics if kind.startswith("bwd_") else one.metrics).append(metrics)
            if metrics.get("fail_type"):
                one.failures.append((metrics["fail_type"], metrics.get("fail_reason") or ""))
            one.restarts += metrics.get("restart_reasons") or []
        elif name == "recompile_reasons":
            one.reasons += json.loads(payload) if payload.startswith("[") else [payload]
        elif name in ("dynamo_graph_break_reason", "dynamo_error"):
            one.breaks.append(payload)
        elif name in (
            "fx_graph_cache_hit",
            "fx_graph_cache_miss",
            "aotautograd_cache_hit",
            "aotautograd_cache_miss",
        ):
            key = (json.loads(payload) if payload else {}).get("key")
            (one.hits if name.endswith("hit") else one.misses).append(key)
        elif name == "inductor_collective_schedule":
            one.collectives.append(json.loads(payload))

    def event(self, payload, time_s):
        try:
            event = json.loads(payload)
        except ValueError:
            return
        if self.log.clock_offset_s is None and isinstance(event.get("ts"), (int, float)):
            self.log.clock_offset_s = round((event["ts"] / 1e6 - time_s) / 900) * 900
        name, label = event.get("name"), (event.get("args") or {}).get("compile_id")
        label = None if label == "None" else label
        if event.get("ph") == "B":
            self.stack.append((name, label, event["ts"]))
            if label in self.log.compiles and name in (
                "entire_backward_compile",
                "compile_fx.<locals>.bw_compiler",
            ):
                self.log.compiles[label].backward_began = True
        elif event.get("ph") == "E":
            for at in range(len(self.stack) - 1, -1, -1):
                if self.stack[at][0] == name:
                    _, begun_label, begun = self.stack.pop(at)
                    key = (name, begun_label)
                    self.log.durations[key] = self.log.durations.get(key, 0.0) + (event["ts"] - begun) / 1e6
                    break


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"a dump holds plain values, not {module}.{name}")


def read_dump(path):
    data = read_bytes(path)
    return Plain(io.BytesIO(data)).load() if data[:1] == b"\x80" else json.loads(data)


def read_profile(path):
    return json.loads(read_bytes(path))


class Job:
    """All files of a recording; nothing is read of meta.json or stdout.txt."""

    def __init__(self, folder):
        self.folder = folder
        self.logs = [
            Reader(path).read()
            for path in sorted(glob.glob(os.path.join(folder, "logs", "**", "*.log*"), recursive=True))
        ]
        self.logs.sort(key=lambda log: (log.first_s or 0))
        self.dumps = {
            int(re.search(r"(\d+)$", path)[1]): read_dump(path)
            for path in sorted(glob.glob(os.path.join(folder, "fr", "*")))
        }
        self.profiles = {}
        for path in sorted(glob.glob(os.path.join(folder, "profile*.json*"))):
            profile = read_profile(path)
            rank = (profile.get("distributedInfo") or {}).get("rank")
            self.profiles[rank if rank is not None else int(re.search(r"rank(\d+)", path)[1])] = profile

    def of_rank(self, rank):
        return [log for log in self.logs if log.rank == rank]

    def ranks(self):
        return sorted(
            {log.rank for log in self.logs if log.rank is not None}
            | set(self.dumps)
            | {rank for rank in self.profiles if rank is not None}
        )
