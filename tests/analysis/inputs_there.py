"""What the files of a folder are, by their own bytes and names: no table of tlparse is read. Of each input: for whom it may be there."""

import gzip
import io
import json
import os
import pickle
import re
import subprocess

RANK_IN_NAME = re.compile(r"(?:rank[_-]?|r)(\d+)(?:[_.]|$)")
ANY = "any"  # of a rank that the file does not name


def content(path):
    if path.endswith(".zst"):
        return subprocess.run(["zstd", "-dcq", path], capture_output=True).stdout
    if path.endswith(".gz"):
        with gzip.open(path) as file:
            try:
                return file.read()
            except (EOFError, OSError):
                return b""
    with open(path, "rb") as file:
        return file.read()


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(name)


def plain(data):
    try:
        return json.loads(data)
    except ValueError:
        pass
    try:
        return Plain(io.BytesIO(data)).load()
    except Exception:  # noqa: BLE001 what is no pickle may raise anything
        return None


class Inputs:
    def __init__(self, *folders):
        self.there = {}  # by input the ranks, and ANY
        for folder in folders:
            for top, _, names in os.walk(folder):
                for name in sorted(names):
                    self.read(os.path.join(top, name))

    def add(self, input, who):
        self.there.setdefault(input, set()).add(who)

    def read(self, path):
        data = content(path)
        found = RANK_IN_NAME.search(os.path.basename(path))
        rank = int(found[1]) if found else ANY
        if re.search(rb'(?m)^[VDIWEC]\d{4} \S+ .*\] ?\{', data):
            self.read_trace(data, rank)
            return
        value = plain(data)
        if isinstance(value, dict) and ("entries" in value or "pg_config" in value):
            self.add("recorder_dump", rank)
        elif isinstance(value, dict) and "device_traces" in value:
            self.add("memory_snapshot", rank)
        elif isinstance(value, dict) and value.get("tool") == "tlparse run":
            self.read_run(value)
        elif isinstance(value, (dict, list)) and b'"ph"' in data:
            own = value.get("distributedInfo", {}).get("rank", rank) if isinstance(value, dict) else rank
            self.add("profile", own)
            if b'"[memory]"' in data:
                self.add("memory_snapshot", own)
        elif b"ProfilerStep" in data or data.startswith(b"SQLite format"):
            self.add("profile", ANY)
        else:
            self.read_text(data.decode(errors="replace"))

    def read_trace(self, data, rank):
        for line in data.split(b"\n"):
            if line[:1] not in b"VDIWEC" or b"] {" not in line:
                continue
            try:
                envelope = json.loads(line[line.index(b"] {") + 2:])
            except ValueError:
                envelope = {}
            who = envelope.get("rank", rank)
            self.add("trace", who)
            artifact = envelope.get("artifact")
            name = str(artifact.get("name") if isinstance(artifact, dict) else next(iter(envelope), ""))
            if re.search(r"cache_(hit|miss|bypass)", name):
                self.add("cache_lookup", who)
            if "run_digest" in name:
                self.add("output_hash", who)
            metrics = envelope.get("compilation_metrics") or {}
            if "dynamo_error" in envelope or (isinstance(metrics, dict) and metrics.get("fail_type")) or "_fail" in name:
                self.add("failure", who)

    def read_run(self, run):
        self.add("run_record", ANY)
        processes = run["processes"]
        has_ranks = any(one.get("rank") is not None for one in processes)
        for one in processes:
            if one.get("traceback") or one.get("raised_in_threads"):
                if one.get("rank") is not None:
                    self.add("traceback", one["rank"])
                elif not has_ranks:
                    self.add("traceback", ANY)
        for one in run.get("printed_aborts") or []:
            self.add("traceback", one.get("rank", ANY) if isinstance(one, dict) else ANY)

    def read_text(self, text):
        if "Traceback (most recent call last)" in text:
            tagged = {int(rank) for rank in re.findall(r"\[rank(\d+)\]:.*Traceback", text)}
            for rank in tagged or {ANY}:
                self.add("traceback", rank)
        if re.search(r"[Ww]atchdog caught collective|Process group watchdog", text):
            self.add("watchdog", ANY)
        if re.search(r"NCCL version .*|RAS", text) and "Job summary" in text:
            self.add("ras_report", ANY)

    def has(self, input, who):
        there = self.there.get(input, set())
        return ANY in there or who in there
