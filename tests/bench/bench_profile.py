#!/usr/bin/env python3
"""Measures the ingest of profiles and `tlparse cost`, and `json.load` alone for the same file in the same run.

usage: bench_profile.py [--megabytes N] [--of frames|ops] [--no-baseline]

The profile is made of a recording, repeated with increasing times and ids: of fixtures/runs/p_graph_breaks, nearly all Python frames, or of
p_mlp_train, nearly all ops, each of which becomes a row. TLPARSE names the program. Prints CPU seconds (user and system) and the maximum
memory; asserts nothing.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECORDINGS = {"frames": "p_graph_breaks", "ops": "p_mlp_train"}
TLPARSE = os.environ.get("TLPARSE", os.path.join(ROOT, "build", "bin", "tlparse"))


def make(path, megabytes, recording):
    """Writes the profile; returns its events. Kineto's own layout, event by event."""
    text = subprocess.run(["zstd", "-dcq", os.path.join(ROOT, "fixtures", "runs", recording, "steps.pt.trace.json.zst")], capture_output=True, check=True).stdout.decode()
    begin = text.index("[", text.index('"traceEvents"')) + 1
    end = text.rindex("]")
    events = [event for event in re.split(r",\n(?=  \{)", text[begin:end]) if '"ph": "X"' in event]
    ids = re.compile(r'"(External id|Ev Idx|Python id|Python parent id|Python module id|Sequence number)": ?(\d+)')
    times = re.compile(r'"ts": (\d+)\.')
    written = count = 0
    with open(path, "w", encoding="utf-8") as file:
        file.write(text[:begin])
        turn = 0
        while written < megabytes * 1_000_000:
            for event in events:
                moved = event
                if turn:
                    moved = times.sub(lambda m: '"ts": %d.' % (int(m.group(1)) + turn * 10_000_000), moved)
                    moved = ids.sub(lambda m: '"%s": %d' % (m.group(1), int(m.group(2)) + turn * 1_000_000), moved)
                file.write((",\n" if count else "") + moved)
                written += len(moved) + 2
                count += 1
                if written >= megabytes * 1_000_000:
                    break
            turn += 1
        file.write(text[end:])
    return count


def measured(*command):
    """(CPU seconds, MB) of a command."""
    pid = os.spawnvp(os.P_NOWAIT, command[0], command)
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}: failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--of", choices=sorted(RECORDINGS), default="frames", help="what most events are")
    parser.add_argument("--quick", action="store_true", help="the same; for bench.sh")
    parser.add_argument("--no-baseline", action="store_true", help="leave json.load out: it needs many times the file's size of memory")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="tracekit_bench_") as folder:
        profile, database = os.path.join(folder, "p.json"), os.path.join(folder, "x.db")
        count = make(profile, arguments.megabytes, RECORDINGS[arguments.of])
        print(f"{os.path.getsize(profile) / 1e6:.0f} MB, {count} events", flush=True)
        rows = []
        if not arguments.no_baseline:
            rows.append(("python3 json.load", *measured("python3", "-c", f"import json; json.load(open({profile!r}))")))
        rows.append(("tlparse: into the database", *measured(TLPARSE, profile, "--db", database, "--db-only")))
        rows.append(("tlparse cost --by line", *measured(TLPARSE, "cost", database, "--top", "1")))
        for what, seconds, memory in rows:
            print(f"{what:28} {seconds:7.2f} s CPU {memory:8.0f} MB")
        print(json.dumps({what: seconds for what, seconds, _ in rows}))


if __name__ == "__main__":
    main()
