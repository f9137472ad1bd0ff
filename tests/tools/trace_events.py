#!/usr/bin/env python3
"""A strict reader of the trace-event format, as its documentation says ("Trace Event Format", the document that chrome://tracing names).

usage: trace_events.py [--by] FILE.json[.gz]…        --by: number and duration of slices by process, thread and name

A slice is a complete event (X), or a B with the E that ends it: the innermost open B of its pid and tid. Faults: what the format does not
allow, what a reader would pair otherwise than it was meant, two slices of a thread that overlap without one being inside the other, a flow
that leaves or enters no slice, a time that a double does not hold to the nanosecond, one thread with two names. Exit code 1: there are some.
"""
import collections
import gzip
import json
import sys

SCOPES = ("g", "p", "t")
METADATA = {"process_name": "name", "process_labels": "labels", "process_sort_index": "sort_index", "thread_name": "name", "thread_sort_index": "sort_index"}

Slice = collections.namedtuple("Slice", "pid tid name category start end args")  # times in ns


def nanoseconds(text):
    """Of a number of microseconds as it is written; None: it has parts of a nanosecond."""
    digits = text[1:] if text.startswith("-") else text
    whole, _, part = digits.partition(".")
    if not whole.isdigit() or (part and not part.isdigit()) or part[3:].strip("0"):
        return None
    ns = int(whole) * 1000 + int((part + "000")[:3])
    return -ns if text.startswith("-") else ns


class Number(str):
    """A number of the file, as it is written there."""


class Trace:
    def __init__(self, path):
        self.faults = []
        self.slices = []
        self.instants = []
        self.counters = []  # (pid, name, ns, args)
        self.flows = 0
        self.process_names = {}
        self.thread_names = {}
        self.base_ns = self.left_out = 0
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
            document = json.loads(file.read().decode("utf-8"), parse_float=Number, parse_int=Number, parse_constant=self.constant)
        if isinstance(document, list):
            events = document
            if not events:
                self.fault("an empty list is no trace", None)
        else:
            events = document.get("traceEvents")
            self.base_ns = int(document.get("baseTimeNanoseconds", 0))
            self.left_out = int(document.get("otherData", {}).get("left_out", 0))
        if not isinstance(events, list):
            self.fault("there is no list traceEvents", None)
            events = []
        self.read(events)

    def constant(self, text):
        self.fault(f"{text} is not JSON", None)

    def fault(self, what, event):
        self.faults.append(what if event is None else f"{what}: {json.dumps(event)[:300]}")

    def time(self, event, key):
        text = event.get(key)
        ns = nanoseconds(text) if isinstance(text, Number) else None
        if ns is None:
            self.fault(f"{key} is no number of microseconds, or finer than a nanosecond", event)
            return 0
        if round(float(text) * 1000) != ns or abs(ns) >= 1 << 52:
            self.fault(f"{key} is not exact in a double", event)
        return ns

    @staticmethod
    def whole(value):
        try:
            return int(value) if isinstance(value, Number) else None
        except ValueError:
            return None

    def read(self, events):
        open_slices, ends, flows = collections.defaultdict(list), [], collections.defaultdict(list)
        # A reader sorts by time: the order of the file decides where times are equal.
        for event in events:
            phase = event.get("ph") if isinstance(event, dict) else None
            if not isinstance(phase, str):
                self.fault("no event with a phase", event)
                continue
            pid, tid = self.whole(event.get("pid")), self.whole(event.get("tid"))
            if pid is None or pid < 0 or (tid is None and phase != "C") or (tid is not None and tid < 0):
                self.fault("pid or tid is no number", event)
                continue
            if phase == "M":
                self.metadata(event, pid, tid)
                continue
            if (not isinstance(event.get("name"), str) or isinstance(event["name"], Number)) and phase != "E":
                self.fault("it has no name", event)
                continue
            start = self.time(event, "ts")
            if phase == "X":
                duration = self.time(event, "dur")
                if duration < 0:
                    self.fault("dur is below 0", event)
                self.slices.append(Slice(pid, tid, event["name"], event.get("cat", ""), start, start + duration, event.get("args", {})))
            elif phase in "BE":
                ends.append((start, phase, pid, tid, event))
            elif phase in ("i", "I"):
                if event.get("s", "t") not in SCOPES:
                    self.fault("its scope is none", event)
                self.instants.append(Slice(pid, tid, event["name"], event.get("cat", ""), start, start, event.get("args", {})))
            elif phase == "C":
                if not event.get("args") or not all(isinstance(value, Number) for value in event["args"].values()):
                    self.fault("a counter has numbers", event)
                self.counters.append((pid, event["name"], start, event.get("args", {})))
            elif phase in ("s", "t", "f"):
                flows[event.get("cat"), event.get("name"), event.get("id")].append((phase, pid, tid, start, event))
            else:
                self.fault("the phase is none of these", event)
        for start, phase, pid, tid, event in sorted(ends, key=lambda end: end[0]):
            mine = open_slices[pid, tid]
            if phase == "B":
                mine.append((start, event))
            elif not mine:
                self.fault("an end without a begin", event)
            else:
                begin, opened = mine.pop()
                if event.get("name", opened["name"]) != opened["name"]:
                    self.fault(f"it ends {opened['name']}", event)
                self.slices.append(Slice(pid, tid, opened["name"], opened.get("cat", ""), begin, start, {**opened.get("args", {}), **event.get("args", {})}))
        for left in open_slices.values():
            for _, event in left:
                self.fault("a begin without an end", event)
        self.nest()
        self.bind(flows)

    def metadata(self, event, pid, tid):
        key = METADATA.get(event.get("name"))
        args = event.get("args")
        if key is None or not isinstance(args, dict) or key not in args:
            self.fault("metadata of no known kind", event)
            return
        names = {"process_name": self.process_names, "thread_name": self.thread_names}.get(event["name"])
        place = pid if event["name"].startswith("process_") else (pid, tid)
        if names is not None and names.setdefault(place, args[key]) != args[key]:
            self.fault(f"it was named {names[place]}", event)

    def threads(self):
        threads = collections.defaultdict(list)
        for one in self.slices:
            threads[one.pid, one.tid].append(one)
        return threads

    def nest(self):
        for slices in self.threads().values():
            stack = []
            for one in sorted(slices, key=lambda one: (one.start, -one.end)):
                while stack and stack[-1].end <= one.start:
                    stack.pop()
                if stack and one.end > stack[-1].end:
                    self.fault(f"{one.name} overlaps {stack[-1].name}", list(one[:6]))
                    continue
                stack.append(one)

    def bind(self, flows):
        starts = {place: sorted((one.start, one.end) for one in slices) for place, slices in self.threads().items()}
        wanted = collections.defaultdict(list)
        for steps in flows.values():
            if [step[0] for step in steps if step[0] != "t"] not in (["s", "f"], ["f", "s"]):
                self.fault("a flow has one start and one end", steps[0][4])
                continue
            self.flows += 1
            for phase, pid, tid, start, event in steps:
                wanted[pid, tid].append((start, phase == "f" and event.get("bp") != "e", event))
        for place, steps in wanted.items():
            slices, latest_end, at = starts.get(place, []), -1 << 62, 0
            for start, is_next, event in sorted(steps, key=lambda step: step[0]):
                while at < len(slices) and slices[at][0] <= start:
                    latest_end = max(latest_end, slices[at][1])
                    at += 1
                if at == len(slices) if is_next else latest_end < start:
                    self.fault("a flow leaves or enters no slice", event)

    def names_missing(self):
        """Processes and threads with slices that have no name."""
        return [place for place in self.threads() if place[0] not in self.process_names or place not in self.thread_names]

    def sums(self):
        """(process, thread, name): number and ns. What overlaps is of the thread that it overlaps."""
        sums = collections.defaultdict(lambda: [0, 0])
        for one in self.slices:
            thread = self.thread_names.get((one.pid, one.tid), str(one.tid)).split(" (overlapping, ")[0]
            entry = sums[self.process_names.get(one.pid, str(one.pid)), thread, one.name]
            entry[0] += 1
            entry[1] += one.end - one.start
        return dict(sums)


def main():
    arguments = sys.argv[1:]
    shows_sums = "--by" in arguments
    bad = False
    for path in (argument for argument in arguments if argument != "--by"):
        trace = Trace(path)
        print(f"{path}: {len(trace.slices)} slices of {len(trace.threads())} threads, {len(trace.instants)} instants, {len(trace.counters)} values of "
              f"counters, {trace.flows} flows, {len(trace.faults)} faults")
        for fault in trace.faults[:20]:
            print(f"  {fault}")
        if shows_sums:
            for (process, thread, name), (count, ns) in sorted(trace.sums().items(), key=lambda entry: -entry[1][1]):
                print(f"  {process}\t{thread}\t{name}\t{count}\t{ns / 1e3:.3f} us")
        bad |= bool(trace.faults)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
