#!/usr/bin/env python3
"""What tree of files the Rust program tlparse (0.4.8) makes of one log, and whether ours agrees.

An independent model of that program's behaviour, written from its public source and tests, not from
our C++; /tests/report/expected holds its output for two logs, for people to review and for
output_tree_test.cc to compare with.

  peer_tree.py LOG                       print the expectation
  peer_tree.py LOG --compare DIRECTORY   say what differs in an output directory of ours
  peer_tree.py --compare-all TLPARSE     run that program on every bundled log and compare
  peer_tree.py --regenerate              rewrite /tests/report/expected

One line per file: path, form, MD5. Forms: text (the bytes), json (without white space between
tokens), page (HTML: only its presence). Then one line per compile id, and one per line of raw.jsonl.
"""
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LOGS = os.path.join(HERE, "..", "..", "fixtures", "logs")
CHECKED_IN = {
    "simple": "simple/dedicated_log_torch_trace_p2wh118d.log",
    "failures_2_6": "failures_2_6/dedicated_log_torch_trace__d4jyvbd.log",
}
HEADER = re.compile(
    rb"[VIWEC]\d{4} \d\d:\d\d:\d\d.\d{6} (?P<thread>\d+)(?P<path>[^:]+):(?P<line>\d+)\] (?P<json>.)")
TEXT_KINDS = {
    "optimize_ddp_split_graph", "compiled_autograd_graph", "aot_forward_graph",
    "aot_backward_graph", "aot_inference_graph", "aot_joint_graph", "inductor_post_grad_graph",
    "inductor_pre_grad_graph", "dynamo_cpp_guards_str", "dynamo_output_graph"}
METRICS = {"compilation_metrics", "bwd_compilation_metrics",
           "aot_autograd_backward_compilation_metrics"}


def md5(data):
    return hashlib.md5(data).hexdigest()


def compact(data):
    """JSON without white space between its tokens; None if it is not JSON."""
    def no_constant(name):
        raise ValueError(name)
    try:
        json.loads(data, parse_constant=no_constant)
    except (ValueError, RecursionError):
        return None
    return re.sub(rb'("(?:[^"\\]|\\.)*")|\s+', lambda m: m.group(1) or b"", data, flags=re.S)


def records(path):
    """(line number, header match, envelope, payload) of every record; payload None if absent."""
    opened = gzip.open(path) if path.endswith(".gz") else open(path, "rb")
    with opened as stream:
        lines = stream.read().split(b"\n")
    at = 0
    while at < len(lines):
        number, line = at + 1, lines[at].removesuffix(b"\r")
        at += 1
        header = HEADER.search(line)
        if not header:
            continue
        text = line[header.start("json"):]
        envelope = json.loads(text)
        payload = None
        if "has_payload" in envelope:
            pieces = []
            while at < len(lines) and lines[at].startswith(b"\t"):
                pieces.append(lines[at][1:])
                at += 1
            payload = b"\n".join(pieces)
        yield number, header, text, envelope, payload


def strict(text):
    """`text` with escaped surrogates that have no partner as U+FFFD, which is what we write."""
    return re.sub(rb"(\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})|\\ud[89a-f][0-9a-f]{2}",
                  lambda m: m[1] or b"\\ufffd", text)


class Tree:
    def __init__(self):
        self.files = {}      # path -> (form, md5)
        self.directory = {}  # key -> list of (name, number, readable_url, suffix, url)
        self.raw = []        # (pathname, lineno, thread, payload_filename, md5 of envelope)
        self.events = hashlib.md5()
        self.event_count = 0
        self.strings = {}
        self.count = 0
        self.graph_before = None  # vLLM: what the next pass changes

    def ids(self, envelope):
        values = []
        for name in ("compiled_autograd_id", "frame_id", "frame_compile_id", "attempt"):
            value = envelope.get(name)
            if value is not None and not (type(value) is int and 0 <= value < 2**32):
                return None
            values.append(value)
        return values

    def key(self, ids):
        if ids is None:
            return "unknown"
        part = ["-" if value is None else str(value) for value in ids]
        ca = "" if ids[0] is None else f"!{part[0]}/"
        return f"[{ca}{part[1]}/{part[2]}{'_' + part[3] if ids[3] else ''}]"

    def folder(self, ids, line):
        if ids is None:
            return f"unknown_{line}"
        return "_".join("-" if value is None else str(value) for value in ids)

    def listed(self, key, path, readable=None):
        suffix = next((mark for word, mark in (("cache_miss", "\u274c"), ("cache_hit", "\u2705"),
                                               ("cache_bypass", "\u2753")) if word in path), "")
        self.directory[key].append({"name": path.split("/")[-1], "number": self.count,
                                    "readable_url": readable, "suffix": suffix, "url": path})
        self.count += 1

    def numbered(self, key, folder, stem, extension, form, content):
        """A file with the next number; returns its path."""
        path = f"{folder}/{stem}_{self.count}{extension}"
        readable = None
        value = compact(content) if form == "json" else None
        if stem.startswith("inductor_provenance_tracking_kernel_stack_traces") and form == "json":
            readable = ""
            if value is not None:
                readable = f"{folder}/{stem}_{self.count}_readable.html"
                self.files[readable] = ("page", "-")
                self.count += 1
        if form == "json" and value is None:
            form = "text"
        self.files[path] = (form, "-" if form == "page" else md5(value or content))
        self.listed(key, path, readable)
        return path

    def add(self, line, header, text, envelope, payload, dropped):
        if "str" in envelope:
            self.strings[envelope["str"][1]] = envelope["str"][0]
            return
        filename = None
        if not dropped:
            ids = self.ids(envelope)
            key = self.key(ids)
            self.directory.setdefault(key, [])
            filename = self.files_of(key, self.folder(ids, line), envelope, payload or b"")
            if filename is None and payload and "chromium_event" not in envelope:
                filename = f"payloads/{envelope['has_payload']}.txt"
                self.files[filename] = ("text", md5(payload))
        if "chromium_event" in envelope:
            event = compact(payload or b"")
            if event is not None and not dropped:
                self.events.update(event + b"\n")
                self.event_count += 1
            return
        self.raw.append((header["path"].decode(), int(header["line"]), int(header["thread"]),
                         filename, md5(compact(strict(text)) or text)))

    def files_of(self, key, folder, envelope, payload):
        kind = next(iter(envelope))
        value = envelope[kind]
        if kind in TEXT_KINDS:
            return self.numbered(key, folder, kind, ".txt", "text", payload)
        if kind == "graph_dump":
            name = value["name"]
            extension = ".py" if name.startswith("vllm_patterns.") else ".txt"
            path = self.numbered(key, folder, name, extension, "text", payload)
            if name.startswith("vllm_post_grad."):
                if self.graph_before is not None:
                    page = f"{folder}/{name}.diff.html"
                    self.files[page] = ("page", "-")
                    self.listed(key, page)
                self.graph_before = payload
            return path
        if kind == "optimize_ddp_split_child":
            return self.numbered(key, folder, f"{kind}_{value['name']}", ".txt", "text", payload)
        if kind == "artifact":
            is_json = value["encoding"] == "json"
            if value["name"] == "before_post_grad_graph":
                self.graph_before = payload
            if value["name"] == "vllm_compilation_config":
                self.graph_before = None
                self.numbered(key, folder, value["name"], ".json", "json", payload)
            return self.numbered(key, folder, value["name"], ".json" if is_json else ".txt",
                                 "json" if is_json else "text", payload)
        if kind == "inductor_output_code":
            stem = kind
            if value.get("filename"):
                stem += "_" + os.path.splitext(os.path.basename(value["filename"]))[0]
            self.numbered(key, folder, stem, ".html", "page", payload)
        elif kind in METRICS or kind == "dynamo_guards":
            self.numbered(key, folder, kind, ".html", "page", payload)
        elif kind == "dump_file":
            found = re.search(r"<eval_with_key>\.([0-9]+)", value["name"])
            name = f"eval_with_key_{found[1]}" if found else value["name"]
            path = f"dump_file/{name}.html"
            self.files[path] = ("page", "-")
            self.listed(key, path)
        elif kind == "link":
            self.directory[key].append({"name": value["name"].split("/")[-1], "number": self.count,
                                        "readable_url": None, "suffix": "", "url": value["url"]})
            self.count += 1
        return None


def model(path, keep_dropped=False):
    """The tree of one log. keep_dropped: what that program drops comes at the end, as in ours."""
    tree, late, rank, lines = Tree(), [], None, []
    for record in records(path):
        envelope = record[3]
        dropped = False
        if "str" not in envelope:
            if rank is not None:
                dropped = envelope.get("rank") != rank
            else:
                rank = envelope.get("rank")
        artifact = envelope.get("artifact")
        if artifact is not None and not ("name" in artifact and "encoding" in artifact):
            artifact.setdefault("name", "artifact")
            artifact.setdefault("encoding", "string")
            dropped = True
        lines.append((record, dropped))
    for record, dropped in lines:
        if dropped and keep_dropped:
            late.append((len(tree.raw), record))
            continue
        tree.add(*record, dropped)
    for position, (index, record) in enumerate(late):
        known = len(tree.raw)
        tree.add(*record, False)
        if len(tree.raw) > known:
            tree.raw.insert(index + position, tree.raw.pop())
    for name in ("chromium_events.json", "compile_directory.json", "failures_and_restarts.html",
                 "index.html", "raw.jsonl"):
        tree.files[name] = ("page", "-") if name.endswith(".html") else ("other", "-")
    return tree


def directory_json(tree):
    return json.dumps({key: {"artifacts": files} for key, files in sorted(tree.directory.items())},
                      indent=2, ensure_ascii=False)


def expectation(tree):
    lines = [f"file\t{path}\t{form}\t{digest}" for path, (form, digest) in sorted(tree.files.items())]
    lines.append(f"events\t{tree.event_count}\t{tree.events.hexdigest()}")
    strings = [tree.strings.get(i) for i in range(max(tree.strings, default=0) + 1)]
    lines.append("strings\t" + json.dumps(strings, ensure_ascii=False))
    lines += [f"raw\t{p}\t{line}\t{thread}\t{name or '-'}\t{digest}"
              for p, line, thread, name, digest in tree.raw]
    return "\n".join(lines) + "\n"


def read_ours(root):
    """The same description of an output directory of ours."""
    tree = Tree()
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root)
            # The database, the viewer and its data are no part of the tree.
            if name.startswith((".tlparse", "trace.db")) or path.startswith("data/") or \
                    path == "files.html":
                continue
            with open(os.path.join(folder, name), "rb") as stream:
                data = stream.read()
            if path in ("chromium_events.json", "compile_directory.json", "raw.jsonl"):
                tree.files[path] = ("other", "-")
            elif name.endswith(".html"):
                tree.files[path] = ("page", "-")
            else:
                value = compact(data) if name.endswith(".json") else None
                tree.files[path] = ("json" if value is not None else "text",
                                    md5(value if value is not None else data))
    with open(f"{root}/compile_directory.json") as stream:
        tree.directory = {k: v["artifacts"] for k, v in json.load(stream).items()}
    with open(f"{root}/chromium_events.json", "rb") as stream:
        text = stream.read()
    json.loads(text)
    for line in text.split(b"\n")[1:-1]:
        tree.events.update(line.removesuffix(b",") + b"\n")
        tree.event_count += 1
    with open(f"{root}/raw.jsonl", "rb") as stream:
        first, *rest = stream.read().split(b"\n")[:-1]
    tree.strings = dict(enumerate(json.loads(first)["string_table"]))
    for text in rest:
        value = json.loads(text)
        own = text[:text.rindex(b', "timestamp": ')] + b"}"
        tree.raw.append((value["pathname"], value["lineno"], value["thread"],
                         value.get("payload_filename"), md5(compact(own))))
    return tree


def compare(log, root):
    theirs, ours = model(log, keep_dropped=True), read_ours(root)
    a = (expectation(theirs) + directory_json(theirs)).splitlines()
    b = (expectation(ours) + directory_json(ours)).splitlines()
    if a == b:
        return 0
    import difflib
    for line in list(difflib.unified_diff(a, b, "expected", "ours", n=0, lineterm=""))[:40]:
        print(line[:300])
    return 1


def compare_all(program):
    """Every bundled log by itself (also those of ranks): 0 if all trees agree."""
    failed = 0
    for folder, _, names in sorted(os.walk(LOGS)):
        for name in sorted(names):
            if not name.endswith((".log", ".log.gz")):
                continue
            log = os.path.join(folder, name)
            with tempfile.TemporaryDirectory() as temporary:
                out = os.path.join(temporary, "out")
                subprocess.run([program, log, "-o", out], check=True, stdout=subprocess.DEVNULL)
                if compare(log, out):
                    print("differs:", log)
                    failed = 1
    return failed


def regenerate():
    for name, log in CHECKED_IN.items():
        tree = model(os.path.join(LOGS, log))
        folder = os.path.join(HERE, "expected", name)
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/files.tsv", "w") as stream:
            stream.write(expectation(tree))
        with open(f"{folder}/compile_directory.json", "w") as stream:
            stream.write(directory_json(tree))


if __name__ == "__main__":
    if sys.argv[1:] == ["--regenerate"]:
        regenerate()
    elif len(sys.argv) == 3 and sys.argv[1] == "--compare-all":
        sys.exit(compare_all(sys.argv[2]))
    elif len(sys.argv) == 4 and sys.argv[2] == "--compare":
        sys.exit(compare(sys.argv[1], sys.argv[3]))
    elif len(sys.argv) == 2:
        result = model(sys.argv[1])
        print(expectation(result) + directory_json(result))
    else:
        sys.exit(__doc__)
