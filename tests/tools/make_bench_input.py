#!/usr/bin/env python3
"""Builds large logs for benchmarks from the bundled real traces.

repeated: the traces of two multi-rank jobs and a training run, repeated as a job of many
          equal ranks writes them: own pid, rank and microseconds, the same payloads.
distinct: all bundled traces, every payload changed and hashed again so that no two are equal:
          times of events, sources of guards, components of cache keys; at least a comment (text)
          or white space at the end (JSON). What has to agree within a log does: cache keys (of a
          lookup's event and artifact), names of kernels, the code of one key.
"""

import argparse
import hashlib
import multiprocessing
import os
import re
import sys
import time

import trace_lines
from derived_trace import fixture

REPEATED = ("diverge_order", "cache_some_ranks", "tlparse_meta")
PREFIX = re.compile(rb"^V(\d{4} [\d:]{8}\.\d{3})\d{3} +\d+ ")
RANK = re.compile(rb'"rank": \d+')
HASH = re.compile(rb'"has_payload": "[0-9a-f]{32}"')
EVENT_TIME = re.compile(rb'"ts": (\d+)[.\d]*')
CACHE_KEY = re.compile(rb'"key": "([fa][a-z2-7]{13})[a-z2-7]{10}')
FIRST_COMPONENT = re.compile(rb'("components": \["\[)[a-z2-7]{20}')

templates = []      # filled before the worker processes are forked; see Template


class Template:
    """One record, cut where its copies differ."""

    def __init__(self, record):
        self.time = PREFIX.match(record.prefix).group(1)
        self.place = record.prefix[PREFIX.match(record.prefix).end():]
        self.envelope = record.envelope_bytes
        self.has_payload = bool(record.payload_lines)
        self.payload = record.payload or b""
        self.body = b"".join(b"\t" + line + b"\n" for line in record.payload_lines)
        self.change = change_of(record) if record.payload_lines else None

    def __len__(self):
        """Bytes of the record in its source, at most."""
        return len(self.place) + len(self.envelope) + len(self.body) + 20

    def write(self, out, copy, rank, unique):
        """Appends the record as process `copy` writes it. unique: a number for changed payloads,
        None to keep them."""
        out.append(b"V%s%03d %d " % (self.time, copy % 1000, 10000 + copy))
        out.append(self.place)
        envelope = self.envelope
        if rank is not None:
            envelope = RANK.sub(b'"rank": %d' % rank, envelope, count=1)
        if unique is None or not self.has_payload:
            out.append(envelope + b"\n" + self.body)
            return
        payload = self.change(self.payload, unique)
        digest = hashlib.md5(payload).hexdigest().encode()
        out.append(HASH.sub(b'"has_payload": "' + digest + b'"', envelope) + b"\n\t")
        out.append(payload.replace(b"\n", b"\n\t") + b"\n")


def change_of(record):
    """The function (payload, unique number) → changed payload for this kind of record."""
    if record.kind == "chromium_event":
        return change_event
    if record.kind == "inductor_output_code":
        return change_code
    name = record.name or ""
    if "_cache_hit" in name or "_cache_miss" in name or name.endswith("_cache_hash"):
        return change_cache_info
    if record.payload[:1] in (b"{", b"["):
        return change_json
    return change_text


def letters(unique, width):
    """The number in PyTorch's base32 alphabet."""
    digits = b"abcdefghijklmnopqrstuvwxyz234567"
    return bytes(digits[unique >> 5 * place & 31] for place in range(width))


def blanks(unique):
    """The number as white space, which JSON ignores."""
    return b"\n" + b"".join(b"\t" if unique >> bit & 1 else b" " for bit in range(28))


def change_key(payload, unique):
    return CACHE_KEY.sub(b'"key": "\\g<1>' + letters(unique >> 16, 10), payload)


def change_kernels(payload, unique):
    return payload.replace(b"cpp_fused", b"cpp_fused_%d" % (unique >> 16))


def change_event(payload, unique):
    payload = change_key(payload, unique)
    # As many digits as PyTorch writes: more would take a slow way through number parsers. It divides
    # nanoseconds, and a double of that size counts quarters of a microsecond.
    return EVENT_TIME.sub(lambda match: b'"ts": %r' % (int(match[1]) + unique / 4), payload, count=1)


def change_cache_info(payload, unique):
    payload = change_key(payload, unique)
    payload = FIRST_COMPONENT.sub(b"\\g<1>" + letters(unique, 20), payload, count=1)
    return payload + blanks(unique)


def change_json(payload, unique):
    return change_kernels(payload, unique) + blanks(unique)


def change_text(payload, unique):
    payload = change_kernels(payload, unique)
    payload = payload.replace(b"L['", b"L['in_%d_" % unique, 1)
    return payload + b"\n# copy %d" % unique


def change_code(payload, unique):
    return change_kernels(payload, unique) + b"\n# copy %d" % (unique >> 16)


def load(scenarios):
    """Templates of all logs of the scenarios: a list of logs, each a list of templates."""
    logs = []
    for scenario in sorted(scenarios):
        folder = fixture(scenario)
        for name in sorted(os.listdir(folder)):
            if not name.startswith("."):
                log = os.path.join(folder, name)
                logs.append([Template(record) for record in trace_lines.read_log(log)])
    return logs


def make_copy(job):
    """The bytes of one log as process number `copy` writes it."""
    copy, rank, distinct = job
    out = []
    log = templates[copy % len(templates)]
    # 16 bits for the record within its log, the rest for the copy.
    for index, template in enumerate(log):
        template.write(out, copy, rank, copy << 16 | index if distinct else None)
    return b"".join(out)


def make(directory, size_bytes, files, distinct, processes=2):
    """Writes `files` logs of together at least size_bytes into the directory; returns their paths."""
    global templates
    scenarios = REPEATED if not distinct else [
        name for name in os.listdir(fixture()) if os.path.isdir(fixture(name))]
    templates = load(scenarios)
    assert all(len(log) < 1 << 16 for log in templates)
    os.makedirs(directory, exist_ok=True)
    if files == 1:
        paths = [os.path.join(directory, "all.log")]
    else:
        paths = [os.path.join(directory, f"dedicated_log_torch_trace_rank_{rank}_bench{rank:03d}.log")
                 for rank in range(files)]
    outputs = [open(path, "wb") for path in paths]

    # A copy is never smaller than its source, so the number of copies is known beforehand.
    source_sizes = [sum(map(len, log)) for log in templates]
    jobs = []
    total = 0
    while total < size_bytes or len(jobs) < files:
        copy = len(jobs)
        jobs.append((copy, copy % files if files > 1 else None, distinct))
        total += source_sizes[copy % len(templates)]

    try:
        with multiprocessing.get_context("fork").Pool(processes) as pool:
            for copy, data in enumerate(pool.imap(make_copy, jobs)):
                outputs[copy % files].write(data)
            pool.close()
            pool.join()
    finally:
        for output in outputs:
            output.close()
    return paths


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT", help="directory, made if need be")
    parser.add_argument("--bytes", type=float, default=1e9, metavar="N",
                        help="at least so many bytes in all (default 1e9)")
    parser.add_argument("--files", type=int, default=1, metavar="N",
                        help="1: one file of many processes; more: one rank per file")
    parser.add_argument("--payloads", choices=("distinct", "repeated"), default="distinct")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), metavar="N",
                        help="worker processes (default: one per core)")
    arguments = parser.parse_args()
    if arguments.files < 1 or arguments.bytes < 1:
        parser.error("--files and --bytes must be at least 1")
    started = time.monotonic()
    paths = make(arguments.out, int(arguments.bytes), arguments.files,
                 arguments.payloads == "distinct", arguments.processes)
    size = sum(os.path.getsize(path) for path in paths)
    print(f"{arguments.out}: {size} bytes in {len(paths)} files, {arguments.payloads} payloads, "
          f"{time.monotonic() - started:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
