#!/usr/bin/env python3
"""What following the logs of a running job costs, against one ingest of the same logs.

usage: watch_cost.py growth TLPARSE LOGS [--arrival FILE] [--seconds S] [--times N]
       watch_cost.py delay TLPARSE LOG [--logs N] [--seconds S]

growth: writes the logs of the directory LOGS piece by piece within S seconds, as FILE says ({"t", "file", "size"} a line, sizes as
they were seen at time t) or evenly, into an empty directory that `tlparse watch --db` follows. Prints CPU seconds (user + system), peak
memory and commits of the watch, those of `tlparse --db --db-only` of the whole logs, and their ratio; the best of N of each, in turn.

delay: N logs, each with the content of LOG and its own rank, grow by records over S seconds, all at once. Beside them a record with a
marker is appended to one log after the other, and the database asked for it until it is there: median and worst delay, CPU and memory.
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import trace_lines  # noqa: E402


class Program:
    """A process and what it cost."""

    def __init__(self, arguments, folder):
        self.process = subprocess.Popen(arguments, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def private_mb(self):
        """Memory that is not of a file."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024

    def end(self):
        """CPU seconds and peak memory in MB."""
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode != 0:
            sys.exit(f"tlparse ended with {self.process.returncode}")
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def records_of(database):
    try:
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        try:
            return connection.execute("SELECT coalesce(sum(record_count), 0) FROM log_file").fetchone()[0]
        finally:
            connection.close()
    except sqlite3.Error:
        return 0


def ingest(tlparse, folder):
    program = Program([tlparse, "logs", "--db", "one.db", "--db-only"], folder)
    cost = program.end()
    count = records_of(os.path.join(folder, "one.db"))
    os.remove(os.path.join(folder, "one.db"))
    return cost, count


def arrivals_of(logs, arrival, seconds):
    """[(when in s, name, size)], in order of time."""
    if arrival:
        with open(arrival, encoding="utf-8") as file:
            seen = [json.loads(line) for line in file]
        begin, end = seen[0]["t"], seen[-1]["t"]
        plan = [((one["t"] - begin) * seconds / (end - begin), one["file"], one["size"]) for one in seen]
        return plan + [(seconds, name, len(data)) for name, data in logs.items()]
    ticks = max(1, int(seconds / 0.1))
    plan = []
    for tick in range(1, ticks + 1):
        for name, data in logs.items():
            end = len(data) * tick // ticks
            plan.append((seconds * tick / ticks, name, data.rfind(b"\nV", 0, end) + 1 if tick < ticks else end))
    return plan


def replay(logs, plan, folder):
    began, done = time.monotonic(), dict.fromkeys(logs, 0)
    for when, name, size in plan:
        time.sleep(max(0.0, when - (time.monotonic() - began)))
        if size > done[name]:
            with open(os.path.join(folder, "logs", name), "ab") as file:
                file.write(logs[name][done[name]:size])
            done[name] = size


def follow(tlparse, logs, plan, folder, count):
    shutil.rmtree(os.path.join(folder, "logs"), ignore_errors=True)
    os.mkdir(os.path.join(folder, "logs"))
    program = Program([tlparse, "watch", "logs", "--db", "watched.db"], folder)
    database = os.path.join(folder, "watched.db")
    while not os.path.exists(database):
        time.sleep(0.05)
    replay(logs, plan, folder)
    time.sleep(1)
    while records_of(database) < count:
        time.sleep(0.2)
    before_s = program.cpu_s()
    program.process.send_signal(signal.SIGINT)
    cost = program.end()
    os.remove(database)
    return cost, before_s


def growth(arguments, folder):
    logs = {}
    for name in sorted(os.listdir(arguments.logs)):
        with trace_lines.open_log(os.path.join(arguments.logs, name)) as stream:
            logs[name.removesuffix(".zst").removesuffix(".gz")] = stream.read()
    plan = arrivals_of(logs, arguments.arrival, arguments.seconds)
    os.mkdir(os.path.join(folder, "logs"))
    for name, data in logs.items():
        with open(os.path.join(folder, "logs", name), "wb") as file:
            file.write(data)
    best_one = best_watch = None
    for _ in range(arguments.times):
        one, count = ingest(arguments.tlparse, folder)
        watch, before_s = follow(arguments.tlparse, logs, plan, folder, count)
        print(f"ingest {one[0]:.2f} s, {one[1]:.0f} MB; watch {watch[0]:.2f} s (before its end {before_s:.2f}), {watch[1]:.0f} MB",
              flush=True)
        best_one, best_watch = min(best_one or one, one), min(best_watch or watch, watch)
    size = sum(map(len, logs.values()))
    print(f"{size / 1e6:.0f} MB, {len(logs)} logs, {count} records in {arguments.seconds:.0f} s: {best_watch[0]:.2f} s against "
          f"{best_one[0]:.2f} s of one ingest, {best_watch[0] / best_one[0]:.2f} times")


def await_marker(connection, name, marker, deadline):
    sql = "SELECT envelope FROM record WHERE id = (SELECT last_record_id FROM log_file WHERE path = ?)"
    while time.monotonic() < deadline:
        found = connection.execute(sql, (f"logs/{name}",)).fetchone()
        if found and marker in found[0]:
            return
        time.sleep(0.02)
    sys.exit(f"{marker}: not within a minute")


def delay(arguments, folder):
    os.mkdir(os.path.join(folder, "logs"))
    with trace_lines.open_log(arguments.log) as stream:
        data = stream.read()
    ends = [match.start() + 1 for match in re.finditer(rb"\nV\d{4} ", data)] + [len(data)]
    names = [f"dedicated_log_torch_trace_rank_{rank}_{rank:08d}.log" for rank in range(arguments.logs)]
    program = Program([arguments.tlparse, "watch", "logs", "--db", "watched.db"], folder)
    database = os.path.join(folder, "watched.db")
    while not os.path.exists(database):
        time.sleep(0.05)
    chance, delays, began, done = random.Random(5), [], time.monotonic(), 0
    private_mb = 0.0
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    while done < len(ends):
        share = min(1.0, (time.monotonic() - began) / arguments.seconds)
        end = max(done + 1, int(share * len(ends))) if share < 1 else len(ends)
        piece = data[ends[done - 1] if done else 0:ends[end - 1]]
        done = end
        for rank, name in enumerate(names):
            with open(os.path.join(folder, "logs", name), "ab") as file:
                file.write(re.sub(rb'"rank": 0\b', b'"rank": %d' % rank, piece))
        marker = f"marker_{len(delays)}"
        prefix = data[:data.index(b"{")]
        written, name = time.monotonic(), chance.choice(names)
        with open(os.path.join(folder, "logs", name), "ab") as file:
            file.write(prefix + f'{{"str": ["{marker}", {10 ** 6 + len(delays)}]}}\n'.encode())
        await_marker(connection, name, marker, written + 60)
        delays.append(time.monotonic() - written)
        private_mb = max(private_mb, program.private_mb())
    connection.close()
    grown_s, cpu_s = time.monotonic() - began, program.cpu_s()
    time.sleep(3)
    quiet = program.cpu_s()
    time.sleep(10)
    quiet = (program.cpu_s() - quiet) / 10
    program.process.send_signal(signal.SIGINT)
    cost = program.end()
    print(f"{len(names)} logs, {len(names) * len(data) / 1e6:.0f} MB in {grown_s:.0f} s: {cpu_s:.1f} s of CPU, quiet then "
          f"{100 * quiet:.1f} % of a core, {cost[0]:.1f} s to the end, {private_mb:.0f} MB at most without pages of files ({cost[1]:.0f} with them); {len(delays)} markers: "
          f"median {statistics.median(delays):.2f} s, worst {max(delays):.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("growth")
    one.add_argument("tlparse", type=os.path.abspath)
    one.add_argument("logs")
    one.add_argument("--arrival")
    one.add_argument("--seconds", type=float, default=5)
    one.add_argument("--times", type=int, default=3)
    one.set_defaults(run=growth)
    one = commands.add_parser("delay")
    one.add_argument("tlparse", type=os.path.abspath)
    one.add_argument("log")
    one.add_argument("--logs", type=int, default=1024)
    one.add_argument("--seconds", type=float, default=60)
    one.set_defaults(run=delay)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/dev/shm")) as folder:
        arguments.run(arguments, folder)


if __name__ == "__main__":
    main()
