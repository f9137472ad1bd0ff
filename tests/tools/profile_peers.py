#!/usr/bin/env python3
"""Sums of profiles by tlparse beside HolisticTraceAnalysis, torch-tb-profiler and an independent count of the file.

usage: profile_peers.py [--keep] PROFILE[=NAME]…          (TLPARSE names the program)
    --keep         writes fixtures/compatibility/peers.json and the table of docs/measurements/profile-peers.md

Needs HolisticTraceAnalysis 0.5.0 and torch-tb-profiler 0.4.3 of PyPI in the Python that runs it; one that is missing or fails on a profile
leaves its column empty, with the reason below the table. Times are microseconds. Exit code 1: tlparse differs from the count.
"""
import contextlib
import gzip
import importlib.metadata
import io
import json
import logging
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

import kept

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TLPARSE = os.environ.get("TLPARSE", os.path.join(ROOT, "build", "bin", "tlparse"))
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
LAUNCH = {"cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver"}
COMMUNICATION = re.compile("nccl|rccl", re.IGNORECASE)
ROWS = ["kernels", "kernel time", "copies and memsets", "device busy", "device idle", "communication overlapped, %", "mean delay after the launching call",
        "slowest kernel's sum", "ops on the CPU", "self time of ops"]


def union(spans):
    """Sorted spans without overlap."""
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def length(spans):
    return sum(end - start for start, end in union(spans))


def both(a, b):
    """Length of what is in both."""
    return length(a) + length(b) - length([*a, *b])


def device_sums(kernels, copies, delays):
    """From (name, start, end) of kernels and copies, in ns."""
    work = [(start, end) for _, start, end in [*kernels, *copies]]
    talk = [(start, end) for name, start, end in kernels if COMMUNICATION.search(name)]
    compute = [(start, end) for name, start, end in kernels if not COMMUNICATION.search(name)]
    by_name = {}
    for name, start, end in kernels:
        by_name[name] = by_name.get(name, 0) + end - start
    busy = length(work)
    return {"kernels": len(kernels), "kernel time": sum(end - start for _, start, end in kernels) / 1e3, "copies and memsets": len(copies),
            "device busy": busy / 1e3 if work else None,
            "device idle": (max(end for _, end in work) - min(start for start, _ in work) - busy) / 1e3 if work else None,
            "communication overlapped, %": 100 * both(talk, compute) / length(talk) if talk else None,
            "mean delay after the launching call": sum(delays) / len(delays) / 1e3 if delays else None,
            "slowest kernel's sum": max(by_name.values()) / 1e3 if by_name else None}


def nanoseconds(text):
    """Of a decimal text in microseconds, without a double between."""
    whole, _, part = str(text).partition(".")
    return int(whole) * 1000 + int((part + "000")[:3])


def load(path):
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        return json.loads(file.read().decode("utf-8", "replace"), parse_float=str, strict=False)


def self_times(ops):
    """Sum of each op's time less that of the ops directly inside it, in ns: the time in which any op runs, thread by thread."""
    threads = {}
    for thread, start, end in ops:
        threads.setdefault(thread, []).append((start, end))
    return sum(length(spans) for spans in threads.values())


def count(path):
    """The independent count."""
    kernels, copies, ops, launches, waiting = [], [], [], {}, []
    for event in load(path)["traceEvents"]:
        category = event.get("cat", "").lower()
        if event.get("ph") != "X" or "dur" not in event:
            continue
        start = nanoseconds(event["ts"])
        span = (event["name"], start, start + nanoseconds(event["dur"]))
        correlation = event.get("args", {}).get("correlation")
        if category in DEVICE:
            (kernels if category == "kernel" else copies).append(span)
            if category == "kernel" and correlation:
                waiting.append((correlation, start))
        elif category in LAUNCH and correlation:
            launches[correlation] = span[2]
        elif category == "cpu_op":
            ops.append(((event["pid"], event["tid"]), span[1], span[2]))
    delays = [start - launches[correlation] for correlation, start in waiting if correlation in launches]
    return {**device_sums(kernels, copies, delays), "ops on the CPU": len(ops), "self time of ops": self_times(ops) / 1e3}


def ours(path):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([TLPARSE, path, "-o", f"{folder}/out", "--db-only"], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        database = sqlite3.connect(f"{folder}/out/trace.db")
        kernels = database.execute("SELECT name, start_ns, start_ns + duration_ns FROM kernel_run WHERE device IS NOT NULL").fetchall()
        copies = database.execute("SELECT name, start_ns, start_ns + duration_ns FROM device_copy").fetchall()
        delays = database.execute("SELECT r.start_ns - d.start_ns - d.duration_ns FROM kernel_run_row r JOIN device_launch_row d "
                                  "ON d.profile_id = r.profile_id AND d.correlation = r.correlation WHERE r.device IS NOT NULL").fetchall()
        # Regions of compiled code and Inductor's kernels on the CPU are slices of the same category, in tables of their own.
        ops = database.execute("SELECT thread_id, start_ns, start_ns + duration_ns FROM op_run UNION SELECT thread_id, start_ns, "
                               "start_ns + duration_ns FROM compiled_slice_row WHERE kind NOT IN (0, 5, 6, 7) UNION SELECT thread_id, start_ns, "
                               "start_ns + duration_ns FROM kernel_run WHERE device IS NULL AND op_run_id IS NULL AND frame_id IS NULL").fetchall()
        return {**device_sums(kernels, copies, [row[0] for row in delays]), "ops on the CPU": len(ops),
                "self time of ops": self_times(ops) / 1e3}


def holistic(path):
    """HolisticTraceAnalysis: a folder with the trace of one rank."""
    os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"  # else to whole microseconds
    from hta.trace_analysis import TraceAnalysis

    with tempfile.TemporaryDirectory() as folder:
        # It takes the rank from the file, where the file has one.
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
            trace = json.loads(file.read().decode("utf-8", "replace"), strict=False)
        trace["distributedInfo"] = {**trace.get("distributedInfo", {}), "rank": 0}
        file = os.path.join(folder, "rank0.json")
        with open(file, "w") as out:
            json.dump(trace, out)
        analysis = TraceAnalysis(trace_files={0: file}, include_last_profiler_step=True)
        times = analysis.get_temporal_breakdown(visualize=False).iloc[0]
        _, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=100000, duration_ratio=1.0, include_memory_kernels=False)
        result = {"device busy": float(times["kernel_time(us)"] - times["idle_time(us)"]), "device idle": float(times["idle_time(us)"]),
                  "kernel time": float(kernels["sum (us)"].sum()), "slowest kernel's sum": float(kernels["sum (us)"].max())}
        with contextlib.suppress(Exception):
            result["communication overlapped, %"] = float(analysis.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"])
        with contextlib.suppress(Exception):
            stats = analysis.get_cuda_kernel_launch_stats(ranks=[0], include_memory_events=False, visualize=False)[0]
            result["kernels"] = len(stats)
            result["mean delay after the launching call"] = float((stats["launch_delay"]).mean())
        return result


def tensorboard(path):
    from torch_tb_profiler.profiler.data import RunProfileData

    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        trace = json.loads(file.read().decode("utf-8", "replace"), strict=False)
    data = RunProfileData.from_json("worker", "span", trace)
    result = {"ops on the CPU": sum(op.calls for op in data.op_list_groupby_name), "self time of ops": sum(op.self_host_duration for op in data.op_list_groupby_name)}
    if data.kernel_stat is not None:
        sums = data.kernel_stat["sum"]
        result.update({"kernel time": float(sums.sum()), "kernels": int(data.kernel_stat["count"].sum()), "slowest kernel's sum": float(sums.max())})
    return result


def text(value):
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def compare(path, name):
    """({row: texts of the four}, what could not be read, number of rows in which tlparse differs from the count)."""
    columns, notes, sums, differ = [], [], {}, 0
    for who in (count, ours, holistic, tensorboard):
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                columns.append(who(path))
        except Exception as error:  # any: a peer that cannot read a profile
            columns.append({})
            notes.append(f"{name}, {who.__name__}: {type(error).__name__}: {str(error)[:200]}")
    for row in ROWS:
        values = [column.get(row) for column in columns]
        if values[0]:
            same = values[1] is not None and abs(values[0] - values[1]) <= 1e-6 * abs(values[0])
            differ += not same
            sums[row] = [*map(text, values)]
            print(f"| {name} | {row} | " + " | ".join(sums[row]) + f" |{'' if same else ' **differs**'}", flush=True)
    return sums, notes, differ


def main():
    keep = sys.argv[1:2] == ["--keep"]
    paths = sys.argv[1 + keep:]
    if not paths or paths[0].startswith("-"):
        sys.exit(__doc__)
    logging.disable(logging.CRITICAL)
    found = {"packages": [f"{name} {importlib.metadata.version(name)}" for name in ("HolisticTraceAnalysis", "torch-tb-profiler", "pandas")],
             "profiles": {}, "notes": [], "differ": 0}
    for path in paths:
        path, _, name = path.partition("=")
        name = name or re.sub(r"\.(pt\.trace\.)?json(\.gz)?$", "", os.path.basename(path))
        found["profiles"][name], notes, differ = compare(path, name)
        found["notes"] += notes
        found["differ"] += differ
    print("\n" + "\n".join(found["notes"]))
    if keep:
        kept.keep("peers", found)
    return 1 if found["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
