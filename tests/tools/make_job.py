#!/usr/bin/env python3
"""Turns a log of a real job into a job of N ranks with planted divergences, and writes down what it planted.

usage: make_job.py TEMPLATE_LOG DIRECTORY N [--plant KIND[,KIND…]|none] [--slim]

TEMPLATE_LOG is the log of one rank (.log or .log.zst). Every rank gets its content with its own rank, pid, times and device index:
"cpu" becomes "cuda:<rank>" in key components, graphs and code, with new hashes of the components concerned and new keys, as on GPUs.
Planted on ranks spread over the job, one kind each (the default: as many as leave three of four ranks alone):

  config      another value of an inductor option in every key
  shape       another size of an input of one compile
  collective  one collective more in one graph, in schedule and generated code
  graph       one compile missing
  build       another torch build: version, torch_version component, six config values
  order       two graphs executed in reverse order
  no_log      no log at all

--slim leaves out records that no answer reads (chromium events, interned strings, guards), for large N.
DIRECTORY/plan.json has kind, rank and what an answer must name.
"""
import argparse
import base64
import hashlib
import json
import os
import re
import sys

import trace_lines

KINDS = ["config", "shape", "collective", "graph", "build", "order", "no_log"]
OPTION = b"inductor_config[max_fusion_size]"
SLIM = {"chromium_event", "str", "dynamo_cpp_guards_str", "describe_tensor", "describe_storage", "describe_source"}
COMPONENT = re.compile(rb'"\[([a-z2-7]{51})\] ([A-Za-z_0-9]+(?:\[.*?\])?): ((?:[^"\\]|\\.)*)"')
KEY = re.compile(rb'\b[fa][a-z2-7]{51}\b')
DEVICES = [(b"device(type='cpu')", b"device(type='cuda', index=%d)"), (b"device='cpu'", b"device='cuda:%d'"), (b"]cpu", b"]cuda:%d")]
TIME = re.compile(rb'("ts": |"cache_event_time": |"time_taken_ns": )([0-9]+)')


def digest(*parts):
    """51 base32 characters, like the hashes of PyTorch's key components."""
    return base64.b32encode(hashlib.sha256(b"\0".join(parts)).digest()).lower()[:51]


def is_cache(record):
    name = record.name or ""
    return record.kind == "chromium_event" or "_cache_" in name


class Plan:
    """What one rank does differently: functions of a record's payload, and whether a record is kept."""

    def __init__(self, kind, records):
        self.kind = kind
        self.compiles = sorted({r.envelope["frame_id"] for r in records if "frame_id" in r.envelope})
        self.records = records

    def frame(self):
        return self.compiles[{"shape": 1, "collective": 2, "graph": 3}[self.kind] % len(self.compiles)]

    def is_of_frame(self, record):
        return record.envelope.get("frame_id") == self.frame()

    def keeps(self, record):
        if self.kind != "graph":
            return True
        return not self.is_of_frame(record)

    def payload(self, record, data):
        """The payload with what is planted; keys are changed where it changes components."""
        return getattr(self, "plant_" + self.kind)(record, data)

    def replace_component(self, data, name, value):
        """Another value, with its hash, of a component; the keys of lookups that have it change."""
        def other(match):
            if match[2] != name:
                return match[0]
            return b'"[%s] %s: %s"' % (digest(match[1], value), name, value)
        return COMPONENT.sub(other, data)

    def new_keys(self, data):
        return KEY.sub(lambda match: match[0][:1] + digest(match[0], self.kind.encode()), data)

    def plant_config(self, record, data):
        if not is_cache(record):
            return data
        return self.new_keys(self.replace_component(data, OPTION, b"13"))

    def plant_build(self, record, data):
        if record.name == "torch_version":
            return re.sub(rb'("pytorch_version": ")[^"]*', rb"\g<1>2.13.0", data)
        if not is_cache(record):
            return data
        data = self.replace_component(data, b"torch_version", b"another build")
        for option in (b"max_fusion_size", b"aggressive_fusion", b"epilogue_fusion", b"pattern_matcher", b"reordering", b"split_reductions"):
            data = self.replace_component(data, b"inductor_config[%s]" % option, b"'as in 2.13'")
        return self.new_keys(data)

    def plant_shape(self, record, data):
        if not self.is_of_frame(record):
            return data
        if record.kind == "dynamo_output_graph":
            return data.replace(b"f32[32, 16]", b"f32[48, 16]")
        if not is_cache(record):
            return data
        changed = COMPONENT.sub(lambda m: m[0] if not m[2].startswith(b"example_inputs[") or b"torch.Size([32, 16])" not in m[3] else
                                b'"[%s] %s: %s"' % (digest(m[1], b"48"), m[2], m[3].replace(b"torch.Size([32, 16])", b"torch.Size([48, 16])")), data)
        return self.new_keys(changed)

    def plant_collective(self, record, data):
        if not self.is_of_frame(record):
            return data
        extra = b"torch.ops._c10d_functional.all_reduce_.default"
        wait = b"torch.ops._c10d_functional.wait_tensor.default"
        if record.name == "inductor_collective_schedule":
            names = json.loads(data)
            return json.dumps([extra.decode(), wait.decode()] + names, indent=0).encode()
        if record.kind == "inductor_output_code":
            lines = data.split(b"\n")
            at = next((i for i, line in enumerate(lines) if b"torch.ops._c10d_functional." in line), None)
            if at is None:
                return data
            buffer = re.search(rb"default\((\w+)", lines[at])[1]
            indent = re.match(rb"\s*", lines[at])[0]
            lines[at:at] = [indent + b"%s(%s, 'sum', '0')" % (extra, buffer), indent + b"%s(%s)" % (wait, buffer)]
            return b"\n".join(lines)
        if not is_cache(record):
            return data
        changed = COMPONENT.sub(lambda m: m[0] if m[2] != b"gm" else b'"[%s] gm: %s"' % (digest(m[1], b"extra"), m[3].replace(
            rb"\n    return", rb"\n    all_reduce_extra = torch.ops._c10d_functional.all_reduce.default(x, 'sum', '0')\n    return", 1)), data)
        return self.new_keys(changed)

    def plant_order(self, record, data):
        if record.name != "graph_execution":
            return data
        order = json.loads(data)
        entries = order["graph_execution_order"]
        labels = [entry["compile_id"] for entry in entries]
        first = next(i for i in range(len(labels) - 1) if labels[i] != labels[i + 1])
        entries[first], entries[first + 1] = entries[first + 1], entries[first]
        return json.dumps(order, indent=0).encode()

    def plant_graph(self, record, data):
        if record.name != "graph_execution":
            return data
        order = json.loads(data)
        label = f"{self.frame()}/"
        order["graph_execution_order"] = [entry for entry in order["graph_execution_order"] if not (entry["compile_id"] or "").startswith(label)]
        return json.dumps(order, indent=0).encode()

    def expectation(self):
        """Area of `tlparse ranks`, and a text that its aspects hold."""
        return {"config": ("cache", "max_fusion_size"), "shape": ("cache", "shape"), "collective": ("collectives", "all_reduce_"),
                "graph": ("compiles", "not compiled"), "build": ("build", "2.13.0"), "order": ("execution", ""),
                "no_log": (None, None)}[self.kind]


class Template:
    """A log cut into what all ranks share and what each has of its own."""

    def __init__(self, records, plan=None):
        self.parts = []
        self.keys, self.components = set(), set()
        for record in records:
            if plan and not plan.keeps(record):
                continue
            payload = record.payload
            if payload is not None and plan:
                payload = plan.payload(record, payload)
            self.add(record, payload)

    def add(self, record, payload):
        """One record: prefix parts, envelope parts, payload tokens."""
        cache = is_cache(record)
        tokens = None
        if payload is not None:
            marked = payload
            if cache:
                marked = KEY.sub(lambda m: b"\0K" + m[0] + b"\0", marked)
                marked = COMPONENT.sub(lambda m: m[0].replace(b"[" + m[1] + b"]", b"[\0C" + m[1] + b"\0]", 1)
                                       if b"device(type='cpu')" in m[3] else m[0], marked)
                marked = TIME.sub(lambda m: m[1] + b"\0T" + m[2] + b"\0", marked)
            for number, (old, _) in enumerate(DEVICES):
                marked = marked.replace(old, b"\0D%d\0" % number)
            tokens = marked.split(b"\0")
            if len(tokens) == 1:
                tokens = (b"\t" + payload.replace(b"\n", b"\n\t") + b"\n", hashlib.md5(payload).hexdigest().encode())
        head, _, rest = record.prefix.partition(b" ")
        time, _, rest = rest.lstrip(b" ").partition(b" ")
        _, _, rest = rest.lstrip(b" ").partition(b" ")
        envelope = record.envelope_bytes
        if payload is not None:
            envelope = re.sub(rb'("has_payload": ")[0-9a-f]{32}', lambda m: m[1] + b"\0", envelope)
        envelope = re.sub(rb'("rank": )\d+', lambda m: m[1] + b"\1", envelope, count=1)
        self.parts.append((head + b" " + time + b" ", b" " + rest + envelope + b"\n", tokens))

    def render(self, rank):
        pid = b"%d" % (10000 + rank)
        devices = [new % rank for _, new in DEVICES]
        known = {}
        suffix = b"%d" % rank
        out = []
        for start, rest, tokens in self.parts:
            digest_hex, body = b"", b""
            if isinstance(tokens, tuple):
                body, digest_hex = tokens
            elif tokens is not None:
                pieces = []
                for token in tokens:
                    tag = token[:1]
                    if tag == b"D" and len(token) == 2 and token[1:].isdigit():
                        pieces.append(devices[int(token[1:])])
                    elif tag in (b"K", b"C") and len(token) in (52, 53):
                        if token not in known:
                            known[token] = token[1:2] + digest(token, suffix) if tag == b"K" else digest(token, suffix)
                        pieces.append(known[token])
                    elif tag == b"T" and token[1:].isdigit():
                        pieces.append(b"%d" % (int(token[1:]) + rank * 137))
                    else:
                        pieces.append(token)
                payload = b"".join(pieces)
                digest_hex = hashlib.md5(payload).hexdigest().encode()
                body = b"\t" + payload.replace(b"\n", b"\n\t") + b"\n"
            out.append(start + pid + rest.replace(b"\1", suffix).replace(b"\0", digest_hex) + body)
        return b"".join(out)


def place_plants(kinds, count):
    """Ranks for the kinds, spread over the job, never rank 0."""
    ranks, taken = {}, set()
    for number, kind in enumerate(kinds):
        rank = max(1, (number + 1) * count // (len(kinds) + 1))
        while rank in taken:
            rank += 1
        taken.add(rank)
        ranks[kind] = rank
    return ranks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("template")
    parser.add_argument("directory")
    parser.add_argument("count", type=int)
    parser.add_argument("--plant", default=None)
    parser.add_argument("--slim", action="store_true")
    arguments = parser.parse_args()
    kinds = KINDS[:arguments.count // 4] if arguments.plant is None else [] if arguments.plant == "none" else arguments.plant.split(",")
    records = [item for item in trace_lines.read_log(arguments.template) if isinstance(item, trace_lines.Record)]
    if arguments.slim:
        records = [record for record in records if record.kind not in SLIM]
    os.makedirs(arguments.directory, exist_ok=True)
    placed = place_plants(kinds, arguments.count)
    kind_of_rank = {rank: kind for kind, rank in placed.items()}
    common = Template(records)
    plan_rows, size = [], 0
    for rank in range(arguments.count):
        kind = kind_of_rank.get(rank)
        if kind == "no_log":
            continue
        template = Template(records, Plan(kind, records)) if kind else common
        data = template.render(rank)
        size += len(data)
        with open(os.path.join(arguments.directory, f"dedicated_log_torch_trace_rank_{rank}_{rank:08d}.log"), "wb") as out:
            out.write(data)
    for kind, rank in placed.items():
        area, text = Plan(kind, records).expectation()
        plan_rows.append({"kind": kind, "rank": rank, "area": area, "text": text})
    with open(os.path.join(arguments.directory, "plan.json"), "w") as out:
        json.dump({"ranks": arguments.count, "size_bytes": size, "planted": plan_rows}, out, indent=1)
    print(f"{arguments.count} ranks, {size} bytes, planted: {placed}")


if __name__ == "__main__":
    sys.exit(main())
