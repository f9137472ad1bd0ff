"""Dumps of c10d's flight recorder as ProcessGroupNCCL leaves them, of programs that are simulated.

Written after FlightRecorder.hpp, FlightRecorderDetail.hpp and ProcessGroupNCCL.cpp of PyTorch 2.5 to
2.15. A rank's program is a generator of calls; a collective runs when all of its members have
enqueued it and their streams have come to it, a send when its receive has. What nobody completes
stands, and what is behind it on its stream with it. The states, times and numbers in a dump follow:

* members of a coalesced call are entries without events: they stay "scheduled"; `nccl:coalesced`
  follows them with the events, the number of the last member as op_id, and no sizes;
* PyTorch 2.5 counts a batch of sends and receives as a collective, later versions as one p2p;
* the watchdog looks every 100 ms: it discovers an end then, and retires the call. Starts are known
  with TORCH_NCCL_ENABLE_TIMING alone (`timing`): of a call that has not ended at the time of the dump;
* the ring keeps the last `size` entries; record_id goes on counting.
"""

import collections
import itertools
import json
import pickle

WATCHDOG_NS = 100_000_000
DTYPES = {"f32": "Float", "bf16": "BFloat16", "i64": "Long"}


class Op:
    """One call of a group that its members make together: a collective, or a send and its receive."""

    def __init__(self, members, duration_ns):
        self.members, self.duration_ns = members, duration_ns
        self.reached, self.ended_ns = {}, None

    def end_ns(self):
        """When the call has ended on all; None: somebody has not come to it."""
        if self.ended_ns is None and len(self.reached) == len(self.members) and None not in self.reached.values():
            self.ended_ns = max(self.reached.values()) + self.duration_ns
        return self.ended_ns


class Batch:
    """Sends and receives that one rank enqueues as one: it has ended when all of them have."""

    def __init__(self, ops):
        self.ops = ops

    def end_ns(self):
        ends = [op.end_ns() for op in self.ops]
        return None if None in ends else max(ends, default=0)


class Group:
    def __init__(self, name, description, ranks):
        self.name, self.description, self.ranks = name, description, list(ranks)
        self.collectives, self.messages = {}, {}


class Call:
    """What a program yields. `sizes` are of the input, `outputs` of the output (as the input)."""

    def __init__(self, kind, group=None, sizes=(), outputs=None, dtype="f32", peer=None, calls=(), site=None, ms=1):
        self.kind, self.group, self.sizes, self.dtype, self.peer = kind, group, list(sizes), dtype, peer
        self.outputs = self.sizes if outputs is None else list(outputs)
        self.calls, self.site, self.ms = list(calls), site, ms


def work(ms):
    """The CPU is busy for this long."""
    return Call("work", ms=ms)


def wait():
    """The CPU waits until everything that it has enqueued has ended, as .item() does."""
    return Call("wait")


def stand():
    """The program goes no further."""
    return Call("stand")


class Rank:
    def __init__(self, world, rank, program):
        self.world, self.rank, self.program = world, rank, program
        self.now_ns = world.begin_ns
        self.entries, self.streams, self.enqueued = [], {}, []
        self.counts = {}
        self.pending = None
        self.stands = False

    def count(self, group, name):
        counts = self.counts.setdefault(group.name, {"collective": 0, "p2p": 0, "op": 0})
        if name:
            counts[name] += 1
        return counts

    def step(self):
        """One call of the program; whether it could be made."""
        if self.stands:
            return False
        if self.pending is None:
            self.pending = next(self.program, None)
        call = self.pending
        if call is None or call.kind == "stand":
            self.stands = True
            return False
        if call.kind == "wait":
            ends = [op.end_ns() for op in self.enqueued]
            if None in ends:
                return False
            self.now_ns = max([self.now_ns, *ends])
            self.enqueued.clear()
        elif call.kind == "work":
            self.now_ns += int(call.ms * 1e6)
        else:
            self.now_ns += self.world.call_ns
            self.issue(call)
        self.pending = None
        return True

    def issue(self, call):
        if call.kind == "batch":
            self.batch(call)
        elif call.kind in ("send", "recv"):
            self.count(call.group, "p2p")
            self.count(call.group, "op")
            op = self.message(call)
            self.enqueue(op, [op], ("pair", call.group.name, *sorted((self.rank, call.peer))))
            self.record(call, op)
        else:
            counts = self.count(call.group, "collective")
            self.count(call.group, "op")
            op = call.group.collectives.setdefault(
                counts["collective"], Op(call.group.ranks, int(call.ms * 1e6))
            )
            self.enqueue(op, [op], ("group", call.group.name))
            self.record(call, op)

    def batch(self, call):
        group = call.calls[0].group
        is_p2p = call.calls[0].kind in ("send", "recv")
        counted = "p2p" if is_p2p and self.world.version != "2.4" else "collective"
        number = self.count(group, counted)[counted]
        ops = []
        for index, member in enumerate(call.calls):
            member.site = member.site or call.site
            self.count(group, "op")
            if is_p2p:
                ops.append(self.message(member))
            else:
                ops.append(group.collectives.setdefault((number, index), Op(group.ranks, 1_000_000)))
            self.record(member, None)
        whole = Batch(ops)
        self.enqueue(whole, ops, ("group", group.name))
        self.record(Call("coalesced", group, site=call.site), whole, is_p2p=is_p2p)

    def message(self, call):
        """The op of a send and its receive, which are paired in their order."""
        ends = (self.rank, call.peer) if call.kind == "send" else (call.peer, self.rank)
        ops = call.group.messages.setdefault(ends, collections.deque())
        while ops and len(ops[0].kinds) == 2:
            ops.popleft()
        for op in ops:
            if call.kind not in op.kinds:
                op.kinds.add(call.kind)
                return op
        op = Op(ends, 200_000)
        op.kinds = {call.kind}
        ops.append(op)
        return op

    def enqueue(self, whole, ops, stream):
        before = self.streams.get(stream)
        ready = self.now_ns if before is None else before.end_ns()
        for op in ops:
            op.reached[self.rank] = None if ready is None else max(ready, self.now_ns)
            if ready is None:
                self.world.delayed.append((op, self.rank, before, self.now_ns))
        self.streams[stream] = whole
        self.enqueued.append(whole)

    def record(self, call, op, is_p2p=None):
        group, counts = call.group, self.count(call.group, None)
        name = "nccl:" + call.kind
        if call.kind in ("send", "recv"):
            arrow = "->" if call.kind == "send" else "<-"
            name += f" {group.ranks.index(self.rank)}{arrow}{group.ranks.index(call.peer)}"
        sizes = [] if call.kind == "coalesced" else [call.sizes]
        outputs = [] if call.kind == "coalesced" else [call.outputs]
        self.entries.append(
            {
                "group": group,
                "op": op,
                "record_id": len(self.entries),
                "process_group": (group.name, group.description),
                "collective_seq_id": counts["collective"],
                "p2p_seq_id": counts["p2p"],
                "op_id": counts["op"],
                "profiling_name": name,
                "time_created_ns": self.now_ns,
                "input_sizes": sizes,
                "input_dtypes": [DTYPES[call.dtype]] * len(sizes),
                "output_sizes": outputs,
                "output_dtypes": [DTYPES[call.dtype]] * len(outputs),
                "is_p2p": call.kind in ("send", "recv") if is_p2p is None else is_p2p,
                "site": call.site,
            }
        )


class World:
    """`programs` has a function of each rank: program(rank) gives its calls."""

    def __init__(self, ranks, program, version="2.9", size=2000, skew_ns=None, call_ns=20_000, timing=False):
        self.version, self.size, self.call_ns, self.timing = version, size, call_ns, timing
        self.skew_ns = skew_ns or {}
        self.begin_ns = 1_790_000_000_000_000_000
        self.delayed = []
        self.ranks = [Rank(self, rank, iter(program(rank))) for rank in range(ranks)]

    def run(self):
        moved = True
        while moved:
            moved = any([self.catch_up(), *(self.steps(rank) for rank in self.ranks)])
        return self

    @staticmethod
    def steps(rank):
        count = 0
        while rank.step():
            count += 1
        return count > 0

    def catch_up(self):
        """Calls whose streams have come to them since."""
        left = []
        for op, rank, before, enqueued_ns in self.delayed:
            end = before.end_ns()
            if end is None:
                left.append((op, rank, before, enqueued_ns))
            else:
                op.reached[rank] = max(end, enqueued_ns)
        moved = len(left) < len(self.delayed)
        self.delayed = left
        return moved

    def last_ns(self):
        ends = [op.end_ns() or 0 for rank in self.ranks for op in rank.enqueued]
        return max([rank.now_ns for rank in self.ranks] + ends)

    def write(self, folder, form="pickle", dump_ns=None, leave_out=(), prefix="nccl_trace_rank_"):
        """The dumps of all ranks, at `dump_ns` (of a rank; all: one second after the last event)."""
        for rank in self.ranks:
            if rank.rank in leave_out:
                continue
            at_ns = (dump_ns or {}).get(rank.rank, self.last_ns() + 1_000_000_000)
            dump = self.dump(rank, at_ns, form)
            path = f"{folder}/{prefix}{rank.rank}" + (".json" if form == "json" else "")
            with open(path, "wb") as file:
                file.write(json.dumps(dump).encode() if form == "json" else pickle.dumps(dump, protocol=2))

    def dump(self, rank, at_ns, form):
        skew = self.skew_ns.get(rank.rank, 0)
        entries = [entry for entry in rank.entries if entry["time_created_ns"] <= at_ns]
        groups = list({entry["group"].name: entry["group"] for entry in entries}.values())
        made = [self.entry(rank, entry, at_ns, groups, form) for entry in entries]
        status = {}
        for number, group in enumerate(groups):
            with_events = [one for one, entry in zip(made, entries) if entry["group"] is group and entry["op"]]
            last = lambda states: max(
                [one["collective_seq_id"] for one in with_events if one["state"] in states], default=-1
            )
            status[str(number)] = {
                "last_enqueued_collective": last(("scheduled", "started", "completed")),
                "last_started_collective": last(("started", "completed")),
                "last_completed_collective": last(("completed",)),
            }
        for one in made:
            for name in ("time_created_ns", "time_discovered_started_ns", "time_discovered_completed_ns"):
                one[name] = one[name] + skew if one[name] else one[name]
        if form == "json":
            status = {key: {name: str(value) for name, value in one.items()} for key, one in status.items()}
        dump = {"version": self.version, "pg_config": {}, "pg_status": status, "entries": made[-self.size :]}
        dump["comm_lib_version" if self.version in ("2.9", "2.10") else "nccl_version"] = "2.26.2"
        for group in groups:
            dump["pg_config"][group.name] = {
                "name": group.name,
                "desc": group.description,
                "ranks": "[" + ", ".join(map(str, group.ranks)) + "]",
            }
        return dump

    def entry(self, rank, entry, at_ns, groups, form):
        op, hidden = entry["op"], ("group", "op", "site")
        made = {name: value for name, value in entry.items() if name not in hidden}
        started = completed = None
        if op is not None:
            reached = [one.reached.get(rank.rank) for one in (op.ops if isinstance(op, Batch) else [op])]
            end = op.end_ns()
            if end is not None and end <= at_ns:
                completed = min(at_ns, -(-end // WATCHDOG_NS) * WATCHDOG_NS)
            if self.timing and None not in reached and max(reached) <= at_ns:
                started = completed or at_ns
            if self.timing and completed:
                made["duration_ms"] = (end - max(reached)) / 1e6
        made.update(
            pg_id=groups.index(entry["group"]),
            state="completed" if completed else "started" if started else "scheduled",
            time_discovered_started_ns=started if started or form == "pickle" else 0,
            time_discovered_completed_ns=completed if completed or form == "pickle" else 0,
            retired=completed is not None,
            timeout_ms=600_000,
        )
        if self.version in ("2.9", "2.10"):
            made.update(thread_id="140023187654400", thread_name="pt_main_thread")
        if form == "pickle":
            made["frames"] = [
                {"name": name, "filename": file, "line": line} for name, file, line in entry["site"] or []
            ]
        else:
            made["process_group"] = list(made["process_group"])
        return made


def mesh(shape, names, first=1):
    """The groups of a mesh by rank and dimension, numbered as new_group does it."""
    count = 1
    for extent in shape:
        count *= extent
    coordinates = list(itertools.product(*map(range, shape)))
    groups, number = [{} for _ in range(count)], first
    for axis, name in enumerate(names):
        rows = {}
        for rank, place in enumerate(coordinates):
            rows.setdefault(place[:axis] + place[axis + 1 :], []).append(rank)
        for ranks in rows.values():
            group = Group(str(number), f"mesh_{name}", ranks)
            number += 1
            for rank in ranks:
                groups[rank][name] = group
    return groups
