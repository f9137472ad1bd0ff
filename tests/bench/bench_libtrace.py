#!/usr/bin/env python3
"""Measures the cost of emitting for the traced program, with baselines of the same run.

Runs libtrace_bench and, where it was built, libtrace_torch_bench (Google Benchmark), repetitions interleaved at
random. Times are CPU times of the calling thread, kernel included, the minimum of the repetitions each: other programs
on the machine can only add. Rates of several threads are by wall-clock time. Files are in memory (/dev/shm).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(binary, folder, repetitions, min_time):
    environment = dict(os.environ, LIBTRACE_BENCH_DIR=os.path.join(folder, "trace"))
    for name in ("TORCH_TRACE", "TORCH_DTRACE", "LIBTRACE_DIR"):
        environment.pop(name, None)
    done = subprocess.run(
        [binary, "--benchmark_format=json", f"--benchmark_repetitions={repetitions}",
         "--benchmark_enable_random_interleaving=true", f"--benchmark_min_time={min_time}"],
        check=True, capture_output=True, text=True, env=environment)
    times, rates = {}, {}
    for entry in json.loads(done.stdout)["benchmarks"]:
        if entry.get("error_occurred"):
            sys.exit(f"bench_libtrace: {entry['name']}: {entry['error_message']}")
        if entry["run_type"] == "aggregate":
            continue
        assert entry["time_unit"] == "ns"
        name = entry["run_name"].replace("/real_time", "")
        times.setdefault(name, []).append(entry["cpu_time"])
        rates.setdefault(name, []).append(entry.get("items_per_second", 0))
    return {name: min(values) for name, values in times.items()}, \
        {name: max(values) for name, values in rates.items()}


def table(times, rates):
    """(what, measured, baseline, compared, aim, whether it is met)"""
    def ns(value):
        return f"{value:,.1f} ns" if value < 100 else f"{value:,.0f} ns"

    loop, record, write = times["EmptyLoop"], times["Record"], times["WriteOfRecord"]
    payload, md5 = times["RecordWithPayload/1048576"], times["Md5AndWriteOfPayload/1048576"]
    queued = times["AsynchronousRecord/iterations:1000000"]
    site, span = times["DisabledSite"] - loop, times["DisabledSpan"]
    yield "site, tracing off", ns(times["DisabledSite"]), f"empty loop {ns(loop)}", f"+{site:.2f} ns", \
        "<= 2 ns", site <= 2
    yield "span with an arg, tracing off", ns(span), f"empty loop {ns(loop)}", f"+{span - loop:.2f} ns", "", None
    for name, off in sorted(times.items(), key=lambda entry: -entry[1]):
        if name.startswith("Off/"):
            yield f"off: {name[4:]}", ns(off), f"empty loop {ns(loop)}", f"+{off - loop:.1f} ns", "", None
    yield "record without payload", ns(record), f"one write() {ns(write)}", \
        f"+{record - write:,.0f} ns", "<= 1,000 ns more", record - write <= 1000
    yield "record with 1 MB payload", f"{payload / 1e3:,.0f} us", f"MD5 + write() {md5 / 1e3:,.0f} us", \
        f"{md5 / payload:.2f}x its rate", ">= 0.85x", md5 / payload >= 0.85
    yield "record, asynchronous", ns(queued), f"synchronous {ns(record)}", f"{queued / record:.2f}x", \
        "<= 300 ns", queued <= 300
    one, eight = rates["RecordOfThreads/threads:1"], rates["RecordOfThreads/threads:8"]
    yield "8 threads, synchronous", f"{eight / 1e6:.2f} M/s", f"1 thread {one / 1e6:.2f} M/s", \
        f"{eight / one:.2f}x", "none lost", True
    suffix = "/iterations:200000/threads:"
    one = rates["AsynchronousRecordOfThreads" + suffix + "1"]
    eight = rates["AsynchronousRecordOfThreads" + suffix + "8"]
    yield "8 threads, asynchronous", f"{eight / 1e6:.2f} M/s", f"1 thread {one / 1e6:.2f} M/s", \
        f"{eight / one:.2f}x", "none lost", True


def torch_table(times):
    def ns(value):
        return f"{value:,.0f} ns"

    op, empty, observed = times["Op"], times["OpWithEmptyCallback"], times["OpObserved"]
    tensors = times["OpWithEmptyCallbackForTensors"]
    for name, cost in sorted(times.items(), key=lambda entry: -entry[1]):
        if name.startswith("RunOff/"):
            yield f"off: {name[7:]}", f"{cost:,.1f} ns", "", "", "", None
    model, traced, off = times["Model"], times["ModelTraced"], times["ModelTracedOff"]
    yield "libtorch op, observer made while off", ns(times["OpObservedOff"]), f"op {ns(op)}", \
        f"{times['OpObservedOff'] - op:+,.0f} ns", "", None
    yield "libtorch op, observed", ns(observed), f"with an empty callback {ns(empty)}", \
        f"{observed / empty:.2f}x", "<= 1.5x", observed <= 1.5 * empty
    yield "the same, what is added to the op", ns(observed - op), \
        f"empty {ns(empty - op)}, empty with tensors {ns(tensors - op)}", \
        f"{(observed - op) / (empty - op):.2f}x, {(observed - op) / (tensors - op):.2f}x", "", None
    yield "TorchScript, 100 small ops, traced", f"{traced / 1e3:,.1f} us", f"libtorch alone {model / 1e3:,.1f} us", \
        f"{(traced / model - 1) * 100:+.1f} %", "<= +20 %", traced <= 1.2 * model
    yield "TorchScript, 100 small ops, off", f"{off / 1e3:,.1f} us", f"libtorch alone {model / 1e3:,.1f} us", \
        f"{(off / model - 1) * 100:+.1f} %", "", None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter repetitions")
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
    parser.add_argument("--folder", default="/dev/shm")
    arguments = parser.parse_args()
    extent = (3, 0.05) if arguments.quick else (10, 0.3)
    torch_times = None
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="libtrace_bench.") as folder:
        times, rates = run(os.path.join(arguments.bin, "libtrace_bench"), folder, *extent)
        torch_bench = os.path.join(arguments.bin, "libtrace_torch_bench")
        if os.path.exists(torch_bench):
            torch_times, _ = run(torch_bench, folder, *extent)
    rows = [("what", "measured", "baseline", "compared", "aim", "")]
    for *cells, is_met in [*table(times, rates), *(torch_table(torch_times) if torch_times else ())]:
        rows.append((*cells, {True: "met", False: "MISSED", None: ""}[is_met]))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
