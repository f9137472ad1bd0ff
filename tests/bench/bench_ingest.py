#!/usr/bin/env python3
"""Measures the ingest rate of tlparse, and the machine's floor in the same run.

Builds logs of the given size from the bundled real traces: 1 and 64 files, all payloads distinct
or repeated. The floor is one core reading the files in blocks of 1 MiB and
computing one MD5 over all their bytes (floor.cc), just before and just after each ingest. Input
and output are in memory (/dev/shm). Prints the tables and the project's targets. On a machine
with other load rates vary; the CPU seconds of an ingest vary less.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
import derived_trace  # noqa: E402
import make_bench_input  # noqa: E402

# (aim, never below) of db-only, as a multiple of the floor's rate; the full tree: half of it.
AIMS = {"distinct": (0.8, 0.6), "repeated": (1.5, 1.2)}
# Steps as tlparse -v names them.
DATABASE = ("reading", "verifying", "typing", "writing", "storing", "finishing")
REPORT = ("tree", "page")
PARALLEL = ("verifying", *REPORT)
ANSWERS = (("history",), ("ranks",), ("cache",), ("recompiles",), ("collectives",), ("execution",),
           ("provenance",), ("import-log",), ("sql", "SELECT count(*) FROM record"))


class Bench:
    def __init__(self, arguments):
        self.bin = arguments.bin
        self.folder = os.path.join(arguments.folder, "tracekit_bench")
        self.tries = arguments.tries
        self.out = os.path.join(self.folder, "out")

    def floor_mb_per_s(self, paths):
        done = subprocess.run([os.path.join(self.bin, "bench_floor"), *paths], check=True,
                              capture_output=True, text=True)
        size, seconds, _ = done.stdout.split()
        return int(size) / 1e6 / float(seconds)

    def ingest(self, path, *flags):
        """(seconds, CPU seconds, peak private memory in MB) of one run into a fresh directory."""
        shutil.rmtree(self.out, ignore_errors=True)
        started = time.perf_counter()
        process = subprocess.Popen([os.path.join(self.bin, "tlparse"), path, "-o", self.out, *flags],
                                   stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        memory = PrivateMemory(process.pid)
        memory.start()
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        memory.join()
        if process.returncode != 0:
            sys.exit(f"bench_ingest: tlparse ended with exit code {process.returncode}")
        return seconds, used.ru_utime + used.ru_stime, memory.peak_mb

    def measure(self, path, paths, *flags):
        """Of several runs: median rate, median ratio to the floor around each run, the ratios'
        range, median floor, least CPU seconds, greatest peak memory."""
        size_mb = sum(map(os.path.getsize, paths)) / 1e6
        rates, ratios, floors, cpu, peak_mb = [], [], [], [], 0
        before = self.floor_mb_per_s(paths)
        for _ in range(self.tries):
            seconds, cpu_s, memory_mb = self.ingest(path, *flags)
            after = self.floor_mb_per_s(paths)
            floors.append((before + after) / 2)
            rates.append(size_mb / seconds)
            ratios.append(rates[-1] / floors[-1])
            cpu.append(cpu_s)
            peak_mb = max(peak_mb, memory_mb)
            before = after
        median = statistics.median
        return (median(rates), median(ratios), (min(ratios), max(ratios)), median(floors),
                min(cpu), peak_mb)

    def throughput(self, size_bytes):
        print(f"\nIngest ({self.tries} runs each: median, and the ratios' range)")
        print(f"{'payloads':<9} {'files':>5} {'MB':>6} {'floor':>10} {'':<14} {'ingest':>10} "
              f"{'ratio':>6} {'range':>12} {'aim':>6} {'CPU':>7} {'memory':>9} {'database':>9}")
        for payloads in AIMS:
            for files in (1, 64):
                folder = os.path.join(self.folder, "in")
                paths = make_bench_input.make(folder, size_bytes, files, payloads == "distinct",
                                              os.cpu_count())
                path = paths[0] if files == 1 else folder
                for what, flags, share in (("database only", ("--db-only",), 1),
                                           ("and full tree", (), 0.5)):
                    rate, ratio, spread, floor, cpu_s, peak_mb = self.measure(path, paths, *flags)
                    size_mb = sum(map(os.path.getsize, paths)) / 1e6
                    database_mb = os.path.getsize(os.path.join(self.out, "trace.db")) / 1e6
                    aim, least = (value * share for value in AIMS[payloads])
                    verdict = "" if ratio >= aim else " below aim" if ratio >= least else " LOW"
                    print(f"{payloads:<9} {files:>5} {size_mb:>6.0f} {floor:>5.0f} MB/s "
                          f"{what:<14} {rate:>5.0f} MB/s {ratio:>5.2f}x "
                          f"{spread[0]:>5.2f}-{spread[1]:<5.2f} {aim:>5.2f}x {cpu_s:>5.1f} s "
                          f"{peak_mb:>6.0f} MB "
                          f"{database_mb:>6.0f} MB{verdict}", flush=True)
                shutil.rmtree(folder)
        shutil.rmtree(self.out)

    def steps(self, size_bytes):
        """CPU by step of a job of 64 files, and what it allows on more cores."""
        print(f"\nCPU seconds by step, a job of 64 files (least of {self.tries} runs), and the "
              "best possible speed by them, relative to one core")
        for payloads in AIMS:
            folder = os.path.join(self.folder, "in")
            paths = make_bench_input.make(folder, size_bytes, 64, payloads == "distinct",
                                          os.cpu_count())
            size_mb = sum(map(os.path.getsize, paths)) / 1e6
            runs = [self.step_times(folder) for _ in range(self.tries)]
            sums, longest = ({name: min(run[name][what] for run in runs) for name in runs[0]}
                             for what in (0, 1))
            shutil.rmtree(folder)
            for what, names in (("database", DATABASE), ("tree and page", REPORT)):
                total = sum(sums[name] for name in names)
                print(f"  {payloads}, {size_mb:.0f} MB, {what}: {total:.2f} s")
                for name in names:
                    print(f"    {name:<10} {sums[name]:6.2f} s {sums[name] / total:5.0%}  "
                          f"{'at the same time on all cores' if name in PARALLEL else 'one at a time'}"
                          f"; longest task {longest[name]:.2f} s")
                for cores in (1, 2, 4, 8, 16, 64):
                    seconds = best_seconds(sums, longest, names, cores)
                    print(f"    {cores:>2} cores: {seconds:6.2f} s, {total / seconds:4.1f}x, "
                          f"{size_mb / seconds:5.0f} MB/s")
                print(f"    one at a time: {serial_seconds(sums, longest, names) / total:.0%} of the CPU",
                      flush=True)

    def step_times(self, folder):
        """step → (CPU seconds, those of its longest task) of one run with the full tree."""
        shutil.rmtree(self.out, ignore_errors=True)
        # With more than two threads pages are stored apart from writing, as on a larger machine.
        done = subprocess.run([os.path.join(self.bin, "tlparse"), folder, "-o", self.out, "-v",
                               "--threads", "4"], check=True, capture_output=True, text=True)
        line = next(line for line in done.stderr.splitlines() if line.startswith("CPU seconds"))
        return {name: (float(total), float(longest)) for name, total, longest in
                re.findall(r"(\w+) ([\d.]+) \(([\d.]+)\)", line)}

    def small(self):
        log = os.path.join(self.folder, "small.log")
        written = 0
        with open(log, "wb") as file:
            for record in derived_trace.load("simple"):
                trace = derived_trace.DerivedTrace("small", "")
                trace.record(record)
                if written + len(trace.content()) <= 250000:
                    written += file.write(trace.content())
        print(f"\nStart to finish, a log of {written // 1000} kB (30 runs; aim: 30 ms)")
        for what, flags in (("database only", ("--db-only",)), ("and full tree", ())):
            times = sorted(self.ingest(log, *flags)[0] for _ in range(30))
            print(f"  {what:<14} median {statistics.median(times) * 1000:6.1f} ms, "
                  f"fastest {times[0] * 1000:6.1f} ms, slowest {times[-1] * 1000:6.1f} ms",
                  flush=True)
        os.remove(log)

    def answers(self, size_bytes):
        paths = make_bench_input.make(os.path.join(self.folder, "in"), size_bytes, 1, True,
                                      os.cpu_count())
        self.ingest(paths[0], "--db-only")
        database = os.path.join(self.out, "trace.db")
        print(f"\nAnswers on a log of {os.path.getsize(paths[0]) / 1e6:.0f} MB "
              f"(whole program, {self.tries} runs; aim: 200 ms)")
        for answer in ANSWERS:
            for extra in ((), ("--json",)):
                command = [os.path.join(self.bin, "tlparse"), answer[0], database, *answer[1:],
                           *extra]
                times = []
                for _ in range(self.tries):
                    started = time.perf_counter()
                    code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False,
                                          stderr=subprocess.DEVNULL).returncode
                    times.append(time.perf_counter() - started)
                label = " ".join((*answer, *extra))
                print(f"  {label:<45} {statistics.median(times) * 1000:7.1f} ms"
                      f"{'' if code == 0 else f'   (exit code {code})'}", flush=True)
        shutil.rmtree(self.folder)


def serial_seconds(sums, longest, names):
    """What no number of cores can go below: the longest step that takes one window at a time, and
    what follows it; of the report the longest task."""
    if "finishing" in names:
        in_turn = max(sums[name] for name in names if name not in (*PARALLEL, "finishing"))
        return in_turn + sums["finishing"]
    return max(longest[name] for name in names)


def best_seconds(sums, longest, names, cores):
    shared = sum(sums[name] for name in names if name != "finishing")
    alone = sums["finishing"] if "finishing" in names else 0
    return max(shared / cores + alone, serial_seconds(sums, longest, names))


class PrivateMemory(threading.Thread):
    """Samples the anonymous (private) memory of a process until it ends."""

    def __init__(self, pid):
        super().__init__()
        self.path = f"/proc/{pid}/status"
        self.peak_mb = 0.0

    def run(self):
        while True:
            try:
                with open(self.path, encoding="ascii") as file:
                    found = [line for line in file if line.startswith("RssAnon:")]
            except OSError:
                return
            if not found:  # a zombie has no memory
                return
            self.peak_mb = max(self.peak_mb, int(found[0].split()[1]) * 1024 / 1e6)
            time.sleep(0.01)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs, for a first look")
    parser.add_argument("--bytes", type=float, help="size of each input (default 1e9)")
    parser.add_argument("--tries", type=int, default=3, help="runs of each measurement")
    parser.add_argument("--only", choices=("throughput", "steps", "small", "answers"))
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"), metavar="DIRECTORY")
    parser.add_argument("--folder", default="/dev/shm", metavar="DIRECTORY",
                        help="where input and output lie while it runs (default /dev/shm)")
    arguments = parser.parse_args()
    size = int(arguments.bytes or (1e8 if arguments.quick else 1e9))
    bench = Bench(arguments)
    shutil.rmtree(bench.folder, ignore_errors=True)
    os.makedirs(bench.folder)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the start; "
          f"input and output in {arguments.folder}")
    try:
        if arguments.only in (None, "throughput"):
            bench.throughput(size)
        if arguments.only in (None, "steps"):
            bench.steps(size)
        if arguments.only in (None, "small"):
            bench.small()
        if arguments.only in (None, "answers"):
            bench.answers(int(2e7 if arguments.quick else 2e8))
    finally:
        shutil.rmtree(bench.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
